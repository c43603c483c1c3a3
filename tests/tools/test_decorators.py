"""A decorated function stays a function, and becomes a tool."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from op_jupyter.errors import RunError
from op_jupyter.tools import decorators
from op_jupyter.tools.call import call_tool
from op_jupyter.tools.decorators import agentic_function, function
from op_jupyter.tools.gates import exposed
from op_jupyter.tools.registry import as_tool, registered
from op_jupyter.tools.validation import validate_tool_arguments


class FakeRuntime:
    """Stands for a Runtime, which a decorator only hands on."""


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    runtime = FakeRuntime()
    monkeypatch.setattr(decorators, "runtime_provider", lambda: runtime)
    return runtime


@pytest.mark.parametrize("decorator", [function, agentic_function])
def test_both_decorators_work_bare_and_with_arguments(decorator: Any) -> None:
    def bare(a: int) -> int:
        return a + 1

    def with_arguments(a: int) -> int:
        return a + 2

    bare = decorator(bare)
    with_arguments = decorator(max_result_chars=10)(with_arguments)
    assert (bare(1), with_arguments(1)) == (2, 3)
    assert [tool.name for tool in registered()] == ["bare", "with_arguments"]
    assert [as_tool(bare), as_tool(with_arguments)] == registered()
    assert as_tool(with_arguments).max_result_chars == 10


def test_running_a_cell_again_replaces_the_function_and_keeps_its_place() -> None:
    namespace: dict[str, Any] = {"function": function}
    cell = "@function\ndef first(): return {}\n"
    exec(cell.format(1), namespace)
    exec("@function\ndef second(): ...\n", namespace)
    exec(cell.format(2), namespace)

    assert [tool.name for tool in registered()] == ["first", "second"]
    assert call_tool(registered()[0], {}) == 2


def test_a_tool_that_is_not_exposed_is_used_only_where_it_is_named() -> None:
    @function(expose=False)
    def secret() -> None: ...

    assert exposed() == []
    assert as_tool(secret).name == "secret"


def test_hidden_parameters_are_not_shown_and_keep_their_default() -> None:
    database = object()

    @function(hidden=("db",))
    def query(sql: str, db: Any = database) -> Any:
        return sql, db

    tool = as_tool(query)
    assert list(tool.parameters["properties"]) == ["sql"]
    assert call_tool(tool, validate_tool_arguments(tool, {"sql": "select 1"})) == ("select 1", database)
    with pytest.raises(ValueError, match="db: no such parameter"):
        validate_tool_arguments(tool, {"sql": "select 1", "db": "other"})


def test_a_hidden_parameter_needs_a_default() -> None:
    with pytest.raises(TypeError, match="query: no model sees the parameter 'db': give it a default"):

        @function(hidden=("db",))
        def query(sql: str, db: Any) -> None: ...


def test_hiding_what_is_no_parameter_is_an_error() -> None:
    with pytest.raises(ValueError, match="query: hidden names 'database', which is not a parameter"):

        @function(hidden=["database"])
        def query(sql: str) -> None: ...


def test_runtime_is_filled_when_it_is_not_passed(runtime: FakeRuntime) -> None:
    @agentic_function
    def positional(task: str, runtime: Any) -> Any:
        return task, runtime

    @agentic_function
    def keyword(task: str, *, runtime: Any = None) -> Any:
        return task, runtime

    @agentic_function
    def first(runtime: Any, task: str) -> Any:
        return task, runtime

    other = FakeRuntime()
    assert positional("x") == keyword("x") == first(task="x") == ("x", runtime)  # type: ignore[call-arg]
    assert positional("x", other) == keyword("x", runtime=other) == first(other, "x") == ("x", other)
    for tool in registered():
        assert list(tool.parameters["properties"]) == ["task"]
        assert call_tool(tool, validate_tool_arguments(tool, {"task": "x"})) == ("x", runtime)


def test_runtime_is_looked_up_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    @agentic_function
    def which(runtime: Any = None) -> Any:
        return runtime

    runtimes = iter("ab")
    monkeypatch.setattr(decorators, "runtime_provider", lambda: next(runtimes))
    assert (which(), which()) == ("a", "b")


def test_an_agentic_function_may_be_async(runtime: FakeRuntime) -> None:
    @agentic_function
    async def research(topic: str, runtime: Any = None) -> Any:
        return topic, runtime

    assert inspect.iscoroutinefunction(research)
    assert asyncio.run(research("x")) == ("x", runtime)


def test_an_agentic_function_with_more_positional_arguments_takes_runtime_by_name(runtime: FakeRuntime) -> None:
    @agentic_function
    def total(*numbers: int, runtime: Any) -> Any:
        return sum(numbers), runtime

    tool = as_tool(total)
    assert call_tool(tool, validate_tool_arguments(tool, {"numbers": [1, 2]})) == (3, runtime)
    with pytest.raises(TypeError, match="write the parameter runtime after a \\*"):

        @agentic_function
        def unclear(runtime: Any, *numbers: int) -> None: ...


def test_a_function_with_a_runtime_that_nobody_fills_is_an_error() -> None:
    with pytest.raises(TypeError, match="films: no model sees the parameter 'runtime': rename it, or use @agentic"):

        @function
        def films(runtime: int) -> None: ...


def test_without_a_runtime_the_error_says_what_to_import(monkeypatch: pytest.MonkeyPatch) -> None:
    @agentic_function
    def ask(runtime: Any = None) -> None: ...

    monkeypatch.setattr(decorators, "runtime_provider", decorators._no_runtime)
    with pytest.raises(RunError, match=r"import op_jupyter\.runtime"):
        ask()


def test_an_async_function_gives_a_coroutine() -> None:
    @function
    async def double(a: int) -> int:
        return 2 * a

    assert asyncio.run(double(2)) == 4
    assert asyncio.run(call_tool(as_tool(double), {"a": 2})) == 4


def test_what_a_generator_yields_is_read_into_a_list() -> None:
    @function
    def numbers() -> Iterator[int]:
        yield from (1, 2)

    @function
    async def letters() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    assert list(numbers()) == [1, 2]
    assert call_tool(as_tool(numbers), {}) == [1, 2]
    assert asyncio.run(call_tool(as_tool(letters), {})) == ["a", "b"]


def test_an_endless_generator_ends_with_a_note() -> None:
    @function
    def endless() -> Iterator[int]:
        while True:
            yield 1

    @function
    async def endless_async() -> AsyncIterator[int]:
        while True:
            yield 1

    expected = [1] * 1000 + ["(the rest, after 1000 items, unread)"]
    assert call_tool(as_tool(endless), {}) == expected
    assert asyncio.run(call_tool(as_tool(endless_async), {})) == expected


def test_a_lambda_has_no_name_to_call_it_by() -> None:
    with pytest.raises(ValueError, match="A lambda has no name that a model could call: write it with def"):
        function(lambda: 1)


def test_a_class_or_something_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="@function goes on a function, not on <class 'int'>"):
        function(int)
    with pytest.raises(TypeError, match="@agentic_function goes on a function, not on 'name'"):
        agentic_function("name")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"@function goes on a function, not on <classmethod"):

        class Search:
            @function
            @classmethod
            def web(cls) -> None: ...


def test_a_method_is_passed_bound_to_its_object() -> None:
    with pytest.raises(TypeError, match=r"web is a method: pass it bound to its object, in tools=\[object.web\]"):

        class Wrong:
            @function
            def web(self, query: str) -> None: ...

    class Search:
        def web(self, query: str) -> str:
            """Search the web."""
            return query.upper()

    tool = as_tool(Search().web)
    assert (tool.name, tool.description) == ("web", "Search the web.")
    assert call_tool(tool, validate_tool_arguments(tool, {"query": "x"})) == "X"
    with pytest.raises(TypeError, match=r"@function cannot mark <bound method .*: pass it in tools="):
        function(Search().web)


def test_a_static_method_works() -> None:
    class Search:
        @staticmethod
        @function
        def web(query: str) -> str:
            return query.upper()

    assert Search.web("x") == "X"
    assert [tool.name for tool in registered()] == ["web"]


@pytest.mark.parametrize("name", ["größe", "x" * 65])
def test_a_name_that_providers_refuse_is_an_error_at_once(name: str) -> None:
    namespace: dict[str, Any] = {"function": function}
    with pytest.raises(ValueError, match=f"'{name}' cannot be the name of a tool"):
        exec(f"@function\ndef {name}(): ...", namespace)


def test_the_decorators_load_nothing_heavy_until_they_are_used() -> None:
    code = "import op_jupyter.tools.decorators, sys; print('pydantic' in sys.modules, 'pydantic_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("decorate", [function, agentic_function])
def test_an_option_that_there_is_not_is_refused_with_those_there_are(decorate: Any) -> None:
    with pytest.raises(TypeError, match=r"function has no option 'time_out': there are .*, timeout, "):
        decorate(time_out=3)
