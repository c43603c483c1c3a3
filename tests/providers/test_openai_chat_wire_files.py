"""Recorded replies of OpenAI chat completions and of the servers that speak it: through the real SDK."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import openai

from op_jupyter.messages import ThinkingContent
from tests.providers.adapter import KEY, Reply
from tests.providers.chat_wire import OpenAIChat
from tests.providers.recordings import Recordings, answering, recorded


class TestOpenAIChatRecordings(Recordings):
    adapter = OpenAIChat()
    streams = recorded("openai-chat", "*.sse")

    def check(self, reply: Reply, path: Path) -> None:
        expected = json.loads(path.with_suffix(".expected.json").read_text())
        end, tokens = reply.end, expected["usage"]
        thinking = "".join(block.thinking for block in reply.content if isinstance(block, ThinkingContent))
        assert reply.text == expected["text"]
        assert thinking == (expected["thinking"] or "")
        assert [{"name": call.name, "arguments": call.arguments} for call in reply.calls] == expected["tool_calls"]
        assert end.finish == expected["finish"]
        assert (end.usage.input + end.usage.cache_read, end.usage.output) == (tokens["input"], tokens["output"])
        if error := expected.get("error"):
            assert end.stop_reason == "error"
            assert error["message"] in (end.error_message or "")
        else:
            assert end.stop_reason == ("tool_use" if expected["tool_calls"] else "stop")

    def closing(self, path: Path, wire: bytes) -> int:
        finish = re.search(rb'"finish_reason": ?"', wire)
        return wire.rindex(b"data:", 0, finish.start()) if finish else wire.index(b"data: [DONE]")

    def client(self, pieces: list[bytes], headers: dict[str, str]) -> Any:
        return openai.OpenAI(api_key=KEY, http_client=answering(pieces, headers))
