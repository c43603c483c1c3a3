"""How a server writes chat completions: the chunks of a reply, for tests to put together."""

from __future__ import annotations

import json
from typing import Any

from op_jupyter.messages import Usage
from op_jupyter.providers import Connection, Model
from op_jupyter.providers._chat_chunks import read_chunks
from op_jupyter.providers.openai_chat import model
from tests.providers.adapter import KEY, Adapter, Call, Reply

DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_delta(**delta: Any) -> dict[str, Any]:
    """A chunk with one delta of a call; `name` and `arguments` go into its `function`."""
    function = {key: delta.pop(key) for key in ("name", "arguments") if key in delta}
    return chunk({"tool_calls": [delta | {"function": function}]})


CALL_NOW = call_delta(index=0, id="c1", type="function", name="now", arguments="{}")
FINISH = chunk({}, "tool_calls")


def reply_of(*chunks: dict[str, Any]) -> Reply:
    return Reply(list(read_chunks([*map(json.dumps, chunks), "[DONE]"])))


class OpenAIChat(Adapter):
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
        chunks = [chunk({"role": "assistant", "content": ""})]
        position = 0
        for part in parts:
            if isinstance(part, str):
                chunks.append(chunk({"content": part}))
                continue
            chunks.append(call_delta(index=position, id=part.id, type="function", name=part.name, arguments=""))
            chunks += [call_delta(index=position, arguments=piece) for piece in part.pieces]
            position += 1
        counted = {
            "prompt_tokens": usage.input + usage.cache_read,
            "completion_tokens": usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
        chunks += [chunk({}, "tool_calls" if position else "stop"), {"choices": [], "usage": counted}]
        return [*map(event, chunks), DONE]

    def error_event(self, message: str) -> bytes:
        return event({"error": {"message": message, "code": None, "type": "server_error"}})

    def error_body(self, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "some_error", "param": None, "code": None}}).encode()

    def model_lists(self, names: list[str]) -> list[bytes]:
        models = [{"id": name, "object": "model", "created": 1, "owned_by": "openai"} for name in names]
        return [json.dumps({"object": "list", "data": models}).encode()]
