"""A conversation as Gemini takes it back: its own parts as they came, and what it can read of all others.

Pure functions from messages to the contents of a request body; no network here.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from itertools import groupby
from typing import Any, assert_never

from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    InputBlock,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers._gemini_events import METADATA, PROVIDER
from op_jupyter.providers._messages import call_id, join_text, own_of
from op_jupyter.providers._wire import as_dict, as_list, as_str
from op_jupyter.redact import REDACTED

# Since Gemini 3 the first call of a reply has to be signed; this documented value, in base64, is for one that it has
# not made itself: skip_thought_signature_validator.
NOT_SIGNED = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

_BEFORE_GEMINI_3 = re.compile(r"gemini-[12]\b|gemma")
_TAKEN = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")  # any other makes the whole request fail
_SHOWN_IN_A_RESULT = ("image/png", "image/jpeg", "image/webp")


def contents(messages: list[Message], model: str) -> list[dict[str, Any]]:
    """The conversation as it is sent to `model`: what follows one another from the same side is one content.

    The results of a reply are one of their own, since there have to be as many as there are calls in it.
    """
    found: list[dict[str, Any]] = []
    for _, group in groupby(messages, key=type):
        role = "user"
        parts: list[dict[str, Any]] = []
        pictures: list[dict[str, Any]] = []
        for message in group:
            match message:
                case UserMessage():
                    parts += [_input_part(block) for block in message.content]
                case ToolResultMessage():
                    result, beside = _result(message, model)
                    parts.append(result)
                    pictures += beside
                case AssistantMessage():
                    role = "model"
                    parts += _said(message, model)
                case _:
                    assert_never(message)
        found += [{"role": role, "parts": some} for some in (parts, pictures) if some]
    return found


# -------------------------------------------------------------------- what the user says


def _input_part(block: InputBlock) -> dict[str, Any]:
    match block:
        case TextContent():
            return {"text": block.text}
        case ImageContent():
            return _picture(block)
        case _:
            assert_never(block)


def _picture(block: ImageContent) -> dict[str, Any]:
    if block.mime_type not in _TAKEN:
        return {"text": f"(a picture that cannot be shown, of type {block.mime_type})"}
    return {"inlineData": {"mimeType": block.mime_type, "data": b64encode(block.data).decode()}}


def _result(message: ToolResultMessage, model: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The result, and what has to be shown after it: the images that cannot stand in it."""
    inside: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ImageContent):
            may_be_inside = block.mime_type in _SHOWN_IN_A_RESULT and not _BEFORE_GEMINI_3.search(model)
            (inside if may_be_inside else beside).append(_picture(block))
    text = join_text(message.content) or ("The image follows." if inside or beside else "")
    result: dict[str, Any] = {
        "id": call_id(message.tool_call_id),
        "name": message.tool_name,
        "response": {"error" if message.is_error else "output": text},
    }
    if inside:
        result["parts"] = inside
    named = [{"text": f"What {message.tool_name} returned:"}, *beside] if beside else []
    return {"functionResponse": result}, named


# -------------------------------------------------------------------- what the model said


def _said(message: AssistantMessage, model: str) -> list[dict[str, Any]]:
    """The parts of `message` that can be sent; what only the model itself understands goes back to none but it."""
    is_own = message.provider == PROVIDER and message.model == model
    halves = _calls_of_the_server(message)
    parts = [part for block in message.content for part in _parts(block, is_own, halves)]
    if all(part.get("thought") for part in parts):
        return []  # it broke off before it said anything
    for part in parts:
        if "functionCall" in part:
            if not _BEFORE_GEMINI_3.search(model):
                part.setdefault("thoughtSignature", NOT_SIGNED)
            break
    return parts


def _parts(block: Block, is_own: bool, halves: set[str]) -> Iterator[dict[str, Any]]:
    own = own_of(block, PROVIDER) if is_own else {}
    match block:
        case TextContent():
            yield from _pieces(block.text, own, {})
        case ThinkingContent():
            if is_own:
                yield from _pieces(block.thinking, own, {"thought": True})
        case ToolCall():
            call = {"id": call_id(block.id), "name": block.name, "args": block.arguments}
            yield {"functionCall": call} | own
        case ImageContent():
            yield _picture(block) | own
        case ServerContent():
            kind = as_str(own.get("type"))
            if kind and kind not in METADATA and as_str(as_dict(block.data).get("id")) not in halves:
                yield {kind: block.data} | {name: value for name, value in own.items() if name != "type"}
        case _:
            assert_never(block)


def _pieces(text: str, own: dict[str, Any], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`text` in the parts that it came in, as far as that matters: each signature stands on its own part."""
    done = 0
    # Where a key was taken out of the text, its parts are no longer where they were.
    signed = [] if REDACTED in text else as_list(own.get("signed"))
    for start, end, signature in signed:
        if start > done:
            yield {"text": text[done:start]} | about
        yield {"text": text[start:end], "thoughtSignature": signature} | about
        done = end
    if done < len(text):
        yield {"text": text[done:]} | about


def _calls_of_the_server(message: AssistantMessage) -> set[str]:
    """The ids of the calls to server tools of which only a half is there, since the reply broke off."""
    ids: dict[bool, set[str]] = {True: set(), False: set()}
    for block in message.content:
        if isinstance(block, ServerContent):
            kind = as_str(own_of(block, PROVIDER).get("type"))
            ids[kind in ("toolResponse", "codeExecutionResult")].add(as_str(as_dict(block.data).get("id")))
    return (ids[True] ^ ids[False]) - {""}
