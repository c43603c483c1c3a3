"""How a server writes chat completions: the chunks of a reply, for tests to put together."""

from __future__ import annotations

import json
from typing import Any

from op_jupyter.providers._chat_chunks import read_chunks
from tests.providers.adapter import Reply

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
