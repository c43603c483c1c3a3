"""Functions whose exceptions, callbacks and results are odd: the run goes on, and nothing grows without bound."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from op_jupyter import RunAborted, Runtime, function
from op_jupyter.testing import call, scripted
from op_jupyter.threads import background_loop
from tests.conversation import Conversation, results


class Unprintable(SyntaxError):
    """One that Python's own traceback cannot show."""

    @property
    def offset(self) -> int:  # type: ignore[override]  # odd on purpose
        raise ZeroDivisionError


def odd() -> None:
    raise Unprintable("bad")


def long() -> None:
    raise ValueError("x" * 1_000_000)


def test_no_exception_of_a_function_ends_the_run_or_fills_the_context_and_the_file() -> None:
    runtime = Runtime(model=scripted([[call("odd"), call("long")], "ok"]), tools=[odd, long])
    assert runtime.exec("go") == "ok"
    assert runtime.last_run is not None
    first, second = results(runtime.last_run)
    assert first.text == "Unprintable: bad"
    assert len(second.text) < 200_000 and len(runtime.last_run.to_json()) < 500_000


def test_a_callback_that_raises_stop_iteration_does_not_keep_aexec_waiting() -> None:
    async def main() -> None:
        runtime = Runtime(model=scripted(["ok"]))
        await asyncio.wait_for(runtime.aexec("go", get_steering_messages=lambda: next(iter([]))), 10)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(main())


def test_what_a_generator_yields_may_be_an_iterator_itself() -> None:
    def pairs() -> Iterator[Any]:
        yield zip([1, 2], [3, 4], strict=True)

    runtime = Runtime(model=scripted([[call("pairs")], "ok"]), tools=[pairs])
    runtime.exec("go")
    assert runtime.last_run is not None
    assert "[[[1, 3], [2, 4]]]" in runtime.last_run.to_json().replace(r"\n", "")


def test_a_coroutine_that_exits_is_answered_as_a_function_that_does() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def interrupt() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def fine() -> str:
        return "fine"

    talk = Conversation([call("leave"), call("interrupt"), call("fine")], "ok")
    assert talk.exec(tools=[leave, interrupt, fine]) == "ok"
    assert [result.text for result in results(talk.run)] == ["SystemExit: 3", "KeyboardInterrupt", "fine"]


@pytest.mark.parametrize("left_by", ["abort", "timeout"])
def test_a_coroutine_that_blocks_and_was_left_keeps_no_other_waiting(left_by: str) -> None:
    blocking, over = threading.Event(), threading.Event()

    @function(expose=False, timeout=0.05 if left_by == "timeout" else None)
    async def block() -> None:
        blocking.set()
        over.wait(10)

    async def quick() -> str:
        await asyncio.sleep(0)
        return "quick"

    first = Conversation([call("block")], "ok")
    if left_by == "abort":
        threading.Thread(target=lambda: blocking.wait(10) and first.runtime.abort()).start()
        with pytest.raises(RunAborted):
            first.exec(tools=[block])
    else:
        first.exec(tools=[block])
    second = Conversation([call("quick")], "ok")
    started = time.monotonic()
    try:
        second.exec(tools=[quick])
        assert time.monotonic() - started < 2
        assert results(second.run)[0].text == "quick"
    finally:
        over.set()


def test_a_coroutine_that_was_left_and_ends_leaves_the_others_their_event_loop() -> None:
    @function(expose=False, timeout=0.05)
    async def slow() -> None:
        await asyncio.sleep(10)

    loop = background_loop()
    talk = Conversation([call("slow")], "ok")
    talk.exec(tools=[slow])
    assert background_loop() is loop
