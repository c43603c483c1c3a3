"""A call that needs a person's yes runs only when it gets one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal

import numpy
import pytest

from op_jupyter import Run, RunAborted, Runtime, agentic_function, function
from op_jupyter.context import _current_run
from op_jupyter.events import AgentEvent, AgentEventApproval
from op_jupyter.messages import ToolCall, ToolResultMessage
from op_jupyter.record import CallStep
from op_jupyter.testing import call, scripted
from op_jupyter.tools.registry import AgentTool

deleted: list[str] = []


@pytest.fixture(autouse=True)
def nothing_is_deleted() -> None:
    deleted.clear()


@function(requires_approval=True, expose=False)
def delete(name: str) -> str:
    """Delete a table."""
    deleted.append(name)
    return f"{name} is gone"


def asks(*names: str) -> Runtime:
    """A Runtime whose model deletes these tables in one message, and then ends."""
    return Runtime(model=scripted([[call("delete", name=name) for name in names], "Done."]), tools=[delete])


def answers(runtime: Runtime) -> list[str]:
    assert runtime.last_run is not None
    return [
        "".join(getattr(block, "text", "") for block in message.content)
        for message in runtime.last_run.new_messages
        if isinstance(message, ToolResultMessage)
    ]


REFUSED = "Not run: this call was not approved."


def test_what_is_allowed_runs_and_what_is_not_does_not_and_the_model_reads_so() -> None:
    runtime = asks("a", "b")
    seen: list[tuple[str, dict[str, Any], str]] = []

    def only_a(call: ToolCall, tool: AgentTool) -> bool:
        seen.append((call.name, call.arguments, tool.description))
        return bool(call.arguments["name"] == "a")

    events: list[AgentEvent] = []
    assert runtime.exec("Go", on_approval=only_a, on_event=events.append) == "Done."
    assert seen == [("delete", {"name": "a"}, "Delete a table."), ("delete", {"name": "b"}, "Delete a table.")]
    assert (deleted, answers(runtime)) == (["a"], ["a is gone", REFUSED])
    states = [event.state for event in events if isinstance(event, AgentEventApproval)]
    assert states == ["asked", "approved", "asked", "denied"]
    assert runtime.last_run is not None
    assert [step.state for step in runtime.last_run.steps if isinstance(step, CallStep)] == ["ok", "not_run"]


def test_where_nobody_can_be_asked_the_call_is_refused() -> None:
    runtime = asks("a")
    assert runtime.exec("Go") == "Done."
    assert (deleted, answers(runtime)) == ([], [REFUSED])


def test_arguments_that_do_not_fit_are_not_shown_to_anybody() -> None:
    runtime = Runtime(model=scripted([[call("delete", title="a")], "Done."]), tools=[delete])
    assert runtime.exec("Go", on_approval=lambda call, tool: pytest.fail("asked")) == "Done."
    assert "name" in answers(runtime)[0]


@pytest.mark.parametrize(("answer", "shown"), [("no", "'no'"), (numpy.True_, "np.True_")])
def test_an_answer_that_is_no_bool_is_not_a_yes(answer: Any, shown: str) -> None:
    runtime = asks("a")
    with pytest.raises(TypeError, match=f"on_approval returns True, False or 'always', not {shown}"):
        runtime.exec("Go", on_approval=lambda call, tool: answer)
    assert deleted == []
    # One result for every call, whatever happens.
    assert len(answers(runtime)) == 1


def test_a_nested_run_asks_whoever_the_outer_one_asks_unless_it_says_otherwise() -> None:
    @agentic_function(expose=False)
    def clean(name: str, strictly: bool, runtime: Runtime) -> str:
        """Clean up."""
        if strictly:
            return runtime.exec(name, tools=[delete], on_approval=lambda call, tool: False)
        return runtime.exec(name, tools=[delete])

    replies: list[Any] = [
        [call("clean", name="a", strictly=False), call("clean", name="b", strictly=True)],
        [call("delete", name="a")],
        "a done",
        [call("delete", name="b")],
        "b done",
        "Done.",
    ]
    runtime = Runtime(model=scripted(replies), tools=[clean])
    assert runtime.exec("Go", on_approval=lambda call, tool: True) == "Done."
    assert deleted == ["a"]


def approvals(run: Run) -> list[str | None]:
    return [step.approval for step in run.steps if isinstance(step, CallStep)]


def test_always_holds_for_the_function_in_the_run_and_in_those_nested_in_it_and_no_further() -> None:
    @function(requires_approval=True, expose=False)
    def rename(name: str) -> str:
        """Rename a table."""
        return f"{name} has another name"

    @agentic_function(expose=False)
    def clean(name: str, runtime: Runtime) -> str:
        """Clean up."""
        return runtime.exec(name, tools=[delete])

    asked: list[tuple[str, str]] = []

    def answer(call: ToolCall, tool: AgentTool) -> bool | Literal["always"]:
        asked.append((call.name, call.arguments["name"]))
        return "always" if call.arguments["name"] in ("b", "e") else True

    replies: list[Any] = [
        [call("delete", name="a"), call("delete", name="b"), call("delete", name="c"), call("rename", name="c")],
        [call("clean", name="d")],
        [call("delete", name="d")],
        "d done",
        "Done.",
    ]
    runtime = Runtime(model=scripted(replies), tools=[delete, rename, clean])
    runtime.exec("Go", on_approval=answer)
    assert asked == [("delete", "a"), ("delete", "b"), ("rename", "c")]
    assert deleted == ["a", "b", "c", "d"]
    run = runtime.last_run
    assert run is not None
    assert approvals(run) == ["approved", "always", "earlier", "approved", None]
    ((nested,),) = run.children.values()
    assert approvals(nested) == ["earlier"]
    assert Run.from_json(run.to_json()) == run

    # Said in a nested run, it does not reach the run around; and the next run asks again.
    asked.clear()
    replies = [[call("clean", name="e")], [call("delete", name="e")], "e done", [call("delete", name="f")], "Done."]
    Runtime(model=scripted(replies), tools=[delete, clean]).exec("Go", on_approval=answer)
    assert asked == [("delete", "e"), ("delete", "f")]


def test_where_a_nested_run_asks_somebody_else_the_outer_always_does_not_count() -> None:
    @agentic_function(expose=False)
    def clean(name: str, runtime: Runtime) -> str:
        """Clean up."""
        return runtime.exec(name, tools=[delete], on_approval=lambda call, tool: False)

    replies: list[Any] = [
        [call("delete", name="a"), call("clean", name="b")],
        [call("delete", name="b")],
        "No.",
        "Done.",
    ]
    Runtime(model=scripted(replies), tools=[delete, clean]).exec("Go", on_approval=lambda call, tool: "always")
    assert deleted == ["a"]


def waiting(asked: threading.Event, answer: Future[bool]) -> Callable[[ToolCall, AgentTool], bool]:
    """Asks for an `answer` that comes from elsewhere, as the notebook does."""

    def wait(call: ToolCall, tool: AgentTool) -> bool:
        current = _current_run.get()
        assert current is not None
        asked.set()
        return current.control.result(answer, 10, "nobody has answered")

    return wait


@pytest.mark.parametrize("allowed", [True, False])
def test_an_answer_comes_from_another_thread_while_the_run_waits(allowed: bool) -> None:
    runtime, asked = asks("a"), threading.Event()
    answered: Future[bool] = Future()
    states: list[str] = []

    def answer() -> None:
        asked.wait(10)
        assert runtime.under_way is not None
        states.extend(step.state for step in runtime.under_way.run.steps if isinstance(step, CallStep))
        answered.set_result(allowed)

    thread = threading.Thread(target=answer)
    thread.start()
    assert runtime.exec("Go", on_approval=waiting(asked, answered)) == "Done."
    thread.join()
    assert states == ["waiting"]
    assert deleted == (["a"] if allowed else [])


def test_a_run_that_waits_for_an_answer_can_be_stopped_at_once() -> None:
    runtime, asked = asks("a", "b"), threading.Event()
    stopped: list[float] = []

    def stop() -> None:
        asked.wait(10)
        stopped.append(time.monotonic())
        runtime.abort()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(RunAborted):
        runtime.exec("Go", on_approval=waiting(asked, Future()))
    assert time.monotonic() - stopped[0] < 0.1
    thread.join()
    assert deleted == []
    assert answers(runtime) == ["Not run: the run was stopped before this call."] * 2


def test_a_run_in_a_worker_thread_that_waits_for_an_answer_can_be_stopped_at_once() -> None:
    runtime, asked = asks("a"), threading.Event()

    async def main() -> float:
        task = asyncio.create_task(runtime.aexec("Go", on_approval=waiting(asked, Future())))
        await asyncio.to_thread(asked.wait, 10)
        stopped = time.monotonic()
        runtime.abort()
        with pytest.raises(RunAborted):
            await task
        return time.monotonic() - stopped

    assert asyncio.run(main()) < 0.1
    assert deleted == []


def test_the_time_that_a_person_took_is_not_the_time_of_the_call() -> None:
    runtime = asks("a")

    def slowly(call: ToolCall, tool: AgentTool) -> bool:
        time.sleep(0.2)
        return True

    runtime.exec("Go", on_approval=slowly)
    assert runtime.last_run is not None
    (step,) = [step for step in runtime.last_run.steps if isinstance(step, CallStep)]
    assert step.started is not None and step.ended is not None and step.ended - step.started < 0.1
