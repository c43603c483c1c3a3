"""What functions print and display while they run: all of it, in order, soon, without keys, and at little cost.

On the real capture of a shell; how outputs look is in `test_static`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from op_jupyter import Run, Runtime
from op_jupyter.events import AgentEvent, AgentEventToolUpdate
from op_jupyter.notebook.host import captured_output
from op_jupyter.record import CallStep
from op_jupyter.testing import call, scripted
from tests.conversation import results, the_run

KEY = "sk-abcdefghijklmnop"


@pytest.fixture
def streams() -> Iterator[None]:
    """The streams of this process, as they were, after the test."""
    before = sys.stdout, sys.stderr
    yield
    sys.stdout, sys.stderr = before


@pytest.fixture
def runtime(shell: InteractiveShell, streams: None) -> Runtime:
    runtime = Runtime()
    runtime.capture = lambda emit_output: captured_output(shell, emit_output)
    return runtime


def ran(runtime: Runtime, function: Callable[..., Any], **arguments: Any) -> Run:
    runtime.exec("go", model=scripted([[call(function.__name__)], "ok"]), tools=[function], **arguments)
    return the_run(runtime)


def outputs(run: Run) -> list[dict[str, Any]]:
    """What the calls of a run wrote."""
    return [output for step in run.steps if isinstance(step, CallStep) for output in step.output]


def printed(run: Run) -> str:
    """What a call printed in one stream."""
    (output,) = outputs(run)
    return str(output["text"])


def stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def test_4_mb_printed_line_by_line_cost_little_and_are_few_events(runtime: Runtime) -> None:
    def chatty() -> None:
        for _ in range(40_000):
            print("x" * 99)

    events: list[AgentEvent] = []
    started = time.perf_counter()
    run = ran(runtime, chatty, on_event=events.append)
    assert time.perf_counter() - started < 4
    assert printed(run) == ("x" * 99 + "\n") * 40_000
    assert len(events) < 500


def test_what_was_printed_shows_while_the_function_blocks(runtime: Runtime) -> None:
    shown = threading.Event()

    def slow() -> float:
        print("step 1")
        started = time.perf_counter()
        assert shown.wait(10)
        return time.perf_counter() - started

    def watch(event: AgentEvent) -> None:
        if isinstance(event, AgentEventToolUpdate) and "step 1" in event.output["text"]:
            shown.set()

    run = ran(runtime, slow, on_event=watch)
    assert run.values["call_1"] < 1


def test_prints_errors_and_pictures_stand_in_the_order_in_which_they_came(runtime: Runtime) -> None:
    def mixed() -> None:
        print("a")
        print("b")
        print("c", file=sys.stderr)
        display({"text/plain": "picture"}, raw=True)
        print("d")

    run = ran(runtime, mixed)
    picture = {"output_type": "display_data", "data": {"text/plain": "picture"}, "metadata": {}}
    assert outputs(run) == [stream("stdout", "a\nb\n"), stream("stderr", "c\n"), picture, stream("stdout", "d\n")]


def test_a_key_that_is_printed_in_pieces_is_in_nothing_that_is_written(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    monkeypatch.setenv("OP_JUPYTER_EVENTS", str(tmp_path / "events.jsonl"))
    seen = threading.Event()

    def leak() -> None:
        sys.stdout.write("the key: " + KEY[:8])
        assert seen.wait(10)
        for character in KEY[8:]:
            sys.stdout.write(character)
        print(" and ", end="")
        print(KEY[:4], end="")
        print(KEY[4:])

    def watch(event: AgentEvent) -> None:
        if isinstance(event, AgentEventToolUpdate):
            seen.set()

    run = ran(runtime, leak, on_event=watch)
    assert printed(run) == "the key: [redacted] and [redacted]\n"
    assert KEY not in run.to_json()
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert KEY not in "".join(line["output"]["text"] for line in lines if line["kind"] == "tool_update")


def test_a_key_that_is_in_the_environment_for_a_moment_only_is_not_told(runtime: Runtime) -> None:
    def login() -> None:
        print("logging in")
        os.environ["LATE_API_KEY"] = KEY
        print("with", KEY)
        del os.environ["LATE_API_KEY"]
        print("again with", KEY)

    assert printed(ran(runtime, login)) == "logging in\nwith [redacted]\nagain with [redacted]\n"


def test_a_listener_that_prints_what_it_is_told_is_not_told_of_that(runtime: Runtime) -> None:
    def outer() -> str:
        print("outer")
        inner = Runtime(model=scripted(["A reply in some words."]))
        return str(inner.exec("inner", tools=[]))

    events: list[AgentEvent] = []

    def listen(event: AgentEvent) -> None:
        events.append(event)
        print(event)

    ran(runtime, outer, on_event=listen)
    assert len(events) < 100


def test_a_listener_that_leaves_when_something_is_printed_ends_the_run_and_every_call_is_answered(
    runtime: Runtime,
) -> None:
    left = threading.Event()

    def slow() -> str:
        print("step 1")
        assert left.wait(10)
        return "done"

    def leave(event: AgentEvent) -> None:
        if isinstance(event, AgentEventToolUpdate):
            left.set()
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        ran(runtime, slow, on_event=leave)
    run = the_run(runtime)
    assert printed(run) == "step 1\n" and [result.text for result in results(run)] == ["done"]
