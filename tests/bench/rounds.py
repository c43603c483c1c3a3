"""What a round costs with a provider, against the same exchange over plain HTTP, parsed with `json`.

The same answers, in one process, the server in another. The least of several turns counts: other work only adds to it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

from op_jupyter.events import BlockEnd, StreamEnd
from op_jupyter.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from op_jupyter.providers import Request
from tests.bench.server import answering
from tests.providers.adapter import ADD, NOW, Adapter, Call
from tests.providers.wire_server import WireServer

ROUNDS = 40
REPLY: list[str | Call] = [Call("call_1", "add", ['{"a"', ":", " 1", ",", ' "b"', ":", " 2", "}"])]


@dataclass(frozen=True)
class Cost:
    """Milliseconds per round."""

    ours: float
    floor: float

    @property
    def ratio(self) -> float:
        """How many times the floor ours is."""
        return self.ours / self.floor


def cost_of_rounds(adapter: Adapter, earlier: int, turns: int = 10) -> Cost:
    """The cost of 40 rounds after a history of `earlier` messages; each round adds two."""
    reply = adapter.reply(REPLY, Usage(input=10, output=5))
    with WireServer().running() as recorder:
        recorder.script = [adapter.streamed(reply)] * ROUNDS
        _play(adapter, recorder.url, earlier)
        asked = recorder.asked
    with answering(adapter.content_type, reply) as url, httpx2.Client() as client:

        def floor() -> None:
            for one in asked:
                with client.stream("POST", f"{url}{one.path}", content=json.dumps(one.body)) as response:
                    assert list(_values(response.iter_bytes(), adapter.content_type))

        def least(work: Callable[[], None]) -> float:
            return min(times[work][1:]) * 1000 / ROUNDS

        def ours() -> None:
            _play(adapter, url, earlier)

        times: dict[Callable[[], None], list[float]] = {ours: [], floor: []}
        for _ in range(turns + 1):
            for work, taken in times.items():
                started = time.perf_counter()
                work()
                taken.append(time.perf_counter() - started)
        return Cost(least(ours), least(floor))


def _play(adapter: Adapter, url: str, earlier: int) -> None:
    model, connection = adapter.model(), adapter.connection(url)
    messages: list[Message] = [UserMessage("Add up.")]
    for number in range(earlier // 2):
        messages += _round(f"earlier_{number}", {"a": number, "b": 1}, model.provider)
    for number in range(ROUNDS):
        request = Request(model.name, "You add.", list(messages), [ADD, NOW], connection=connection)
        *_, block_end, end = model.stream(request)
        assert isinstance(end, StreamEnd) and end.stop_reason == "tool_use", end
        assert isinstance(block_end, BlockEnd) and isinstance(block_end.block, ToolCall)
        messages += _round(f"call_{number}", block_end.block.arguments, model.provider)


def _round(call_id: str, arguments: dict[str, Any], provider: str) -> list[Message]:
    call = ToolCall(call_id, "add", arguments)
    return [
        AssistantMessage([call], "tool_use", provider=provider),
        ToolResultMessage(call_id, "add", [TextContent("3")]),
    ]


def _values(body: Iterable[bytes], content_type: str) -> Iterator[Any]:
    """The values that a stream holds, by the plainest means."""
    pending = b""
    for piece in body:
        pending += piece
        if content_type.startswith("text/"):
            *lines, pending = pending.split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])
        else:  # frames of Amazon's: total length, length of the headers, a checksum, headers, payload, a checksum
            while len(pending) >= 12 and len(pending) >= (length := int.from_bytes(pending[:4])):
                payload = pending[12 + int.from_bytes(pending[4:8]) : length - 4]
                yield json.loads(payload)
                pending = pending[length:]
