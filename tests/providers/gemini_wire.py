"""How a server writes Gemini, and what it is sent: for tests to put together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    Message,
    Usage,
)
from op_jupyter.providers import Connection, Model, Request, ToolSpec
from op_jupyter.providers._gemini_events import read_events
from op_jupyter.providers.gemini import model, request_body
from tests.providers.adapter import KEY, Adapter, Call, Reply

MODEL = "gemini-3-test"
COUNTED = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}


def event(value: Any) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\r\n\r\n".encode()


def chunk(*parts: dict[str, Any], finish: str | None = None, usage: Any = COUNTED, **more: Any) -> dict[str, Any]:
    """One chunk; `more` is said of its candidate."""
    candidate = {"content": {"parts": list(parts), "role": "model"} if parts else {"role": "model"}, "index": 0} | more
    return {
        "candidates": [candidate | ({"finishReason": finish} if finish else {})],
        "usageMetadata": usage,
        "modelVersion": MODEL,
    }


def text(said: str, **about: Any) -> dict[str, Any]:
    return {"text": said, **about}


def thought(said: str, **about: Any) -> dict[str, Any]:
    return {"text": said, "thought": True, **about}


def call(name: str | None = None, signature: str | None = None, **said: Any) -> dict[str, Any]:
    named = {"name": name} if name else {}
    return {"functionCall": named | said} | ({"thoughtSignature": signature} if signature else {})


def whole(*chunks: dict[str, Any]) -> list[bytes]:
    """The pieces of a whole reply: chunks, or parts with a chunk each, and the end."""
    said = [one if "candidates" in one else chunk(one) for one in chunks]
    return [*map(event, said), event(chunk(text(""), finish="STOP"))]


def reply_of(*chunks: dict[str, Any], finish: str | None = "STOP", **more: Any) -> Reply:
    """What a reply of these chunks or parts, and an end with `more` in it, is read as."""
    said = [one if one.keys() & {"candidates", "error", "promptFeedback"} else chunk(one) for one in chunks]
    closing = [chunk(finish=finish, **more)] if finish else []
    return Reply(list(read_events(json.dumps(one) for one in [*said, *closing])))


class Gemini(Adapter):
    content_type = "text/event-stream"
    key_name = "GEMINI_API_KEY"
    base_url_hint = " (is base_url right? /v1/models/… is added to it)"
    client_name = "google.genai.Client"

    def model(self) -> Model:
        return model(MODEL)

    def connection(self, url: str) -> Connection:
        return Connection(api_key=KEY, base_url=url)

    def other_client(self) -> Any:
        from google import genai

        return genai.Client(api_key=KEY).aio

    def reply(self, parts: list[str | Call], usage: Usage) -> list[bytes]:
        prompt = usage.input + usage.cache_read
        counted = {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": prompt + usage.output,
        }
        chunks = [chunk(_part(part), usage={"promptTokenCount": prompt}) for part in parts]
        return [*map(event, [*chunks, chunk(text(""), finish="STOP", usage=counted)])]

    def error_event(self, message: str) -> bytes:
        return event({"error": {"code": 500, "message": message, "status": "INTERNAL"}})

    def error_body(self, message: str) -> bytes:
        return json.dumps({"error": {"code": 400, "message": message, "status": "SOME_STATUS"}}).encode()

    def model_lists(self, names: list[str]) -> list[bytes]:
        models = [{"name": f"models/{name}", "supportedGenerationMethods": ["generateContent"]} for name in names]
        models.append({"name": "models/embedding", "supportedGenerationMethods": ["embedContent"]})
        return [json.dumps({"models": models}).encode()]


def _part(part: str | Call) -> dict[str, Any]:
    if isinstance(part, str):
        return text(part)
    arguments = {"args": json.loads("".join(part.pieces))} if part.pieces else {}
    return call(part.name, id=part.id, **arguments)


# -------------------------------------------------------------------- what it is sent


def request(*messages: Message, system: str | None = None, tools: Sequence[ToolSpec] = (), **changes: Any) -> Request:
    """What the loop would ask: with a conversation that is fit to be sent again."""
    asked = changes.pop("model", MODEL)
    return Request(asked, system, replayable(list(messages)), list(tools), **changes)


def body_of(*messages: Message, on_vertex: bool = False, **settings: Any) -> dict[str, Any]:
    return request_body(request(*messages, **settings), on_vertex=on_vertex)


def contents_of(*messages: Message, **settings: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(content["role"], content["parts"]) for content in body_of(*messages, **settings)["contents"]]


def said(*content: Block, **more: Any) -> AssistantMessage:
    return AssistantMessage(list(content), **{"provider": "gemini", "model": MODEL, **more})
