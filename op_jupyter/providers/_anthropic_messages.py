"""A conversation as Anthropic takes it back: its own blocks as they came, and what it can read of all others.

Pure functions from messages to the turns of a request body; no network here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
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
from op_jupyter.providers._anthropic_events import PROVIDER
from op_jupyter.providers._claude import digest, is_bound
from op_jupyter.providers._messages import call_id, join_text, own_of
from op_jupyter.providers._wire import as_dict, as_list, as_str

THINKING = ("thinking", "redacted_thinking")


def turns(messages: list[Message], basis: str) -> tuple[list[dict[str, Any]], str]:
    """The turns of the conversation, and what stands for all of them; of its thinking what is bound to this `basis`.

    All that follows one reply is one turn: the results of its calls, and then what the person says.
    """
    server_calls = _server_calls(messages)
    found: list[dict[str, Any]] = []
    before = basis
    for message in messages:
        match message:
            case UserMessage():
                role, content = "user", [_input_block(block) for block in message.content]
            case ToolResultMessage():
                role, content = "user", [_result(message)]
            case AssistantMessage():
                role, content = "assistant", _said(message, basis, before, server_calls)
            case _:
                assert_never(message)
        if role == "user" and found and found[-1]["role"] == role:
            found[-1]["content"] += content
        elif content:
            found.append({"role": role, "content": content})
        if content:
            before = digest(before, role, content)
    return found, before


def container(messages: list[Message]) -> str | None:
    """The container in which the server last ran code of this conversation, while it lasts."""
    latest: dict[str, Any] = {}
    for reply in _replies(messages):
        latest = as_dict(own_of(reply, PROVIDER).get("container")) or latest
    with suppress(ValueError, TypeError):
        if datetime.fromisoformat(as_str(latest.get("expires_at"))) > datetime.now(UTC):
            return as_str(latest.get("id")) or None
    return None


# -------------------------------------------------------------------- what the user says


def _input_block(block: InputBlock) -> dict[str, Any]:
    match block:
        case TextContent():
            return {"type": "text", "text": block.text}
        case ImageContent():
            source = {"type": "base64", "media_type": block.mime_type, "data": b64encode(block.data).decode()}
            return {"type": "image", "source": source}
        case _:
            assert_never(block)


def _result(message: ToolResultMessage) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id(message.tool_call_id)}
    if any(isinstance(block, ImageContent) for block in message.content):
        # With a picture in it, it would be refused as an error.
        return result | {"content": [_input_block(block) for block in message.content]}
    return result | {"content": join_text(message.content)} | ({"is_error": True} if message.is_error else {})


# -------------------------------------------------------------------- what the model said


def _said(message: AssistantMessage, basis: str, before: str, server_calls: set[str]) -> list[dict[str, Any]]:
    """The blocks of `message` that can be sent."""
    thoughts = [block for block in message.content if isinstance(block, ThinkingContent) and own_of(block, PROVIDER)]
    # One is bound to those before it.
    thinks = all(is_bound(own_of(block, PROVIDER), basis, before, block.thinking) for block in thoughts)
    said = [_said_block(block, thinks, server_calls) for block in message.content]
    shows = any(block and block["type"] in THINKING for block in said)
    # A blank text is refused, but beside signed thinking each block has to keep its place.
    content = [block for block in said if block and (shows or block["type"] != "text" or block["text"].strip())]
    while content and content[-1]["type"] in THINKING and message.stop_reason != "tool_use":
        content.pop()  # refused at the end of a reply
    return content


def _said_block(block: Block, thinks: bool, server_calls: set[str]) -> dict[str, Any] | None:
    match block:
        case TextContent():
            return _text(block)
        case ThinkingContent():
            return _thinking(block) if thinks and own_of(block, PROVIDER) else None
        case ToolCall():
            caller = as_dict(own_of(block, PROVIDER).get("caller"))
            known = {"caller": caller} if caller.get("tool_id") in server_calls else {}
            return {"type": "tool_use", "id": call_id(block.id), "name": block.name, "input": block.arguments} | known
        case ServerContent():
            data = as_dict(block.data)
            call = data.get("tool_use_id") or data.get("id")
            return (
                data if own_of(block, PROVIDER) and "type" in data and (call is None or call in server_calls) else None
            )
        case ImageContent():
            return None  # of another model: here only the user can show one
        case _:
            assert_never(block)


def _text(block: TextContent) -> dict[str, Any]:
    # The server says what file a citation is from, and refuses to be told.
    citations = [
        {name: value for name, value in as_dict(citation).items() if name != "file_id"}
        for citation in as_list(own_of(block, PROVIDER).get("citations"))
    ]
    return {"type": "text", "text": block.text} | ({"citations": citations} if citations else {})


def _thinking(block: ThinkingContent) -> dict[str, Any]:
    own = own_of(block, PROVIDER)
    if block.redacted:
        return {"type": "redacted_thinking", "data": own.get("data")}
    return {"type": "thinking", "thinking": block.thinking, "signature": own.get("signature")}


def _server_calls(messages: list[Message]) -> set[str]:
    """The ids of the calls to server tools that may be sent: those with a result, and those still going on.

    A reply that broke off may hold one that will never have its result.
    """
    blocks = [data for reply in _replies(messages) for data in _server_blocks(reply)]
    made = {as_str(data.get("id")) for data in blocks if "tool_use_id" not in data}
    answered = made & {as_str(data.get("tool_use_id")) for data in blocks}
    replies = list(_replies(messages))
    if not replies or replies[-1].stop_reason != "tool_use" or isinstance(messages[-1], UserMessage):
        return answered
    return answered | {as_str(data.get("id")) for data in _server_blocks(replies[-1])}


def _server_blocks(reply: AssistantMessage) -> list[dict[str, Any]]:
    return [
        as_dict(block.data) for block in reply.content if isinstance(block, ServerContent) and own_of(block, PROVIDER)
    ]


def _replies(messages: list[Message]) -> Iterator[AssistantMessage]:
    return (message for message in messages if isinstance(message, AssistantMessage))
