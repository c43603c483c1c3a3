"""A decorated function inside a wrapper: what is passed is what is called, and the decorator's options hold.

The decorators themselves are in `tools/test_decorators`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from op_jupyter import Runtime, agentic_function, function
from op_jupyter.testing import call, scripted
from op_jupyter.tools.registry import as_tool
from tests.conversation import results, the_run

wiped: list[int] = []


@pytest.fixture(autouse=True)
def nothing_is_wiped() -> None:
    wiped.clear()


def guard(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """Let nothing above 5 through."""

    @functools.wraps(wrapped)
    def guarded(*args: Any, **arguments: Any) -> Any:
        if arguments["n"] > 5:
            raise PermissionError("not more than 5")
        return wrapped(*args, **arguments)

    return guarded


@guard
@function(requires_env=["MAY_WIPE"], timeout=7)
def wipe(n: int) -> str:
    """Wipe some disks."""
    wiped.append(n)
    return f"wiped {n}"


@guard
@agentic_function
def ask(n: int, runtime: Runtime) -> str:
    """Ask."""
    return f"{n} {type(runtime).__name__}"


def test_the_wrapper_of_a_decorated_function_is_what_a_model_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAY_WIPE", "1")
    runtime = Runtime(scripted([[call("wipe", n=9), call("wipe", n=1)], "ok"]))
    runtime.exec("go", tools=[wipe])
    assert [result.text for result in results(the_run(runtime))] == ["PermissionError: not more than 5", "wiped 1"]
    assert wiped == [1]


def test_the_wrapper_of_a_decorated_function_is_what_a_pick_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAY_WIPE", "1")
    with pytest.raises(PermissionError):
        Runtime(scripted(['{"call": "wipe", "n": 9}'])).exec("go", tools=[], choices=[wipe])
    assert wiped == []


def test_an_agentic_function_inside_a_wrapper_is_still_given_the_runtime() -> None:
    runtime = Runtime(scripted([[call("ask", n=9), call("ask", n=2)], "ok"]))
    runtime.exec("go", tools=[ask])
    assert [result.text for result in results(the_run(runtime))] == ["PermissionError: not more than 5", "2 Runtime"]


def test_a_wrapper_keeps_the_options_of_the_decorator_and_the_description() -> None:
    tool = as_tool(wipe)
    assert (tool.name, tool.description) == ("wipe", "Wipe some disks.")
    assert (tool.requires_env, tool.timeout) == (frozenset(["MAY_WIPE"]), 7)
    assert list(as_tool(ask).parameters["properties"]) == ["n"]


def test_a_partial_that_looks_like_a_decorated_function_is_called_with_what_it_fixes() -> None:
    @function
    def scale(n: int, by: int = 1) -> int:
        """Scale."""
        return n * by

    tripled = functools.update_wrapper(functools.partial(scale, by=3), scale)
    runtime = Runtime(scripted([[call("scale", n=2)], "ok"]))
    runtime.exec("go", tools=[tripled])
    assert [result.text for result in results(the_run(runtime))] == ["6"]


def test_what_is_not_available_is_not_so_in_a_wrapper_either() -> None:
    @guard
    @function(available_if=False)
    def absent(n: int) -> None: ...

    runtime = Runtime(scripted(["ok"]))
    runtime.exec("go", tools=[absent])
    assert the_run(runtime).tools == []
