"""A function that was left when its run ended asks nobody and runs nothing; what broke off leaves a whole record.

How a run is left, by a timeout, an abort or an interrupt, is in `test_interrupts`; what is nested, in `test_nested`.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from op_jupyter import Run, RunAborted, Runtime, agentic_function, function
from op_jupyter.events import (
    AgentEvent,
    AgentEventMessageEnd,
    AgentEventMessageStart,
    AgentEventSteering,
    AgentEventToolEnd,
)
from op_jupyter.messages import AssistantMessage, ToolCall, UserMessage
from op_jupyter.providers import Request
from op_jupyter.record import AssistantStep, CallStep, fold
from op_jupyter.testing import call, scripted
from op_jupyter.tools.registry import AgentTool
from tests.conversation import results, the_run
from tests.providers.adapter import wait_for


def left_threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("op_jupyter") and name != "op_jupyter coroutines"]


class Left:
    """A function that opens a run and is left while a function of that run still runs."""

    def __init__(self) -> None:
        self.started, self.over = threading.Event(), threading.Event()
        self.happened: list[str] = []

    def slow(self) -> None:
        """Run until the root is over."""
        self.started.set()
        self.over.wait(10)

    def delete(self) -> None:
        """Delete."""
        self.happened.append("deleted")

    def approve(self, wanted: ToolCall, tool: AgentTool) -> bool:
        self.happened.append(f"asked about {wanted.name}")
        return True

    def runtime(self) -> Runtime:
        @function(requires_approval=True)
        def pay() -> None:
            self.happened.append("paid")

        self.inner_tools = [self.slow, self.delete, pay]
        return Runtime(scripted([[call("outer")], self.first_reply, self.asked, self.asked, self.asked]))

    def first_reply(self, request: Request) -> Any:
        return [call("slow"), call("delete"), call("pay")]

    def asked(self, request: Request) -> str:
        if self.over.is_set():
            self.happened.append("asked the model")
        return "final"

    def finish(self) -> None:
        """Let the function go on, and wait for its end."""
        self.over.set()
        assert wait_for(lambda: not left_threads(), 10), left_threads()


def the_child(run: Run) -> Run:
    ((child,),) = run.children.values()
    return child


def test_a_function_left_at_its_timeout_asks_nobody_and_runs_nothing_once_exec_has_returned() -> None:
    left = Left()
    runtime = left.runtime()

    @agentic_function(timeout=0.2)
    def outer(runtime: Runtime) -> str:
        """Open a run."""
        return runtime.exec("in", tools=left.inner_tools)

    assert runtime.exec("go", tools=[outer], on_approval=left.approve) == "final"
    left.finish()
    assert left.happened == []


def in_a_thread_with_a_timeout(left: Left) -> Any:
    @agentic_function(timeout=30)
    def outer(runtime: Runtime) -> str:
        """Open a run."""
        return runtime.exec("in", tools=left.inner_tools)

    return outer


def in_a_coroutine_that_waits_for_a_thread(left: Left) -> Any:
    @agentic_function
    async def outer(runtime: Runtime) -> str:
        """Open a run."""
        return await asyncio.to_thread(runtime.exec, "in", tools=left.inner_tools)

    return outer


def in_a_thread_with_a_copied_context(left: Left) -> Any:
    @agentic_function
    def outer(runtime: Runtime) -> str:
        """Open a run."""

        def ask() -> None:
            with pytest.raises(RunAborted):
                runtime.exec("in", tools=left.inner_tools)

        context = contextvars.copy_context()
        threading.Thread(target=lambda: context.run(ask), name="op_jupyter test").start()
        time.sleep(30)  # never so long: the stop, which is what this is about, interrupts it
        return "never"

    return outer


@pytest.mark.parametrize(
    "outer_of",
    [in_a_thread_with_a_timeout, in_a_coroutine_that_waits_for_a_thread, in_a_thread_with_a_copied_context],
)
def test_a_run_whose_function_was_left_has_ended_when_the_root_has_and_answers_its_calls(
    outer_of: Callable[[Left], Any],
) -> None:
    left = Left()
    runtime = left.runtime()
    outer = outer_of(left)
    events: list[AgentEvent] = []

    def stop() -> None:
        assert left.started.wait(10)
        runtime.abort()

    threading.Thread(target=stop).start()
    with pytest.raises(RunAborted):
        runtime.exec("go", tools=[outer], on_event=events.append)
    run = the_run(runtime)
    as_it_was = run.to_json()
    child = the_child(run)
    assert (child.stop_reason, child.ended is None) == ("aborted", False)
    assert [result.text.partition(":")[0] for result in results(child)] == ["Interrupted", "Not run", "Not run"]
    left.finish()
    assert left.happened == []
    assert run.to_json() == as_it_was
    again = Run(run_id=run.run_id)
    for event in events:
        fold(again, event)
    assert again.to_json() == as_it_was


def test_a_reply_that_a_run_was_left_in_is_complete_in_the_record_as_far_as_it_came() -> None:
    left = Left()

    def reply(request: Request) -> Any:
        left.started.set()
        left.over.wait(10)
        return "too late"

    left.first_reply = reply  # type: ignore[method-assign]  # this one is left in its reply, not in a call
    runtime = left.runtime()

    @agentic_function(timeout=0.1)
    def outer(runtime: Runtime) -> str:
        """Open a run."""
        return runtime.exec("in", tools=[])

    assert runtime.exec("go", tools=[outer]) == "final"
    child = the_child(the_run(runtime))
    assert child.stop_reason == "aborted"
    (message,) = [message for message in child.new_messages if isinstance(message, AssistantMessage)]
    assert (message.stop_reason, message.text) == ("aborted", "")
    left.finish()


@pytest.mark.parametrize("kind", ["message_start", "message_update", "message_end", "tool_start", "tool_end"])
def test_a_listener_that_exits_leaves_no_call_without_a_result_and_no_reply_without_an_end(kind: str) -> None:
    def leave(event: AgentEvent) -> None:
        if event.kind == kind and not isinstance(getattr(event, "message", None), UserMessage):
            raise SystemExit(3)

    def work() -> str:
        return "done"

    runtime = Runtime(scripted([[call("work"), call("work")], "never"]))
    with pytest.raises(SystemExit):
        runtime.exec("go", tools=[work], on_event=leave)
    run = the_run(runtime)
    assert (run.stop_reason, run.error) == ("error", "SystemExit: 3")
    for step in run.steps:
        assert not isinstance(step, AssistantStep | CallStep) or step.ended is not None
    calls = [call.id for m in run.new_messages if isinstance(m, AssistantMessage) for call in m.tool_calls]
    assert [result.tool_call_id for result in results(run)] == calls


@pytest.mark.parametrize(
    "moment",
    ["tool_end skipped", "turn_end", "message_start", "message_end", "steering delivered", "steering undelivered"],
)
def test_a_listener_that_exits_loses_no_message(moment: str) -> None:
    def work() -> None:
        if not runtime.last_run or len(runtime.last_run.new_messages) < 3:
            runtime.steer("one")
            runtime.steer("two")

    def listen(event: AgentEvent) -> None:
        match event:
            case AgentEventToolEnd():
                at = f"tool_end {event.outcome}"
            case AgentEventSteering():
                at = f"steering {event.state}"
            case AgentEventMessageStart() | AgentEventMessageEnd() if event.message == UserMessage("one", "steering"):
                at = event.kind
            case _:
                at = event.kind if event.kind == "turn_end" else ""
        if at == moment:
            raise SystemExit(7)

    runtime = Runtime(model=scripted([[call("work"), call("work")], "ok", "ok"]))
    most = 1 if moment == "steering undelivered" else None
    with pytest.raises(SystemExit):
        runtime.exec("go", tools=[work], on_event=listen, max_iterations=most)
    run = the_run(runtime)
    messages = [message for message in run.new_messages if isinstance(message, UserMessage)]
    assert sorted(message.text for message in [*messages, *run.undelivered]) == ["go", "one", "two"]
    assert run.queued == [] and run.ended is not None
