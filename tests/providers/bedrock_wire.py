"""How Bedrock writes a reply, and what it is sent: for tests to put together."""

from __future__ import annotations

import functools
import json
import struct
from base64 import b64decode, b64encode
from binascii import crc32
from collections.abc import Sequence
from importlib.util import find_spec
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
from op_jupyter.providers._bedrock_events import read_events
from op_jupyter.providers.bedrock import basis, model, request_body
from tests.providers.adapter import HI, KEY, Adapter, Call, Reply

EVENT_STREAM = {"content-type": "application/vnd.amazon.eventstream"}
CLAUDE = "us.anthropic.claude-test-v1:0"

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TOKEN = "FwoGZXIvYXdzEXAMPLETOKEN+/abcdefghijklmnop=="

Event = tuple[str, dict[str, Any]]


def account(**more: Any) -> Any:
    """A session of an account that there is not."""
    import boto3

    keys = {"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key": SECRET, "aws_session_token": TOKEN}
    return boto3.Session(**keys, **({"region_name": "eu-north-1"} | more))


def frame(headers: dict[str, str], payload: dict[str, Any]) -> bytes:
    """A message of an event stream."""
    named = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    body = json.dumps(payload, ensure_ascii=False).encode()
    prelude = struct.pack(">II", len(named) + len(body) + 16, len(named))
    message = prelude + struct.pack(">I", crc32(prelude)) + named + body
    return message + struct.pack(">I", crc32(message))


def event(kind: str, payload: dict[str, Any]) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, payload | {"p": "abcdefghij"})


def exception(kind: str, message: str) -> bytes:
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, {"message": message})


def delta(position: int, **value: Any) -> Event:
    return "contentBlockDelta", {"contentBlockIndex": position, "delta": value}


def stop(position: int) -> Event:
    return "contentBlockStop", {"contentBlockIndex": position}


def text(position: int, *pieces: str) -> list[Event]:
    return [*(delta(position, text=piece) for piece in pieces), stop(position)]


def reasoning(position: int, *pieces: str, signature: str = "c2ln") -> list[Event]:
    deltas = [delta(position, reasoningContent={"text": piece}) for piece in pieces]
    return [*deltas, delta(position, reasoningContent={"signature": signature}), stop(position)]


def call(position: int, call_id: str, name: str, *pieces: str, **more: Any) -> list[Event]:
    start = {"toolUse": {"toolUseId": call_id, "name": name} | more}
    begun = ("contentBlockStart", {"contentBlockIndex": position, "start": start})
    return [begun, *(delta(position, toolUse={"input": piece}) for piece in pieces), stop(position)]


def whole(*events: Event | list[Event], stop_reason: str = "end_turn", **usage: int) -> list[bytes]:
    """The pieces of a whole reply with these events between its first and its last ones."""
    between = [one for some in events for one in (some if isinstance(some, list) else [some])]
    counted = {"inputTokens": 7, "outputTokens": 3} | usage
    last: list[Event] = [
        ("messageStop", {"stopReason": stop_reason}),
        ("metadata", {"usage": counted | {"totalTokens": 10}, "metrics": {"latencyMs": 1}}),
    ]
    return [event(*one) for one in [("messageStart", {"role": "assistant"}), *between, *last]]


def messages_in(*pieces: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """The headers and the payload of each message in `pieces`."""
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    buffer.add_data(b"".join(pieces))
    return [(message.headers, message.payload) for message in buffer]


def reply_of(*pieces: bytes, basis: str = "b") -> Reply:
    """What a reply of these pieces is read as."""
    return Reply(list(read_events(messages_in(*pieces), basis)))


class Bedrock(Adapter):
    content_type = EVENT_STREAM["content-type"]
    key_name = "AWS_PROFILE"
    base_url_hint = ""
    client_name = "boto3.Session"

    def model(self) -> Model:
        return model(CLAUDE)

    def connection(self, url: str) -> Connection:
        return Connection(api_key=KEY, base_url=url)

    def other_client(self) -> Any:
        return account().client("sts")

    def reply(self, parts: list[str | Call], usage: Usage) -> list[bytes]:
        said = [part for part in parts if isinstance(part, str)]
        calls = [part for part in parts if isinstance(part, Call)]
        events = text(0, *said) if said else []
        for position, part in enumerate(calls, start=1 if said else 0):
            events += call(position, part.id, part.name, *part.pieces)
        counted = {
            "inputTokens": usage.input,
            "outputTokens": usage.output,
            "cacheReadInputTokens": usage.cache_read,
            "cacheWriteInputTokens": usage.cache_write,
        }
        return whole(events, stop_reason="tool_use" if calls else "end_turn", **counted)

    def error_event(self, message: str) -> bytes:
        return exception("modelStreamErrorException", message)

    def error_body(self, message: str) -> bytes:
        return json.dumps({"message": message, "__type": "SomeException"}).encode()

    def model_lists(self, names: list[str]) -> list[bytes]:
        first, *others = names
        profiles = [{"inferenceProfileId": name} for name in others]
        bodies = [{"modelSummaries": [{"modelId": first}]}, {"inferenceProfileSummaries": profiles}]
        return [json.dumps(body).encode() for body in bodies]


# -------------------------------------------------------------------- what it is sent

UNCACHED: dict[str, Any] = {"cachePoint": None}


def request(*messages: Message, system: str | None = None, tools: Sequence[ToolSpec] = (), **changes: Any) -> Request:
    """What the loop would ask: with a conversation that is fit to be sent again."""
    settings = {"model": CLAUDE, "options": UNCACHED, **changes}
    name = settings.pop("model")
    return Request(name, system, replayable(list(messages)), list(tools), **settings)


def body_of(*messages: Message, **settings: Any) -> dict[str, Any]:
    """The body of such a request, which is one that boto3 would accept too."""
    body = request_body(request(*messages, **settings))
    if find_spec("botocore"):
        from botocore.validate import ParamValidator

        report = ParamValidator().validate({"modelId": CLAUDE} | with_bytes(body), input_shape())
        assert not report.has_errors(), report.generate_report()
    return body


@functools.cache
def input_shape() -> Any:
    """What boto3 knows of a request."""
    from botocore.session import Session

    return Session().get_service_model("bedrock-runtime").operation_model("ConverseStream").input_shape


def with_bytes(value: Any) -> Any:
    """`value` as boto3 wants it: with bytes where the body has base64. It refuses what Converse does not know."""
    if isinstance(value, dict):
        return {
            name: b64decode(item) if name in ("bytes", "redactedContent") else with_bytes(item)
            for name, item in value.items()
        }
    return [with_bytes(item) for item in value] if isinstance(value, list) else value


def turns_of(*messages: Message, **settings: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(turn["role"], turn["content"]) for turn in body_of(*messages, **settings)["messages"]]


def said(*content: Block, **more: Any) -> AssistantMessage:
    return AssistantMessage(list(content), provider="bedrock", model=CLAUDE, **more)


def thought(thinking: str, *, signature: str = "c2ln", **settings: Any) -> ThinkingContent:
    """Reasoning as it comes in the reply to a request with these settings."""
    own = {"signature": signature, "basis": basis(request(HI, **settings))}
    return ThinkingContent(thinking, provider_data={"bedrock": own})


def encrypted(data: bytes, **settings: Any) -> ThinkingContent:
    own = {"redactedContent": b64encode(data).decode(), "basis": basis(request(HI, **settings))}
    return ThinkingContent("", redacted=True, provider_data={"bedrock": own})


def server(name: str, **data: Any) -> ServerContent:
    return ServerContent(name, data, {"bedrock": {"type": next(iter(data))}})
