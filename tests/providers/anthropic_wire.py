"""How a server writes Anthropic messages, and what it is sent: for tests to put together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    Message,
    ServerContent,
    ThinkingContent,
    Usage,
)
from op_jupyter.providers import Connection, Model, Request, ToolSpec
from op_jupyter.providers._anthropic_events import read_events
from op_jupyter.providers.anthropic import basis, model, request_body
from tests.providers.adapter import HI, KEY, Adapter, Call, Reply

STOP = {"type": "message_stop"}
PING = {"type": "ping"}


def event(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def message_start(**usage: Any) -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
    }
    return {"type": "message_start", "message": message | {"usage": {"input_tokens": 7, "output_tokens": 1} | usage}}


def block(position: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a whole block."""
    return [
        {"type": "content_block_start", "index": position, "content_block": begun},
        *({"type": "content_block_delta", "index": position, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": position},
    ]


def text(position: int, *pieces: str) -> list[dict[str, Any]]:
    return block(position, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def thinking(position: int, *pieces: str, signature: str = "c2ln") -> list[dict[str, Any]]:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    begun = {"type": "thinking", "thinking": "", "signature": ""}
    return block(position, begun, *deltas, {"type": "signature_delta", "signature": signature})


def call(position: int, call_id: str, name: str, *pieces: str, kind: str = "tool_use") -> list[dict[str, Any]]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]
    return block(position, {"type": kind, "id": call_id, "name": name, "input": {}}, *deltas)


def message_delta(stop_reason: str, usage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None} | more
    return {"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 3}}


def whole(*events: dict[str, Any] | list[dict[str, Any]], stop_reason: str = "end_turn", **more: Any) -> list[bytes]:
    """The pieces of a whole reply with these events between its first and its last ones."""
    between = [one for some in events for one in (some if isinstance(some, list) else [some])]
    return [*map(event, [message_start(), *between, message_delta(stop_reason, **more), STOP])]


def reply_of(*pieces: bytes, basis: str = "b") -> Reply:
    """What a reply of these pieces is read as."""
    data = [piece.decode().partition("data: ")[2].strip() for piece in pieces]
    return Reply(list(read_events(data, basis)))


class Anthropic(Adapter):
    content_type = "text/event-stream; charset=utf-8"
    key_name = "ANTHROPIC_API_KEY"
    base_url_hint = " (is base_url right? /v1/messages is added to it)"
    client_name = "anthropic.Anthropic"

    def model(self) -> Model:
        return model("claude-test")

    def connection(self, url: str) -> Connection:
        return Connection(api_key=KEY, base_url=url)

    def other_client(self) -> Any:
        import anthropic

        return anthropic.AsyncAnthropic(api_key=KEY)

    def reply(self, parts: list[str | Call], usage: Usage) -> list[bytes]:
        said = [part for part in parts if isinstance(part, str)]
        calls = [part for part in parts if isinstance(part, Call)]
        events = [message_start(input_tokens=usage.input, cache_read_input_tokens=usage.cache_read), PING]
        events += text(0, *said) if said else []
        for position, part in enumerate(calls, start=1 if said else 0):
            events += call(position, part.id, part.name, *part.pieces)
        events += [message_delta("tool_use" if calls else "end_turn", {"output_tokens": usage.output}), STOP]
        return [*map(event, events)]

    def error_event(self, message: str) -> bytes:
        return event({"type": "error", "error": {"type": "api_error", "message": message}})

    def error_body(self, message: str) -> bytes:
        error = {"type": "some_error", "message": message}
        return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()

    def model_lists(self, names: list[str]) -> list[bytes]:
        models = [
            {"id": name, "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names
        ]
        return [json.dumps({"data": models, "has_more": False, "first_id": None, "last_id": None}).encode()]


# -------------------------------------------------------------------- what it is sent

UNCACHED: dict[str, Any] = {"cache_control": None}


def request(*messages: Message, system: str | None = None, tools: Sequence[ToolSpec] = (), **changes: Any) -> Request:
    """What the loop would ask: with a conversation that is fit to be sent again."""
    settings = {"options": UNCACHED, **changes}
    return Request("claude-test", system, replayable(list(messages)), list(tools), **settings)


def body_of(*messages: Message, **settings: Any) -> dict[str, Any]:
    return request_body(request(*messages, **settings))


def turns_of(*messages: Message, **settings: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(turn["role"], turn["content"]) for turn in body_of(*messages, **settings)["messages"]]


def said(*content: Block, **more: Any) -> AssistantMessage:
    return AssistantMessage(list(content), provider="anthropic", model="claude-test", **more)


def thought(thinking: str, *, signature: str = "c2ln", **settings: Any) -> ThinkingContent:
    """Thinking as it comes in the reply to a request with these settings."""
    own = {"signature": signature, "basis": basis(request(HI, **settings))}
    return ThinkingContent(thinking, provider_data={"anthropic": own})


def server(**data: Any) -> ServerContent:
    return ServerContent(data.get("name", data["type"]), data, {"anthropic": {"type": data["type"]}})
