"""A conversation as Bedrock's Converse takes it back: its own blocks as they came, and what it can read of all others.

Pure functions from messages to the turns of a request body; no network here.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, assert_never

from op_jupyter.messages import (
    AssistantMessage,
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
from op_jupyter.providers._bedrock_events import PROVIDER
from op_jupyter.providers._claude import digest, is_bound
from op_jupyter.providers._messages import call_id, join_text, own_of
from op_jupyter.providers._wire import as_dict, as_str


def turns(messages: list[Message], basis: str, rich_results: bool) -> tuple[list[dict[str, Any]], str]:
    """The turns of the conversation, and what stands for all of them; of its reasoning what is bound to this `basis`.

    With `rich_results` the model takes pictures in the result of a call, and the mark of an error. Without, pictures
    stand behind all results of the turn.
    """
    found: list[dict[str, Any]] = []
    before = basis
    for message in messages:
        match message:
            case UserMessage():
                role, content = "user", [_input_block(block) for block in message.content]
            case ToolResultMessage():
                role, content = "user", _result(message, rich_results)
            case AssistantMessage():
                role, content = "assistant", _said(message, basis, before)
            case _:
                assert_never(message)
        if content and found and found[-1]["role"] == role:
            found[-1]["content"] += content
        elif content:
            found.append({"role": role, "content": content})
        if content:
            before = digest(before, role, content)
    for turn in found:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: "toolResult" not in block)
    return found, before


# -------------------------------------------------------------------- what the user says


def _input_block(block: InputBlock) -> dict[str, Any]:
    match block:
        case TextContent():
            return {"text": block.text}
        case ImageContent():
            kind = block.mime_type.removeprefix("image/").replace("jpg", "jpeg")
            return {"image": {"format": kind, "source": {"bytes": b64encode(block.data).decode()}}}
        case _:
            assert_never(block)


def _result(message: ToolResultMessage, rich: bool) -> list[dict[str, Any]]:
    pictures = [_input_block(block) for block in message.content if isinstance(block, ImageContent)]
    result: dict[str, Any] = {"toolUseId": call_id(message.tool_call_id)}
    if rich and pictures:
        # With a picture in it, it would be refused as an error.
        return [{"toolResult": result | {"content": [_input_block(block) for block in message.content]}}]
    text = join_text(message.content) or "The result is the picture below."
    status = {"status": "error"} if rich and message.is_error else {}
    return [{"toolResult": result | {"content": [{"text": text}]} | status}, *pictures]


# -------------------------------------------------------------------- what the model said


def _said(message: AssistantMessage, basis: str, before: str) -> list[dict[str, Any]]:
    """The blocks of `message` that can be sent."""
    thoughts = [block for block in message.content if isinstance(block, ThinkingContent) and own_of(block, PROVIDER)]
    # One is bound to those before it.
    thinks = all(is_bound(own_of(block, PROVIDER), basis, before, block.thinking) for block in thoughts)
    answered = _answered(message)
    content: list[dict[str, Any]] = []
    for block in message.content:
        match block:
            case TextContent():
                if block.text.strip():  # a blank one is refused
                    content.append({"text": block.text})
            case ThinkingContent():
                content += _reasoning(block) if thinks else []
            case ToolCall():
                use = {"toolUseId": call_id(block.id), "name": block.name, "input": block.arguments}
                content.append({"toolUse": use})
            case ServerContent():
                _add_server_content(content, block, answered)
            case ImageContent():
                pass  # only the user can show one
            case _:
                assert_never(block)
    while content and "reasoningContent" in content[-1] and message.stop_reason != "tool_use":
        content.pop()  # refused at the end of a reply
    return content


def _reasoning(block: ThinkingContent) -> list[dict[str, Any]]:
    """Signed or encrypted reasoning. What bears neither is refused, also by the model that it is of."""
    own = own_of(block, PROVIDER)
    if not own:
        return []
    if block.redacted:
        return [{"reasoningContent": {"redactedContent": own.get("redactedContent")}}]
    return [{"reasoningContent": {"reasoningText": {"text": block.thinking, "signature": own.get("signature")}}}]


def _add_server_content(content: list[dict[str, Any]], block: ServerContent, answered: set[str]) -> None:
    data = as_dict(block.data) if own_of(block, PROVIDER) else {}
    if "citations" in data and content and "text" in content[-1]:
        content[-1] = {"citationsContent": {"content": [content[-1]], "citations": data["citations"]}}
    elif _server_call(block) in answered:
        content.append(data)


def _answered(message: AssistantMessage) -> set[str]:
    """The ids of the calls to server tools that have their result: a reply that broke off may hold half of it."""
    blocks = [block for block in message.content if isinstance(block, ServerContent) and own_of(block, PROVIDER)]
    made = {_server_call(block) for block in blocks if "toolUse" in as_dict(block.data)}
    return made & {_server_call(block) for block in blocks if "toolResult" in as_dict(block.data)} - {""}


def _server_call(block: ServerContent) -> str:
    data = as_dict(block.data)
    return as_str((as_dict(data.get("toolUse")) or as_dict(data.get("toolResult"))).get("toolUseId"))
