"""The source documents, third part: the body of the loop, the execution of calls, termination, and nesting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from op_jupyter import RunAborted, RunError, Runtime, agent_loop, agentic_function, tool_execution
from op_jupyter import runtime as runtime_module
from op_jupyter.events import AgentEvent, AgentEventAgentEnd, StreamEvent, stream_of
from op_jupyter.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, UserMessage
from op_jupyter.providers import Model, Request
from op_jupyter.providers.scripted import Reply
from op_jupyter.testing import call
from tests.conversation import add, offered, playing, results, the_run
from tests.seeds.conftest import Spy


def fail(message: str) -> None:
    """Fail."""
    raise RuntimeError(message)


def ending(stop_reason: Any, *content: Any) -> Model:
    """A model whose only reply ends in this way."""

    def stream(request: Request) -> Iterator[StreamEvent]:
        return stream_of(AssistantMessage(list(content), stop_reason, error_message="overloaded"))

    return Model("scripted", "", stream)


# -------------------------------------------------------------------- _run_loop


def test_the_inner_loop_goes_on_while_there_are_tool_calls_or_pending_messages() -> None:
    def second(request: Request) -> str:
        runtime.steer("And in words?")
        return "3"

    model, requests = playing([call("add", a=1, b=2)], second, "three", "never asked")
    runtime = Runtime(model)
    assert runtime.exec("1 + 2?", tools=[add]) == "three"
    assert len(requests) == 3


def test_stream_assistant_response_streams_and_returns_one_assistant_message(spy: Spy) -> None:
    stream_assistant_response = spy(agent_loop, "_stream_assistant_response")
    events: list[AgentEvent] = []
    model, _ = playing(["It is", call("add", a=1, b=2)], "It is 3.")
    runtime = Runtime(model)
    runtime.exec("1 + 2?", tools=[add], on_event=events.append)
    assert all(isinstance(message, AssistantMessage) for message in stream_assistant_response.returned)
    assert stream_assistant_response.returned == [the_run(runtime).messages[1], the_run(runtime).messages[3]]
    kinds = [event.kind for event in events]
    assert kinds.index("message_update") < kinds.index("tool_start")


@pytest.mark.parametrize(("stop_reason", "raised"), [("error", RunError), ("aborted", RunAborted)])
def test_stop_reason_error_or_aborted_ends_the_run_at_once(stop_reason: Any, raised: type[Exception]) -> None:
    asked_for_more: list[str] = []
    runtime = Runtime(ending(stop_reason, TextContent("Well,"), ToolCall("1", "add", {"a": 1, "b": 2})))
    with pytest.raises(raised):
        runtime.exec("1 + 2?", tools=[add], get_follow_up_messages=lambda: asked_for_more.append("") or ["more"])
    run = the_run(runtime)
    assert (run.stop_reason, run.rounds, asked_for_more) == (stop_reason, 1, [])
    assert results(run)[0].is_error and not run.values


def test_tool_calls_that_are_not_empty_are_executed_and_the_loop_starts_over(spy: Spy) -> None:
    execute_tool_calls = spy(agent_loop, "_execute_tool_calls")
    model, requests = playing([call("add", a=1, b=2)], [call("add", a=3, b=3)], "6")
    Runtime(model).exec("1 + 2 + 3?", tools=[add])
    picked = [[one.name for one in message.tool_calls] for _, message, *_ in execute_tool_calls.arguments]
    assert picked == [["add"], ["add"], []] and len(requests) == 3


def test_without_tool_calls_the_inner_loop_exits_and_the_textcontent_is_the_result() -> None:
    model, requests = playing(["It is ", "3."], "never asked")
    assert Runtime(model).exec("1 + 2?", tools=[add]) == "It is 3."
    assert len(requests) == 1


def test_execute_tool_calls_appends_toolresultmessages_to_the_context_and_to_the_new_messages(spy: Spy) -> None:
    execute_tool_calls = spy(agent_loop, "_execute_tool_calls")
    model, _ = playing([call("add", a=1, b=2), call("add", a=3, b=4)], "3 and 7")
    runtime = Runtime(model)
    runtime.exec("?", tools=[add], history=[UserMessage("Hi"), AssistantMessage([TextContent("Hello")])])
    current_context = execute_tool_calls.arguments[0][0]
    appended = [message for message in current_context.messages if isinstance(message, ToolResultMessage)]
    assert [message.text for message in appended] == ["3", "7"]
    assert results(the_run(runtime)) == appended


def test_the_history_of_the_next_round_carries_the_results_and_the_model_decides_by_them() -> None:
    def decide(request: Request) -> Any:
        return "small" if request.messages[-1].text == "3" else [call("add", a=1, b=1)]

    model, _ = playing([call("add", a=1, b=2)], decide)
    assert Runtime(model).exec("1 + 2?", tools=[add]) == "small"


@pytest.mark.parametrize(
    ("reply", "rounds"),
    [
        (["Done, I think.", call("add", a=1, b=2)], 2),
        ('add(a=1, b=2)\n{"name": "add", "arguments": {"a": 1, "b": 2}}', 1),
        ("Now I will call add.", 1),
    ],
    ids=["text beside a call", "text that looks like a call", "text that promises one"],
)
def test_the_framework_only_branches_on_toolcall_or_textcontent_and_never_decides(reply: Any, rounds: int) -> None:
    model, requests = playing(reply, "ok")
    Runtime(model).exec("1 + 2?", tools=[add])
    assert len(requests) == rounds


# -------------------------------------------------------------------- _execute_tool_calls


def test_a_tool_is_looked_up_among_the_tools_by_the_name_of_the_call() -> None:
    def sub(a: int, b: int) -> int:
        """Subtract."""
        return a - b

    model, _ = playing([call("sub", a=5, b=3), call("add", a=5, b=3)], "ok")
    runtime = Runtime(model)
    runtime.exec("?", tools=[add, sub])
    assert [result.text for result in results(the_run(runtime))] == ["2", "8"]


def test_tool_not_found_is_a_value_error_that_becomes_an_is_error_result(spy: Spy) -> None:
    prepare = spy(tool_execution, "_prepare")
    model, _ = playing([call("sub", a=1, b=2)], "ok")
    runtime = Runtime(model)
    assert runtime.exec("?", tools=[add]) == "ok"
    assert [type(error) for error in prepare.raised] == [ValueError]
    (result,) = results(the_run(runtime))
    assert result.is_error and "'sub'" in result.text


def test_validate_tool_arguments_failing_becomes_an_is_error_result(spy: Spy) -> None:
    validate_tool_arguments = spy(tool_execution, "validate_tool_arguments")
    model, _ = playing([call("add", a=1)], "ok")
    runtime = Runtime(model)
    assert runtime.exec("?", tools=[add]) == "ok"
    assert len(validate_tool_arguments.raised) == 1
    (result,) = results(the_run(runtime))
    assert result.is_error and "b: missing" in result.text


def test_what_a_tool_raises_is_caught_and_its_text_becomes_an_is_error_result() -> None:
    model, _ = playing([call("fail", message="no such table")], "ok")
    runtime = Runtime(model)
    assert runtime.exec("?", tools=[fail]) == "ok"
    (result,) = results(the_run(runtime))
    assert (result.is_error, result.text) == (True, "RuntimeError: no such table")


def test_success_is_wrapped_in_a_toolresultmessage() -> None:
    model, _ = playing([call("add", a=1, b=2)], "ok")
    runtime = Runtime(model)
    runtime.exec("?", tools=[add])
    assert results(the_run(runtime)) == [ToolResultMessage("call_1", "add", [TextContent("3")], is_error=False)]


def test_neither_kind_of_exception_breaks_the_loop_and_the_model_corrects_itself() -> None:
    heard: list[bool] = []

    def correct(next_call: ToolCall) -> Any:
        def reply(request: Request) -> list[ToolCall]:
            last = request.messages[-1]
            heard.append(isinstance(last, ToolResultMessage) and last.is_error)
            return [next_call]

        return reply

    model, _ = playing(
        [call("plus", a=1, b=2)],
        correct(call("add", a=1, b="two")),
        correct(call("fail", message="gone")),
        correct(call("add", a=1, b=2)),
        "3",
    )
    runtime = Runtime(model)
    assert runtime.exec("1 + 2?", tools=[add, fail]) == "3"
    assert heard == [True] * 3 and not results(the_run(runtime))[3].is_error


def test_parallel_picks_are_executed_one_after_another_in_order() -> None:
    happened: list[str] = []

    def step(name: str) -> None:
        """Note when it begins and ends."""
        happened.append(f"{name} begins")
        happened.append(f"{name} ends")

    model, _ = playing([call("step", name="a"), call("step", name="b")], "ok")
    Runtime(model).exec("go", tools=[step])
    assert happened == ["a begins", "a ends", "b begins", "b ends"]


def test_steering_messages_in_the_middle_let_skip_tool_call_answer_the_rest_and_go_first(spy: Spy) -> None:
    skip_tool_call = spy(agent_loop, "_skip_tool_call")
    ran: list[int] = []

    def work(n: int) -> None:
        """Work."""
        ran.append(n)

    model, requests = playing([call("work", n=1), call("work", n=2), call("work", n=3)], "ok")
    runtime = Runtime(model)
    runtime.exec("go", tools=[work], get_steering_messages=lambda: ["Stop that."] if len(ran) == len(requests) else [])
    assert ran == [1] and [one.arguments["n"] for *_, one in skip_tool_call.arguments] == [2, 3]
    skipped = results(the_run(runtime))[1:]
    assert [(r.text, r.is_error) for r in skipped] == [("Skipped due to queued user message", True)] * 2
    assert requests[1].messages[-1].text == "Stop that."


# -------------------------------------------------------------------- termination


def test_no_function_picked_is_a_normal_finish_whose_text_is_the_result() -> None:
    model, _ = playing("It is 3.")
    runtime = Runtime(model)
    assert runtime.exec("1 + 2?", tools=[add]) == the_run(runtime).text == "It is 3."
    assert (the_run(runtime).stop_reason, the_run(runtime).error) == ("stop", None)


def test_an_error_is_an_error_finish_and_an_abort_a_cancel_finish() -> None:
    failed = Runtime(ending("error"))
    with pytest.raises(RunError, match="overloaded"):
        failed.exec("go")
    assert (the_run(failed).stop_reason, the_run(failed).error) == ("error", "overloaded")

    def stop(request: Request) -> str:
        runtime.abort()
        return "too late"

    model, _ = playing(stop)
    runtime = Runtime(model)
    with pytest.raises(RunAborted):
        runtime.exec("go")
    assert the_run(runtime).stop_reason == "aborted"


def test_the_hard_cap_max_inner_iterations_is_a_normal_finish_that_returns_what_exists() -> None:
    assert agent_loop.MAX_INNER_ITERATIONS == 50
    spinning: Reply = ["Spinning.", call("add", a=1, b=1)]
    model, requests = playing(*[spinning] * 51)
    runtime = Runtime(model)
    assert runtime.exec("go", tools=[add]) == "Spinning."
    assert len(requests) == 50 and the_run(runtime).hit_cap and the_run(runtime).error is None


def test_queued_steering_messages_keep_the_loop_alive_after_a_pure_text_reply() -> None:
    def first(request: Request) -> str:
        runtime.steer("And 2 + 2?")
        return "3"

    model, requests = playing(first, "4")
    runtime = Runtime(model)
    assert runtime.exec("1 + 2?") == "4"
    assert requests[1].messages[-1] == UserMessage("And 2 + 2?", "steering")


def test_get_follow_up_messages_supply_the_pending_messages_of_another_round() -> None:
    later = iter([["And 2 + 2?"], []])
    model, requests = playing("3", "4")
    assert Runtime(model).exec("1 + 2?", get_follow_up_messages=lambda: next(later)) == "4"
    assert requests[1].messages[-1] == UserMessage("And 2 + 2?", "follow_up")


def test_otherwise_the_run_ends_for_good_and_pushes_agent_event_agent_end() -> None:
    events: list[AgentEvent] = []
    model, _ = playing([call("add", a=1, b=2)], "3")
    Runtime(model).exec("1 + 2?", tools=[add], on_event=events.append)
    assert [event for event in events if isinstance(event, AgentEventAgentEnd)] == [events[-1]]


# -------------------------------------------------------------------- agentic functions


def test_an_agentic_function_in_tools_is_to_the_model_one_function_like_any_other() -> None:
    def plain(topic: str) -> str:
        """Find out about a topic."""
        return topic

    def research(topic: str, runtime: Runtime) -> str:
        """Find out about a topic."""
        return runtime.exec(topic)

    model, requests = playing("ok")
    Runtime(model).exec("go", tools=[plain, agentic_function(research)])
    first, second = requests[0].tools
    assert replace(first, name="research") == second


def test_picking_it_invokes_its_execute_and_its_exec_opens_another_layer_of_the_same_loop(spy: Spy) -> None:
    run_loop = spy(runtime_module, "_run_loop")

    @agentic_function
    def research(topic: str, runtime: Runtime) -> str:
        """Find out about a topic."""
        return runtime.exec(f"About {topic}", tools=[add])

    model, requests = playing([call("research", topic="1 + 2")], [call("add", a=1, b=2)], "3", "It is 3.")
    outer = Runtime(model)
    assert outer.exec("go", tools=[research]) == "It is 3."
    assert [offered(request) for request in requests] == [["research"], ["add"], ["add"], ["research"]]
    assert len(run_loop.arguments) == 2
    (inner,) = the_run(outer).children["call_1"]
    assert (inner.rounds, the_run(outer).rounds, results(the_run(outer))[0].text) == (2, 2, "3")


def test_nested_agentic_functions_unfold_the_same_mechanism_recursively() -> None:
    @agentic_function
    def divide(depth: int, runtime: Runtime) -> str:
        """Hand on a smaller task."""
        return runtime.exec(str(depth))

    def reply(request: Request) -> Any:
        last = request.messages[-1]
        return "done" if last.kind != "user" or last.text == "0" else [call("divide", depth=int(last.text) - 1)]

    model, _ = playing(*[reply] * 7)
    outer = Runtime(model)
    assert outer.exec("3", tools=[divide]) == "done"
    run, depth = the_run(outer), 0
    while run.children:
        (run,), depth = run.children["call_1"], depth + 1
    assert depth == 3
