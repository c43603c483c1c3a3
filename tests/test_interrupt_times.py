"""From an interrupt to the end of the run is less than a tenth of a second, whatever the run is at.

Real signals and a real connection; `pytest -rP tests/test_interrupt_times.py` shows the figures.
"""

from __future__ import annotations

import asyncio
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from op_jupyter import Runtime, function
from op_jupyter.context import _current_run
from op_jupyter.events import StreamEnd, StreamEvent
from op_jupyter.messages import ToolCall
from op_jupyter.providers import Model, Request
from op_jupyter.providers.openai_chat import model as openai_model
from op_jupyter.testing import call, scripted
from op_jupyter.tools.registry import AgentTool
from tests.providers.adapter import KEY
from tests.providers.wire_server import Answer, WireServer

LONG = 30.0
"""Seconds that nothing here may really take."""

TIMES = 20


@dataclass
class Moment:
    """Something to ask, and how to wait, from another thread, until the run is where it is to be interrupted."""

    runtime: Runtime
    wait: Callable[[], Any]
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


def silent_model(reached: threading.Event) -> Model:
    def stream(request: Request) -> Iterator[StreamEvent]:
        abandoned = threading.Event()
        request.on_abandon.append(abandoned.set)
        reached.set()
        abandoned.wait(LONG)
        yield StreamEnd("stop")

    return Model("silent", "", stream)


def calls(tool: Callable[..., Any], reached: threading.Event, **arguments: Any) -> Moment:
    """The model calls this function, which sets `reached`."""
    runtime = Runtime(model=scripted([[call(tool.__name__)], "never"]))
    return Moment(runtime, lambda: reached.wait(LONG), {"tools": [tool], **arguments})


@contextmanager
def a_silent_stream() -> Iterator[Moment]:
    reached = threading.Event()
    yield Moment(Runtime(model=silent_model(reached)), lambda: reached.wait(LONG))


@contextmanager
def a_connection_whose_headers_never_come() -> Iterator[Moment]:
    with WireServer().running() as server:
        server.script = [Answer(pieces=[threading.Event()])]
        runtime = Runtime(model=openai_model("gpt-test"), api_key=KEY, base_url=f"{server.url}/v1")
        yield Moment(runtime, server.wait_until_asked)


@contextmanager
def a_sleeping_function() -> Iterator[Moment]:
    reached = threading.Event()

    def sleep() -> None:
        reached.set()
        time.sleep(LONG)

    yield calls(sleep, reached)


@contextmanager
def a_function_that_swallows_everything() -> Iterator[Moment]:
    reached = threading.Event()

    def stubborn() -> str:
        try:
            reached.set()
            time.sleep(LONG)
        except BaseException:
            return "nothing happened"
        return "slept"

    yield calls(stubborn, reached)


@contextmanager
def a_nested_run() -> Iterator[Moment]:
    reached = threading.Event()

    def research() -> str:
        return Runtime(model=silent_model(reached)).exec("look", tools=[])

    yield calls(research, reached)


@contextmanager
def a_coroutine_function() -> Iterator[Moment]:
    reached = threading.Event()

    async def wait() -> None:
        reached.set()
        await asyncio.sleep(LONG)

    yield calls(wait, reached)


@contextmanager
def a_function_in_a_thread_of_its_own() -> Iterator[Moment]:
    reached, release = threading.Event(), threading.Event()

    @function(timeout=LONG, expose=False)
    def threaded() -> None:
        reached.set()
        release.wait(LONG)

    yield calls(threaded, reached)
    release.set()


@contextmanager
def a_question_to_a_person() -> Iterator[Moment]:
    reached = threading.Event()

    @function(requires_approval=True, expose=False)
    def delete() -> None: ...

    def ask(call: ToolCall, tool: AgentTool) -> bool:
        current = _current_run.get()
        assert current is not None
        reached.set()
        return current.control.result(Future(), LONG, "nobody has answered")

    yield calls(delete, reached, on_approval=ask)


def seconds_to_the_end(moment: Moment) -> float:
    sent: list[float] = []

    def interrupt() -> None:
        moment.wait()
        time.sleep(0.01)  # until the main thread blocks
        sent.append(time.perf_counter())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        moment.runtime.exec("go", **moment.arguments)
    ended = time.perf_counter()
    thread.join()
    run = moment.runtime.last_run
    assert run is not None and run.stop_reason == "aborted"
    return ended - sent[0]


@pytest.mark.parametrize(
    "moment",
    [
        a_silent_stream,
        a_connection_whose_headers_never_come,
        a_sleeping_function,
        a_function_that_swallows_everything,
        a_nested_run,
        a_coroutine_function,
        a_function_in_a_thread_of_its_own,
        a_question_to_a_person,
    ],
    ids=lambda moment: moment.__name__.replace("_", " "),
)
def test_an_interrupt_ends_a_run_at_once_that_waits_for(moment: Callable[[], AbstractContextManager[Moment]]) -> None:
    times: list[float] = []
    for _ in range(TIMES):
        with moment() as one:
            times.append(seconds_to_the_end(one))
    print(f"median {statistics.median(times) * 1000:.1f} ms, longest {max(times) * 1000:.1f} ms of {TIMES}")
    assert statistics.median(times) < 0.1
