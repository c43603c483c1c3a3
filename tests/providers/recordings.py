"""What every provider has to do with the replies that were recorded of it: through its SDK, whole and cut in every way.

A provider's own test file makes a class of `Recordings`, and adds what is special to it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from pydantic import BaseModel

from op_jupyter.providers import Connection
from tests.providers.adapter import Adapter, Reply
from tests.providers.wire_server import Answer, WireServer

WIRE = Path(__file__).parents[3] / "shared" / "wire"
needs_recordings = pytest.mark.skipif(not WIRE.exists(), reason="the recordings are not on this machine")


def recorded(folder: str, pattern: str) -> list[Path]:
    """The recordings in `folder`, without what a plain parser has found in them."""
    return sorted(path for path in (WIRE / folder).glob(pattern) if ".expected" not in path.suffixes)


class Recordings:
    """The tests. A subclass whose name begins with `Test` sets `adapter` and `streams`, and what differs."""

    adapter: Adapter
    streams: list[Path]

    # What follows is said by each provider's own class; without it, its tests fail.

    def check(self, reply: Reply, path: Path) -> None:
        """Hold `reply` against what a plain parser has found in the recording."""
        raise NotImplementedError

    def closing(self, path: Path, wire: bytes) -> int:
        """Where the event begins that makes the reply a whole one."""
        raise NotImplementedError

    def client(self, pieces: list[bytes], headers: dict[str, str]) -> Any:
        """A client of the SDK that has these pieces as the answer to whatever it asks."""
        raise NotImplementedError

    def wire(self, path: Path) -> bytes:
        """What the server has sent."""
        return path.read_bytes()

    def headers(self, path: Path) -> dict[str, str]:
        """What the server has sent it with."""
        return {"content-type": self.adapter.content_type}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "path" in metafunc.fixturenames:
            metafunc.parametrize("path", self.streams, ids=lambda path: path.stem)

    def test_a_recorded_reply_over_a_socket_whole_and_in_two_reads(self, server: WireServer, path: Path) -> None:
        wire, connection = self.wire(path), self.adapter.connection(server.url)
        for cut in [0, *sorted(_some(range(1, len(wire)), 20, path))]:
            pieces = [piece for piece in (wire[:cut], wire[cut:]) if piece]
            server.script = [Answer(pieces=pieces, headers=self.headers(path))]
            self.check(self.adapter.ask(connection), path)

    def test_a_recorded_reply_whose_connection_is_lost_keeps_what_was_said(
        self, server: WireServer, path: Path
    ) -> None:
        wire, connection = self.wire(path), replace(self.adapter.connection(server.url), max_retries=0)
        server.script = [Answer(pieces=[wire], headers=self.headers(path))]
        whole = self.adapter.ask(connection)
        for cut in _some(range(1, self.closing(path, wire)), 20, path):
            server.script = [Answer(pieces=[wire[:cut]], headers=self.headers(path), then="cut")]
            broken = self.adapter.ask(connection)
            assert (broken.end.stop_reason, broken.end.error_kind) == ("error", "connection")
            assert whole.text.startswith(broken.text)
            assert len(broken.content) <= len(whole.content)

    def test_a_recorded_reply_cut_at_every_byte_comes_out_the_same(self, path: Path) -> None:
        wire = self.wire(path)
        pieces = [wire]
        connection = Connection(client=self.client(pieces, self.headers(path)))
        whole = self.adapter.ask(connection)
        self.check(whole, path)
        pieces[:] = [wire[position : position + 1] for position in range(len(wire))]
        assert self.adapter.ask(connection).events == whole.events, "in bytes"
        for cut in _some(range(1, len(wire)), 100, path):
            pieces[:] = [wire[:cut], wire[cut:]]
            assert self.adapter.ask(connection).events == whole.events, f"cut at byte {cut}"


def _some(positions: range, count: int, path: Path) -> list[int]:
    """As many of `positions`, always the same for a recording."""
    return random.Random(path.stem).sample(positions, min(count, len(positions)))


def answering(pieces: list[bytes], headers: Mapping[str, str]) -> httpx2.Client:
    """A client that has these pieces as the answer to whatever it asks."""
    answer = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=iter(pieces)))
    return httpx2.Client(transport=answer)


def read_to_end(value: Any) -> Any:
    """`value` with all that pydantic validates only when it is read, and without what has no place in the types."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, dict):
        return {name: read_to_end(item) for name, item in cast(dict[str, Any], value).items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [read_to_end(item) for item in value]
