"""How a server writes OpenAI responses, and what it is sent: for tests to put together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

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
from op_jupyter.providers._responses_events import read_events
from op_jupyter.providers.openai_responses import model, request_body
from tests.providers.adapter import KEY, Adapter, Call, Reply
from tests.providers.recordings import read_to_end

CREATED: dict[str, Any] = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}


def event(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def item(position: int, whole: dict[str, Any], *between: dict[str, Any], **begun: Any) -> list[dict[str, Any]]:
    """The events of a whole item, which is `begun` otherwise than it ends."""
    return [
        {"type": "response.output_item.added", "output_index": position, "item": whole | begun},
        *({"output_index": position, "item_id": whole.get("id")} | one for one in between),
        {"type": "response.output_item.done", "output_index": position, "item": whole},
    ]


def delta(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "delta": text} | more


def text(position: int, *pieces: str, **more: Any) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": "".join(pieces), "annotations": [], "logprobs": []}
    whole = {"type": "message", "id": f"msg_{position}", "role": "assistant", "status": "completed", "content": [part]}
    return item(position, whole | more, *(delta("output_text", piece) for piece in pieces), content=[])


def thinking(position: int, *pieces: str, encrypted: str | None = "ZW5j") -> list[dict[str, Any]]:
    summary = [{"type": "summary_text", "text": "".join(pieces)}] if pieces else []
    whole = {"type": "reasoning", "id": f"rs_{position}", "summary": summary, "encrypted_content": encrypted}
    deltas = [delta("reasoning_summary_text", piece) for piece in pieces]
    return item(position, whole, *deltas, summary=[], encrypted_content="b25seSBoYWxm")


def call(position: int, call_id: str, name: str, *pieces: str, **more: Any) -> list[dict[str, Any]]:
    whole = {"type": "function_call", "id": f"fc_{position}", "call_id": call_id, "name": name, "status": "completed"}
    deltas = [delta("function_call_arguments", piece) for piece in pieces]
    return item(position, whole | {"arguments": "".join(pieces)} | more, *deltas, arguments="")


def end(status: str = "completed", usage: Usage | None = None, **response: Any) -> dict[str, Any]:
    counted = usage or Usage(input=7, output=3)
    tokens = {
        "input_tokens": counted.input + counted.cache_read,
        "input_tokens_details": {"cached_tokens": counted.cache_read},
        "output_tokens": counted.output,
        "output_tokens_details": {"reasoning_tokens": counted.reasoning},
    }
    return {"type": f"response.{status}", "response": {"id": "resp_1", "status": status, "usage": tokens} | response}


def whole(*events: dict[str, Any] | list[dict[str, Any]], **ending: Any) -> list[bytes]:
    """The pieces of a whole reply with these events between its first and its last one."""
    between = [one for some in events for one in (some if isinstance(some, list) else [some])]
    return [*map(event, [CREATED, *between, end(**ending)])]


def reply_of(*pieces: bytes, model: str = "gpt-test") -> Reply:
    """What a reply of these pieces is read as."""
    data = [piece.decode().partition("data: ")[2].strip() for piece in pieces]
    return Reply(list(read_events(data, model)))


class OpenAIResponses(Adapter):
    content_type = "text/event-stream; charset=utf-8"
    key_name = "OPENAI_API_KEY"
    base_url_hint = " (is base_url right? Most end in /v1)"
    client_name = "openai.OpenAI"

    def model(self) -> Model:
        return model("gpt-test")

    def connection(self, url: str) -> Connection:
        return Connection(api_key=KEY, base_url=f"{url}/v1")

    def other_client(self) -> Any:
        import openai

        return openai.AsyncOpenAI(api_key=KEY)

    def reply(self, parts: list[str | Call], usage: Usage) -> list[bytes]:
        said = [part for part in parts if isinstance(part, str)]
        calls = [part for part in parts if isinstance(part, Call)]
        items = [text(0, *said)] if said else []
        items += [call(place, one.id, one.name, *one.pieces) for place, one in enumerate(calls, start=len(items))]
        return whole(*items, usage=usage)

    def error_event(self, message: str) -> bytes:
        return event({"type": "error", "code": "server_error", "message": message, "param": None})

    def error_body(self, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "some_error", "param": None, "code": None}}).encode()

    def model_lists(self, names: list[str]) -> list[bytes]:
        models = [{"id": name, "object": "model", "created": 1, "owned_by": "openai"} for name in names]
        return [json.dumps({"object": "list", "data": models}).encode()]


# -------------------------------------------------------------------- what it is sent


def request(*messages: Message, system: str | None = None, tools: Sequence[ToolSpec] = (), **changes: Any) -> Request:
    """What the loop would ask: with a conversation that is fit to be sent again."""
    return Request("gpt-test", system, replayable(list(messages)), list(tools), **changes)


def body_of(*messages: Message, **settings: Any) -> dict[str, Any]:
    return request_body(request(*messages, **settings))


def input_of(*messages: Message, **settings: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = body_of(*messages, **settings)["input"]
    return items


def said(*content: Block, model: str = "gpt-test", **more: Any) -> AssistantMessage:
    """A whole reply of `model`."""
    own = {"openai-responses": {"model": model}}
    return AssistantMessage(list(content), provider="openai-responses", model=model, **{"provider_data": own, **more})


def thought(text: str = "", *, id: str = "rs_1", encrypted: str | None = "ZW5j", **more: Any) -> ThinkingContent:
    summary = [{"type": "summary_text", "text": text}] if text else []
    own = {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted} | more
    return ThinkingContent(text, not text, {"openai-responses": own})


def server(**data: Any) -> ServerContent:
    return ServerContent(data.get("name", data["type"]), data, {"openai-responses": {"type": data["type"]}})


# -------------------------------------------------------------------- the SDK's own types


def read_by_the_sdk(body: dict[str, Any]) -> Any:
    """What `body` is read as by the types of the SDK, which refuse what no such request has."""
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    types = TypeAdapter(ResponseCreateParamsStreaming)  # has to be there until all is read
    return read_to_end(types.validate_python(body))
