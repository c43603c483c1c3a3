"""The rules of a round, one by one, on the scripted model."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from op_jupyter import RunError, Runtime, function
from op_jupyter.events import AgentEvent, BlockStart, StreamEnd, StreamEvent, stream_of
from op_jupyter.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    UserMessage,
)
from op_jupyter.providers import Model, Request
from op_jupyter.testing import call, scripted
from tests.conversation import add, results, the_run


def fail(message: str) -> None:
    """Fail."""
    raise ValueError(message)


def says(*messages: AssistantMessage) -> Model:
    """A model that gives these messages as they are."""
    script = iter(messages)
    return Model("scripted", "", lambda request: stream_of(next(script)))


def test_a_reply_of_text_only_ends_the_run_and_is_returned() -> None:
    runtime = Runtime(model=scripted(["Hello."]))
    assert runtime.exec("Hi") == "Hello."
    run = the_run(runtime)
    assert (run.rounds, run.stop_reason, run.text, run.error, run.hit_cap) == (1, "stop", "Hello.", None, False)
    assert run.messages == [UserMessage("Hi"), AssistantMessage([TextContent("Hello.")], provider="scripted")]


def test_a_picked_function_is_run_and_the_model_picks_again_with_its_result() -> None:
    requests: list[Request] = []

    def answer(request: Request) -> str:
        requests.append(request)
        return "It is 3."

    runtime = Runtime(model=scripted([[call("add", a=1, b=2)], answer]))
    assert runtime.exec("1 + 2?", tools=[add]) == "It is 3."
    (result,) = results(the_run(runtime))
    assert (result.tool_call_id, result.tool_name, result.text, result.is_error) == ("call_1", "add", "3", False)
    assert [message.kind for message in requests[0].messages] == ["user", "assistant", "tool_result"]
    assert the_run(runtime).values == {"call_1": 3}


def test_calls_of_one_message_run_one_after_another_in_their_order() -> None:
    order: list[str] = []

    def note(name: str) -> str:
        order.append(name)
        return name

    runtime = Runtime(model=scripted([[call("note", name="a"), call("note", name="b"), call("note", name="c")], "ok"]))
    runtime.exec("go", tools=[note])
    assert order == ["a", "b", "c"]
    assert [result.text for result in results(the_run(runtime))] == ["a", "b", "c"]


def test_an_unknown_function_is_answered_in_its_place_with_the_names_there_are() -> None:
    runtime = Runtime(model=scripted([[call("add", a=1, b=1), call("sub"), call("add", a=2, b=2)], "ok"]))
    runtime.exec("go", tools=[add])
    first, second, third = results(the_run(runtime))
    assert (first.text, third.text) == ("2", "4")
    assert second.is_error and second.tool_call_id == "call_2"
    assert "sub" in second.text and "add" in second.text


def test_a_function_that_exists_but_is_not_on_the_menu_is_not_found_and_never_runs() -> None:
    ran: list[int] = []

    @function
    def secret() -> None:
        """Not offered."""
        ran.append(1)

    runtime = Runtime(model=scripted([[call("secret")], "ok"]))
    runtime.exec("go", tools=[add])
    assert results(the_run(runtime))[0].is_error and not ran


def test_invalid_arguments_name_the_parameter_and_do_not_end_the_run() -> None:
    runtime = Runtime(model=scripted([[call("add", a="x", b=2)], "ok"]))
    assert runtime.exec("go", tools=[add]) == "ok"
    (result,) = results(the_run(runtime))
    assert result.is_error and "a" in result.text and "x" in result.text and "integer" in result.text


def test_an_exception_becomes_a_result_with_its_type_and_no_traceback() -> None:
    runtime = Runtime(model=scripted([[call("fail", message="no such table"), call("fail", message="")], "ok"]))
    assert runtime.exec("go", tools=[fail]) == "ok"
    assert [(r.text, r.is_error) for r in results(the_run(runtime))] == [
        ("ValueError: no such table", True),
        ("ValueError", True),
    ]


def test_where_a_function_failed_is_in_the_record_for_the_person_and_not_sent_to_the_model() -> None:
    seen: list[Request] = []
    runtime = Runtime(model=scripted([[call("fail", message="x")], lambda r: seen.append(r) or "ok"]))
    runtime.exec("go", tools=[fail])
    (result,) = results(the_run(runtime))
    assert result.details and "raise ValueError(message)" in result.details["traceback"]
    assert "op_jupyter/" not in result.details["traceback"].replace(__file__, "")
    assert "raise" not in result.text


def test_sys_exit_in_a_function_ends_neither_the_run_nor_the_process() -> None:
    def leave() -> None:
        raise SystemExit(3)

    runtime = Runtime(model=scripted([[call("leave")], "ok"]))
    assert runtime.exec("go", tools=[leave]) == "ok"
    assert results(the_run(runtime))[0].text == "SystemExit: 3"


def test_arguments_that_are_no_object_are_invalid_unless_the_function_takes_none() -> None:
    def now() -> str:
        return "noon"

    broken = [ToolCall("1", "add", {}, raw_arguments="[1"), ToolCall("2", "now", {}, raw_arguments="null")]
    runtime = Runtime(model=says(AssistantMessage([*broken], "tool_use"), AssistantMessage([TextContent("ok")])))
    runtime.exec("go", tools=[add, now])
    first, second = results(the_run(runtime))
    assert first.is_error and "[1" in first.text
    assert second.text == "noon"


# -------------------------------------------------------------------- steering


def test_a_message_sent_while_a_function_runs_skips_the_rest_and_stands_in_the_next_request() -> None:
    requests: list[Request] = []

    def work(n: int) -> int:
        if n == 1:
            runtime.steer("only 2013, please")
        return n

    def answer(request: Request) -> str:
        requests.append(request)
        return "ok"

    runtime = Runtime(model=scripted([[call("work", n=1), call("work", n=2), call("work", n=3)], answer]))
    runtime.exec("go", tools=[work])
    first, second, third = results(the_run(runtime))
    assert first.text == "1" and not first.is_error
    assert (second.text, second.is_error) == ("Skipped due to queued user message", True)
    assert (third.text, third.is_error) == ("Skipped due to queued user message", True)
    assert [message.kind for message in requests[0].messages][-4:] == ["tool_result"] * 3 + ["user"]
    assert requests[0].messages[-1] == UserMessage("only 2013, please", "steering")


def test_messages_are_looked_for_before_the_first_request() -> None:
    requests: list[Request] = []
    runtime = Runtime(model=scripted([lambda request: requests.append(request) or "ok"]))
    waiting = ["in English"]

    def get() -> list[str]:
        taken, waiting[:] = waiting[:], []
        return taken

    runtime.exec("go", get_steering_messages=get)
    assert [message.source for message in requests[0].messages if isinstance(message, UserMessage)] == [
        "user",
        "steering",
    ]


def test_a_message_queued_during_the_last_reply_keeps_the_loop_alive() -> None:
    def first(request: Request) -> str:
        runtime.steer("and in French?")
        return "Hello."

    runtime = Runtime(model=scripted([first, "Bonjour."]))
    assert runtime.exec("Say hello") == "Bonjour."
    assert the_run(runtime).rounds == 2 and not the_run(runtime).undelivered


def test_follow_ups_are_looked_for_when_the_run_would_end() -> None:
    def first(request: Request) -> str:
        runtime.follow_up("more")
        return "one"

    runtime = Runtime(model=scripted([first, "two"]))
    assert runtime.exec("go") == "two"
    sources = [message.source for message in the_run(runtime).messages if isinstance(message, UserMessage)]
    assert sources == ["user", "follow_up"]


def test_steering_goes_in_before_follow_ups() -> None:
    def first(request: Request) -> str:
        runtime.follow_up("later")
        runtime.steer("now")
        return "one"

    runtime = Runtime(model=scripted([first, "two", "three"]))
    assert runtime.exec("go") == "three"
    assert [m.text for m in the_run(runtime).messages if isinstance(m, UserMessage)] == ["go", "now", "later"]


def test_a_message_that_comes_too_late_is_reported_and_not_lost() -> None:
    def late(request: Request) -> Exception:
        runtime.steer("wait")
        return RuntimeError("gone")

    runtime = Runtime(model=scripted([late]))
    with pytest.raises(RunError):
        runtime.exec("go")
    assert the_run(runtime).undelivered == [UserMessage("wait", "steering")]
    assert the_run(runtime).queued == []


def test_a_message_at_the_cap_is_reported_as_undelivered() -> None:
    def last(request: Request) -> list[ToolCall]:
        runtime.steer("stop that")
        return [call("add", a=1, b=1)]

    runtime = Runtime(model=scripted([last]))
    runtime.exec("go", tools=[add], max_iterations=1)
    assert the_run(runtime).hit_cap
    assert the_run(runtime).undelivered == [UserMessage("stop that", "steering")]


def test_messages_steer_the_root_run_and_wait_while_a_nested_one_goes_on() -> None:
    heard: list[str] = []

    def inner(request: Request) -> str:
        runtime.steer("for the root")
        return "inner done"

    def research() -> str:
        return Runtime(model=scripted([inner])).exec("look", tools=[])

    def outer(request: Request) -> str:
        heard.extend(block.text for block in request.messages[-1].content if isinstance(block, TextContent))
        return "done"

    runtime = Runtime(model=scripted([[call("research"), call("research")], outer]))
    runtime.exec("go", tools=[research])
    assert heard == ["for the root"]
    assert [r.text for r in results(the_run(runtime))] == ["inner done", "Skipped due to queued user message"]


def test_steering_without_a_run_under_way_says_so() -> None:
    with pytest.raises(RunError, match="No run"):
        Runtime(model=scripted([])).steer("hello?")


# -------------------------------------------------------------------- cap, choice, truncation


@pytest.mark.parametrize(("asked_for", "rounds"), [(3, 3), (0, 1), (-4, 1), (1000, 50), (None, 50)])
def test_the_cap_is_at_most_50_and_at_least_1_and_ends_the_run_normally(asked_for: int | None, rounds: int) -> None:
    runtime = Runtime(model=scripted([["thinking aloud", call("add", a=1, b=1)]] * 60))
    assert runtime.exec("go", tools=[add], max_iterations=asked_for) == "thinking aloud"
    run = the_run(runtime)
    assert (run.rounds, run.stop_reason, run.hit_cap) == (rounds, "max_iterations", True)
    assert len(results(run)) == rounds


def test_the_cap_counts_follow_ups_too() -> None:
    runtime = Runtime(model=scripted(["again"] * 60))
    runtime.exec("go", get_follow_up_messages=lambda: ["more"], max_iterations=4)
    assert the_run(runtime).rounds == 4 and the_run(runtime).hit_cap


def test_a_run_that_ends_by_itself_in_its_last_round_has_not_hit_the_cap() -> None:
    runtime = Runtime(model=scripted(["done"]))
    runtime.exec("go", max_iterations=1)
    assert not the_run(runtime).hit_cap


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "add"}])
def test_a_forced_choice_is_released_once_the_model_has_made_it(choice: Any) -> None:
    seen: list[Any] = []

    def pick(request: Request) -> Any:
        seen.append(request.tool_choice)
        return [call("add", a=1, b=1)] if len(seen) == 1 else "done"

    runtime = Runtime(model=scripted([pick] * 3))
    assert runtime.exec("go", tools=[add], tool_choice=choice) == "done"
    assert seen == [choice, "auto"]


def test_a_forced_choice_holds_until_the_named_function_is_picked() -> None:
    seen: list[Any] = []
    replies: list[Any] = [[call("fail", message="x")], [call("add", a=1, b=1)], "done"]

    def pick(request: Request) -> Any:
        seen.append(request.tool_choice)
        return replies[len(seen) - 1]

    named: Any = {"type": "function", "name": "add"}
    Runtime(model=scripted([pick] * 3)).exec("go", tools=[add, fail], tool_choice=named)
    assert seen == [named, named, "auto"]


def test_a_forced_choice_can_be_kept_for_every_round() -> None:
    seen: list[Any] = []

    def pick(request: Request) -> Any:
        seen.append(request.tool_choice)
        return [call("add", a=1, b=1)]

    runtime = Runtime(model=scripted([pick] * 3))
    runtime.exec("go", tools=[add], tool_choice="required", reset_tool_choice=False, max_iterations=3)
    assert seen == ["required"] * 3


def test_with_choice_none_no_call_runs_whatever_the_model_sends() -> None:
    runtime = Runtime(model=scripted([[call("add", a=1, b=1)], "ok"]))
    runtime.exec("go", tools=[add], tool_choice="none")
    assert results(the_run(runtime))[0].is_error and not the_run(runtime).values


def test_without_parallel_calls_only_the_first_of_a_message_runs() -> None:
    runtime = Runtime(model=scripted([[call("add", a=1, b=1), call("add", a=2, b=2)], "ok"]))
    runtime.exec("go", tools=[add], parallel_tool_calls=False)
    first, second = results(the_run(runtime))
    assert first.text == "2" and second.is_error


def test_a_choice_that_names_no_function_on_the_menu_is_refused() -> None:
    with pytest.raises(ValueError, match="sub"):
        Runtime(model=scripted([])).exec("go", tools=[add], tool_choice={"type": "function", "name": "sub"})


def test_calls_of_a_truncated_reply_do_not_run_and_say_that_the_arguments_were_cut() -> None:
    cut = AssistantMessage([ToolCall("1", "add", {"a": 1, "b": 1})], "length")
    runtime = Runtime(model=says(cut, AssistantMessage([TextContent("ok")])))
    assert runtime.exec("go", tools=[add]) == "ok"
    (result,) = results(the_run(runtime))
    assert result.is_error and "cut" in result.text and not the_run(runtime).values


def test_a_forced_choice_is_not_released_by_a_name_that_is_not_on_the_menu() -> None:
    seen: list[Any] = []
    replies: list[Any] = [[call("nope")], [call("add", a=1, b=1)], "done"]

    def pick(request: Request) -> Any:
        seen.append(request.tool_choice)
        return replies[len(seen) - 1]

    Runtime(model=scripted([pick] * 3)).exec("go", tools=[add], tool_choice="required")
    assert seen == ["required", "required", "auto"]


def test_a_message_of_a_callback_is_reported_at_the_cap_too() -> None:
    runtime = Runtime(model=scripted(["one"]))
    runtime.exec("go", max_iterations=1, get_follow_up_messages=lambda: [UserMessage("more")])
    assert the_run(runtime).undelivered == [UserMessage("more", "follow_up")]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"max_iterations": 2.5}, "max_iterations"),
        ({"max_iterations": "3"}, "max_iterations"),
        ({"tool_choice": "always"}, "always"),
        ({"tool_choice": {"type": "function"}}, "tool_choice"),
        ({"history": [{"role": "user"}]}, "history"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_anything_is_asked(
    arguments: dict[str, Any], error: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        Runtime(model=scripted([])).exec("go", tools=[add], **arguments)


def test_a_function_of_any_keywords_does_not_run_when_its_arguments_are_no_object() -> None:
    def anything(**values: int) -> str:
        return "ran"

    broken = AssistantMessage([ToolCall("1", "anything", {}, raw_arguments="[1")], "tool_use")
    runtime = Runtime(model=says(broken, AssistantMessage([TextContent("ok")])))
    runtime.exec("go", tools=[anything])
    assert results(the_run(runtime))[0].is_error and not the_run(runtime).values


def test_a_name_that_a_provider_would_refuse_is_not_replayed_as_it_came() -> None:
    seen: list[Request] = []
    runtime = Runtime(model=scripted([[call("functions.add x")], lambda request: seen.append(request) or "ok"]))
    runtime.exec("go", tools=[add])
    _, reply, _ = seen[0].messages
    assert isinstance(reply, AssistantMessage) and reply.tool_calls[0].name == "functions_add_x"


# -------------------------------------------------------------------- errors


def test_a_provider_that_fails_ends_the_run_with_one_line_and_its_kind() -> None:
    runtime = Runtime(model=scripted([RunError("Set OPENAI_API_KEY.", kind="auth")]))
    with pytest.raises(RunError, match=r"^Set OPENAI_API_KEY\.$") as caught:
        runtime.exec("go")
    assert caught.value.kind == "auth" and caught.value.run is runtime.last_run
    assert (the_run(runtime).stop_reason, the_run(runtime).error) == ("error", "Set OPENAI_API_KEY.")


def test_a_failure_in_the_middle_of_a_reply_keeps_what_was_said_and_runs_no_call_of_it() -> None:
    broken = AssistantMessage(
        [TextContent("Let me"), ToolCall("1", "add", {"a": 1, "b": 1})], "error", error_message="x"
    )
    runtime = Runtime(model=says(broken))
    with pytest.raises(RunError, match=r"^x$"):
        runtime.exec("go", tools=[add])
    run = the_run(runtime)
    assert run.text == "Let me" and not run.values and results(run)[0].is_error


def test_a_stream_without_its_closing_event_is_an_error() -> None:
    def stream(request: Request) -> Iterator[StreamEvent]:
        yield BlockStart(0, TextContent("half a sen"))

    runtime = Runtime(model=Model("broken", "", stream))
    with pytest.raises(RunError) as caught:
        runtime.exec("go")
    assert caught.value.kind == "connection" and the_run(runtime).text == "half a sen"


def test_the_script_of_replies_running_out_raises() -> None:
    with pytest.raises(RunError, match="run out"):
        Runtime(model=scripted([])).exec("go")


def test_after_an_error_the_same_conversation_can_go_on() -> None:
    broken = AssistantMessage([ToolCall("1", "add", {"a": 1, "b": 1})], "error", error_message="overloaded")
    runtime = Runtime(model=says(broken, AssistantMessage([TextContent("ok")])))
    with pytest.raises(RunError):
        runtime.exec("go", tools=[add])
    assert runtime.exec("go on", tools=[add], history=the_run(runtime).messages) == "ok"


def test_calls_without_ids_or_with_repeated_ones_get_ids_of_their_own() -> None:
    def calls() -> AssistantMessage:
        return AssistantMessage(
            [ToolCall("", "add", {"a": 1, "b": 1}), ToolCall("x", "add", {"a": 2, "b": 2})], "tool_use"
        )

    runtime = Runtime(model=says(calls(), calls(), AssistantMessage([TextContent("ok")])))
    runtime.exec("go", tools=[add])
    ids = [result.tool_call_id for result in results(the_run(runtime))]
    assert len(set(ids)) == 4 and ids[1] == "x"
    assert sorted(the_run(runtime).values.values()) == [2, 2, 4, 4]


def test_a_second_exec_beside_the_first_is_refused() -> None:
    refused: list[RunError] = []

    def beside(request: Request) -> str:
        def other() -> None:
            try:
                runtime.exec("me too")
            except RunError as error:
                refused.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return "ok"

    runtime = Runtime(model=scripted([beside, "no"]))
    runtime.exec("go")
    assert refused and "under way" in str(refused[0])


def test_events_reach_who_listens_and_a_listener_that_fails_does_no_harm() -> None:
    kinds: list[str] = []

    def listen(event: AgentEvent) -> None:
        kinds.append(event.kind)
        raise OSError("full")

    runtime = Runtime(model=scripted([[call("add", a=1, b=1)], "ok"]))
    assert runtime.exec("go", tools=[add], on_event=listen) == "ok"
    assert [kind for kind in kinds if kind != "message_update"] == [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "tool_start",
        "tool_end",
        "turn_end",
        "turn_start",
        "message_start",
        "message_end",
        "turn_end",
        "agent_end",
    ]


# -------------------------------------------------------------------- other colours


def test_coroutine_functions_run_on_a_loop_that_goes_on_between_calls() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def wait(n: int) -> int:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return n

    runtime = Runtime(model=scripted([[call("wait", n=1), call("wait", n=2)], "ok"]))
    runtime.exec("go", tools=[wait])
    assert [r.text for r in results(the_run(runtime))] == ["1", "2"] and loops[0] is loops[1]


def test_a_coroutine_function_that_raises_system_exit_does_not_end_the_loop_of_the_others() -> None:
    async def leave() -> None:
        raise SystemExit

    async def stay() -> str:
        return "here"

    runtime = Runtime(model=scripted([[call("leave"), call("stay")], "ok"]))
    runtime.exec("go", tools=[leave, stay])
    first, second = results(the_run(runtime))
    assert first.is_error and second.text == "here"


def test_exec_on_the_loop_of_coroutine_functions_names_aexec_instead_of_blocking_it() -> None:
    async def nested() -> str:
        return runtime.exec("inner")

    runtime = Runtime(model=scripted([[call("nested")], "ok"]))
    runtime.exec("go", tools=[nested])
    assert "aexec" in results(the_run(runtime))[0].text


def test_aexec_answers_from_async_code_and_nests_in_coroutine_functions() -> None:
    async def nested() -> str:
        return await runtime.aexec("inner", tools=[])

    runtime = Runtime(model=scripted([[call("nested")], "inner answer", "ok"]))
    assert asyncio.run(runtime.aexec("go", tools=[nested])) == "ok"
    run = the_run(runtime)
    assert [child.text for child in run.children["call_1"]] == ["inner answer"]


def test_a_cancelled_aexec_has_ended_its_run_before_the_cancellation_goes_on() -> None:
    asked_event = threading.Event()
    release = threading.Event()

    def silent(request: Request) -> Iterator[StreamEvent]:
        request.on_abandon.append(release.set)
        asked_event.set()
        release.wait(10)
        yield StreamEnd("stop")

    runtime = Runtime(model=Model("silent", "", silent))

    async def main() -> None:
        task = asyncio.create_task(runtime.aexec("go"))
        await asyncio.to_thread(asked_event.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert the_run(runtime).stop_reason == "aborted"

    asyncio.run(main())


def test_history_is_replayed_before_the_question() -> None:
    history: list[Message] = [UserMessage("My name is Ada."), AssistantMessage([TextContent("Hello Ada.")])]
    seen: list[Request] = []
    runtime = Runtime(model=scripted([lambda request: seen.append(request) or "Ada."]))
    runtime.exec("Who am I?", history=history, system="Be brief.")
    assert seen[0].messages == [*history, UserMessage("Who am I?")] and seen[0].system == "Be brief."
    assert the_run(runtime).messages[:2] == history and len(the_run(runtime).new_messages) == 2


@pytest.mark.parametrize("kind", ["turn_start", "message_end", "tool_start", "tool_end", "turn_end", "agent_end"])
def test_a_listener_that_exits_ends_the_run_and_the_others_still_hear_it_all(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listen(event: AgentEvent) -> None:
        if event.kind == kind:
            raise SystemExit(3)

    monkeypatch.setenv("OP_JUPYTER_EVENTS", str(tmp_path / "events"))
    runtime = Runtime(model=scripted([[call("add", a=1, b=1), call("add", a=2, b=2)], "done"]))
    with pytest.raises(SystemExit):
        runtime.exec("go", tools=[add], on_event=listen)
    run = the_run(runtime)
    replies = [message for message in run.messages if isinstance(message, AssistantMessage)]
    calls = [call.id for reply in replies for call in reply.tool_calls]
    assert [result.tool_call_id for result in results(run)] == calls
    heard = [json.loads(line)["kind"] for line in (tmp_path / "events").read_text().splitlines()]
    assert heard.count("tool_end") == len(calls) and heard[-1] == "agent_end"
