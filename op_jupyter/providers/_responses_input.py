"""A conversation as the input of OpenAI responses: its own items as they came, and what it can read of all others.

Pure functions from messages to the items of a request body; no network here.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
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
from op_jupyter.providers._messages import call_id, join_text, own_of
from op_jupyter.providers._responses_events import PROVIDER
from op_jupyter.providers._wire import as_dict, as_str, to_json

ALLOWED_ID = re.compile(".{1,64}", re.DOTALL)

# What the server asks its client to do, and nobody here does.
ASKED_OF_CLIENT = (
    "apply_patch_call",
    "computer_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
    "tool_search_call",
)


def input_items(messages: list[Message], model: str, *, is_stored: bool) -> list[dict[str, Any]]:
    """The items of the conversation, of which `model` gets back what it has thought.

    With `is_stored` the server keeps its items, and knows those that are empty by their ids.
    """
    answered = {call for message in messages for call in _answered_by_server(message)}
    items: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    for message in messages:
        match message:
            case UserMessage():
                items.append({"role": "user", "content": [_input_block(block) for block in message.content]})
            case ToolResultMessage():
                items.append(_result(message, calls))
            case AssistantMessage():
                is_own = own_of(message, PROVIDER).get("model") == model
                said = list(_said(message, answered, is_own=is_own, is_stored=is_stored))
                calls |= {item["call_id"]: item for item in said if item.get("call_id")}
                items += said
            case _:
                assert_never(message)
    return items


# -------------------------------------------------------------------- what the user says


def _input_block(block: InputBlock) -> dict[str, Any]:
    match block:
        case TextContent():
            return {"type": "input_text", "text": block.text}
        case ImageContent():
            url = f"data:{block.mime_type};base64,{b64encode(block.data).decode()}"
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case _:
            assert_never(block)


def _result(message: ToolResultMessage, calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The result of a call, which is among `calls` as it was sent."""
    its_id = call_id(message.tool_call_id, ALLOWED_ID)
    call = calls.get(its_id, {})
    has_picture = any(isinstance(block, ImageContent) for block in message.content)
    output = [_input_block(block) for block in message.content] if has_picture else join_text(message.content)
    kind = as_str(call.get("type")) or "function_call"
    caller = {"caller": call["caller"]} if "caller" in call else {}
    return {"type": f"{kind}_output", "call_id": its_id, "output": output} | caller


# -------------------------------------------------------------------- what the model said


def _said(message: AssistantMessage, answered: set[str], *, is_own: bool, is_stored: bool) -> Iterator[dict[str, Any]]:
    """The items of `message` that can be sent."""
    thoughts: list[dict[str, Any]] = []
    for block in message.content:
        item = _item(block, is_own=is_own)
        if item is None or not _can_be_sent(item, answered, is_stored=is_stored):
            continue
        item = {name: value for name, value in item.items() if name != "id" or ALLOWED_ID.fullmatch(as_str(value))}
        if item["type"] == "reasoning":
            # Refused without what came of it.
            thoughts.append(item)
        else:
            yield from [*thoughts, item]
            thoughts.clear()


def _item(block: Block, *, is_own: bool) -> dict[str, Any] | None:
    own = own_of(block, PROVIDER) if is_own else {}
    match block:
        case TextContent():
            if not block.text.strip():
                return None
            content = [{"type": "output_text", "text": block.text, "annotations": []}]
            return {"type": "message", "role": "assistant", "status": "completed", "content": content} | own
        case ThinkingContent():
            return {name: value for name, value in own.items() if value or name == "summary"} or None
        case ToolCall():
            called = {"call_id": call_id(block.id, ALLOWED_ID), "name": block.name}
            if "input" in own_of(block, PROVIDER):
                return {"type": "custom_tool_call", **called, "input": own_of(block, PROVIDER)["input"]} | own
            return {"type": "function_call", **called, "arguments": to_json(block.arguments).decode()} | own
        case ServerContent():
            return as_dict(block.data) if own else None
        case ImageContent():
            return None  # of another model: here only the user can show one
        case _:
            assert_never(block)


def _can_be_sent(item: dict[str, Any], answered: set[str], *, is_stored: bool) -> bool:
    if item["type"] == "reasoning":
        # What was only summed up is looked for among what the server keeps.
        return is_stored or "encrypted_content" in item or "content" in item
    is_asked = item["type"] in ASKED_OF_CLIENT and item.get("execution") != "server"
    return not is_asked or item.get("call_id") in answered


def _answered_by_server(message: Message) -> Iterator[str]:
    """The ids of those calls that the server itself has answered in `message`."""
    if isinstance(message, AssistantMessage):
        for block in message.content:
            if isinstance(block, ServerContent) and own_of(block, PROVIDER):
                item = as_dict(block.data)
                if as_str(item.get("type")).endswith("_output"):
                    yield as_str(item.get("call_id"))
