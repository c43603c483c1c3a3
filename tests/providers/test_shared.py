"""What all providers share: sending again, reading server-sent events, and the arguments of calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from op_jupyter import Run, Runtime
from op_jupyter.arguments import MAX_DEPTH
from op_jupyter.events import BlockStart, StreamEvent
from op_jupyter.messages import TextContent, UserMessage
from op_jupyter.providers import Request
from op_jupyter.providers._shared import ProviderError, stream_with_retries
from op_jupyter.providers._wire import parse_arguments, sse_data
from op_jupyter.testing import call, scripted
from tests.providers.adapter import Reply


@pytest.mark.parametrize("error", [ProviderError("Lost", "connection", retry=True), KeyError("surprise")])
def test_what_fails_after_it_has_said_something_is_an_error_and_not_sent_again(error: Exception) -> None:
    attempts: list[int] = []

    def attempt() -> Iterator[StreamEvent]:
        attempts.append(1)
        yield BlockStart(0, TextContent(""))
        raise error

    reply = Reply(list(stream_with_retries(Request("m", None, [UserMessage("Hi")], []), attempt)))
    assert reply.end.stop_reason == "error"
    assert (len(attempts), reply.retries) == (1, [])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_only_the_three_line_ends_end_a_line(newline: str, size: int) -> None:
    inside = "a\u2028b\u2029c\u0085d\x0be\x0cf 😀"
    lines = [
        ": comment",
        "",
        f"data: {inside}",
        "",
        "event: x",
        "id: 1",
        "data:1",
        "data: 2",
        "retry: 3",
        "",
        "",
        "id: 2",
        "",
    ]
    wire = newline.join([*lines, ""]).encode()
    pieces = [wire[start : start + size] for start in range(0, len(wire), size)]
    assert list(sse_data(pieces)) == [inside, "1\n2"]


def test_the_last_event_may_lack_its_empty_line_but_not_the_end_of_its_own() -> None:
    assert list(sse_data([b"data: first\n\nda", b"ta: last\n"])) == ["first", "last"]
    assert list(sse_data([b"data: first\n\nda", b"ta: la"])) == ["first"]


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert list(sse_data([b"data: caf\xe9\n\n"])) == ["caf\ufffd"]


@pytest.mark.parametrize(
    ("text", "arguments", "raw"),
    [
        ("", {}, None),
        (" \n", {}, None),
        ("{}", {}, None),
        ('{"a": [1]}', {"a": [1]}, None),
        ('{}{"a": 1}', {"a": 1}, None),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}, None),
        ("null", {}, "null"),
        ("[1]", {}, "[1]"),
        ('{"a": 1', {}, '{"a": 1'),
        ('"{}"', {}, '"{}"'),
        ("[" * 100_000, {}, "[" * 100_000),
    ],
)
def test_arguments_are_an_object_or_kept_as_they_were_written(text: str, arguments: Any, raw: str | None) -> None:
    assert parse_arguments(text) == (arguments, raw)


@pytest.mark.parametrize("depth", [101, 150, 250, 900, 100_000])
@pytest.mark.parametrize("innermost", ["1", '"a\nb"'])
def test_arguments_nested_more_deeply_than_anyone_can_write_are_kept_as_they_were_written(
    depth: int, innermost: str
) -> None:
    text = '{"a":' * depth + innermost + "}" * depth
    assert parse_arguments(text) == ({}, text)


def test_a_record_of_arguments_as_deep_as_they_are_taken_can_be_read_however_deep_the_run_is_nested() -> None:
    deep, none = parse_arguments('{"value":' + "[" * 99 + "1" + "]" * 99 + "}")
    assert deep and none is None

    def keep(value: Any) -> str:
        return "kept"

    def ask() -> str:
        return runtime.exec("go on")

    replies = [[call("ask")]] * MAX_DEPTH + [[call("keep", **deep)]] + ["done"] * (MAX_DEPTH + 1)
    runtime = Runtime(scripted(replies))
    assert runtime.exec("go", tools=[ask, keep]) == "done"
    assert runtime.last_run is not None
    saved = runtime.last_run.to_json()
    assert '"kept"' in saved and Run.from_json(saved).to_json() == saved
