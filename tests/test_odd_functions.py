"""Functions whose exceptions, callbacks and results are odd: the run goes on, and nothing grows without bound."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from op_jupyter import Runtime
from op_jupyter.messages import ToolResultMessage
from op_jupyter.testing import call, scripted


class Unprintable(SyntaxError):
    """One that Python's own traceback cannot show."""

    @property
    def offset(self) -> int:  # type: ignore[override]
        raise ZeroDivisionError


def odd() -> None:
    raise Unprintable("bad")


def long() -> None:
    raise ValueError("x" * 1_000_000)


def test_no_exception_of_a_function_ends_the_run_or_fills_the_context_and_the_file() -> None:
    runtime = Runtime(model=scripted([[call("odd"), call("long")], "ok"]), tools=[odd, long])
    assert runtime.exec("go") == "ok"
    assert runtime.last_run is not None
    results = [message for message in runtime.last_run.new_messages if isinstance(message, ToolResultMessage)]
    assert results[0].text == "Unprintable: bad"
    assert len(results[1].text) < 200_000 and len(runtime.last_run.to_json()) < 500_000


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
