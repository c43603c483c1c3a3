"""Runs inside of runs: what they inherit, where they stand in the record, how deep they go."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from op_jupyter import Run, RunError, Runtime, agentic_function, function
from op_jupyter.events import AgentEvent
from op_jupyter.providers import Request
from op_jupyter.testing import call, scripted
from tests.conversation import add, offered, the_run


def test_an_agentic_function_gets_the_current_runtime_and_its_run_stands_under_its_call() -> None:
    @agentic_function
    def research(topic: str, runtime: Runtime) -> str:
        """Find out about a topic."""
        return runtime.exec(f"About {topic}", tools=[])

    runtime = Runtime(model=scripted([[call("research", topic="rain")], "It rains.", "So: it rains."]))
    assert runtime.exec("go", tools=[research]) == "So: it rains."
    run = the_run(runtime)
    (child,) = run.children["call_1"]
    assert (child.text, child.rounds, run.rounds) == ("It rains.", 1, 2)
    assert Run.from_json(run.to_json()) == run


def test_a_nested_run_inherits_the_outer_menu_unless_it_names_its_own() -> None:
    menus: list[list[str]] = []

    def inner(request: Request) -> str:
        menus.append(offered(request))
        return "ok"

    def inherit() -> str:
        return runtime.exec("inner")

    def own() -> str:
        return runtime.exec("inner", tools=[add])

    runtime = Runtime(model=scripted([[call("inherit"), call("own")], inner, inner, "done"]))
    runtime.exec("go", tools=[inherit, own])
    assert menus == [["inherit", "own"], ["add"]]


@pytest.mark.parametrize("how", ["sync", "coroutine", "to_thread", "copied context", "timeout"])
def test_the_menu_is_inherited_wherever_the_context_is_copied(how: str) -> None:
    menus: list[list[str]] = []

    def inner(request: Request) -> str:
        menus.append(offered(request))
        return "ok"

    def ask() -> str:
        return runtime.exec("inner")

    def in_copied_context() -> str:
        answers: list[str] = []
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: answers.append(context.run(ask)))
        thread.start()
        thread.join()
        return answers[0]

    async def in_coroutine() -> str:
        return await runtime.aexec("inner")

    async def to_thread() -> str:
        return await asyncio.to_thread(ask)

    @function(timeout=10, expose=False)
    def with_timeout() -> str:
        """Ask with a timeout."""
        return ask()

    tool = {
        "sync": ask,
        "coroutine": in_coroutine,
        "to_thread": to_thread,
        "copied context": in_copied_context,
        "timeout": with_timeout,
    }[how]
    runtime = Runtime(model=scripted([[call(tool.__name__)], inner, "done"]))
    assert runtime.exec("go", tools=[tool, add]) == "done"
    assert menus == [[tool.__name__, "add"]]
    assert len(the_run(runtime).children["call_1"]) == 1


def test_a_bare_thread_gets_no_tools_rather_than_all() -> None:
    menus: list[list[str]] = []

    @function
    def everybody_sees() -> None:
        """Registered."""

    def inner(request: Request) -> str:
        menus.append(offered(request))
        return "ok"

    other = Runtime(model=scripted([inner]))

    def bare() -> None:
        thread = threading.Thread(target=lambda: other.exec("inner"))
        thread.start()
        thread.join()

    Runtime(model=scripted([[call("bare")], "done"])).exec("go", tools=[bare])
    assert menus == [[]]


def test_after_a_run_its_menu_is_forgotten_also_when_it_failed() -> None:
    def boom() -> None:
        raise RuntimeError

    menus: list[list[str]] = []
    runtime = Runtime(
        model=scripted([[call("boom")], RuntimeError("gone"), lambda r: menus.append(offered(r)) or "ok"])
    )
    with pytest.raises(RunError):
        runtime.exec("go", tools=[boom])
    runtime.exec("again", tools=[])
    assert menus == [[]]


def test_siblings_are_isolated_and_stand_in_order() -> None:
    def ask(n: int) -> str:
        return runtime.exec(f"inner {n}", tools=[])

    runtime = Runtime(model=scripted([[call("ask", n=1), call("ask", n=2)], "one", "two", "done"]))
    runtime.exec("go", tools=[ask])
    run = the_run(runtime)
    assert [[child.text for child in run.children[id]] for id in ("call_1", "call_2")] == [["one"], ["two"]]


def test_a_function_that_calls_itself_is_stopped_at_a_depth_with_a_clear_error() -> None:
    depth = 0

    def again() -> str:
        nonlocal depth
        depth += 1
        return runtime.exec("deeper")

    def reply(request: Request) -> object:
        last = request.messages[-1]
        return [call("again")] if last.kind == "user" else "up"

    runtime = Runtime(model=scripted([reply] * 40))  # type: ignore[list-item]
    runtime.exec("go", tools=[again])
    assert depth == 9
    run = the_run(runtime)
    for _ in range(8):
        run = run.children["call_1"][0]
    assert any("8 deep" in message.text for message in run.messages if message.kind == "tool_result")


def test_a_nested_run_that_fails_is_a_result_that_the_outer_model_reads() -> None:
    def ask() -> str:
        return runtime.exec("inner", tools=[])

    runtime = Runtime(model=scripted([[call("ask")], RunError("No credit left.", kind="quota"), "I see."]))
    assert runtime.exec("go", tools=[ask]) == "I see."
    assert the_run(runtime).messages[2].text == "RunError: No credit left."


def test_events_of_a_nested_run_carry_the_call_they_run_under() -> None:
    events: list[AgentEvent] = []

    def ask() -> str:
        return runtime.exec("inner", tools=[])

    runtime = Runtime(model=scripted([[call("ask")], "in", "out"]))
    runtime.exec("go", tools=[ask], on_event=events.append)
    nested = [event for event in events if event.parent_call_id == "call_1"]
    assert {event.run_id for event in nested} == {the_run(runtime).children["call_1"][0].run_id}
    assert [nested[0].kind, nested[-1].kind] == ["agent_start", "agent_end"]


def test_usage_of_a_run_counts_the_runs_nested_in_it() -> None:
    from op_jupyter.events import stream_of
    from op_jupyter.messages import AssistantMessage, TextContent, ToolCall, Usage
    from op_jupyter.providers import Model

    def ask() -> str:
        return runtime.exec("inner", tools=[])

    replies = iter(
        [
            AssistantMessage([ToolCall("1", "ask", {})], "tool_use", usage=Usage(10, 1)),
            AssistantMessage([TextContent("in")], usage=Usage(5, 2)),
            AssistantMessage([TextContent("out")], usage=Usage(20, 3)),
        ]
    )
    runtime = Runtime(model=Model("x", "", lambda request: stream_of(next(replies))))
    runtime.exec("go", tools=[ask])
    assert the_run(runtime).usage == Usage(35, 6) and the_run(runtime).usage.total == 41


def test_who_listens_to_a_nested_run_hears_that_run_alone() -> None:
    inner: list[AgentEvent] = []
    outer: list[AgentEvent] = []

    def ask() -> str:
        return runtime.exec("inner", tools=[], on_event=inner.append)

    runtime = Runtime(model=scripted([[call("ask")], "in", "out"]))
    runtime.exec("go", tools=[ask], on_event=outer.append)
    assert inner == [event for event in outer if event.parent_call_id == "call_1"] and len(inner) > 4


def test_what_a_function_leaves_behind_cannot_ask_in_a_run_that_is_over() -> None:
    over = threading.Event()
    failures: list[BaseException] = []

    def later() -> None:
        assert over.wait(30)
        try:
            runtime.exec("late", tools=[])
        except RunError as error:
            failures.append(error)
        try:
            asyncio.run(runtime.aexec("late", tools=[]))
        except RunError as error:
            failures.append(error)

    def leave() -> None:
        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(later,)))
        threads[0].start()

    threads: list[threading.Thread] = []
    runtime = Runtime(model=scripted([[call("leave")], "done", "never"]))
    runtime.exec("go", tools=[leave])
    over.set()
    threads[0].join(30)
    assert [str(error) for error in failures] == ["The run that this one would be part of is over."] * 2
