"""Situations of the loop that broke other implementations, as whole kinds: messages, calls, results, interrupts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from op_jupyter import Run, RunError, Runtime, function
from op_jupyter.events import AgentEvent, StreamEvent
from op_jupyter.messages import ImageContent, Message, TextContent, ToolCall, UserMessage
from op_jupyter.providers import Model, Request
from op_jupyter.testing import call, scripted
from tests.conversation import add, results, the_run
from tests.providers.adapter import Call
from tests.providers.wire_server import WireServer
from tests.test_cases_history import answer, check_chat, openai
from tests.test_interrupts import LONG, Silence, interrupt, when


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer().running() as server:
        yield server


def said(*messages: Message) -> list[str]:
    """What a person has said, in order."""
    return [message.text for message in messages if isinstance(message, UserMessage)]


# -------------------------------------------------------------------- queued messages


def test_messages_queued_around_the_end_are_all_taken_in_order() -> None:
    def last_reply(request: Request) -> str:
        runtime.steer("1")
        runtime.steer("2")
        runtime.follow_up("4")
        given.append("3")
        return "done"

    def at_the_end() -> list[str]:
        if late:
            runtime.steer(late.pop())
        return []

    given, late = list[str](), ["5"]
    runtime = Runtime(scripted([last_reply, "done", "done", "done"]))
    runtime.exec("0", get_steering_messages=lambda: [given.pop()] if given else [], get_follow_up_messages=at_the_end)
    assert said(*the_run(runtime).messages) == ["0", "1", "2", "3", "4", "5"]
    assert not the_run(runtime).undelivered and not the_run(runtime).queued


def test_a_message_sent_at_any_moment_is_delivered_once_or_reported_once() -> None:
    def run(at: int) -> tuple[Run, int]:
        events: list[AgentEvent] = []

        def listen(event: AgentEvent) -> None:
            events.append(event)
            if len(events) == at:
                runtime.steer("now")

        runtime = Runtime(scripted([[call("add", a=1, b=1), call("add", a=2, b=2)], *["done"] * 3]))
        runtime.exec("go", tools=[add], on_event=listen)
        return the_run(runtime), len(events)

    _, moments = run(at=0)
    for moment in range(1, moments + 1):
        after, _ = run(at=moment)
        assert [*said(*after.new_messages), *said(*after.undelivered)].count("now") == 1, moment
        assert after.queued == [] and after.stop_reason == "stop"


def test_a_callback_that_fails_loses_no_message_of_the_queue() -> None:
    def broken() -> list[str]:
        if the_run(runtime).rounds:
            raise OSError("no line")
        return []

    def work() -> None:
        runtime.steer("hello?")
        runtime.follow_up("and then?")

    for name in ("get_steering_messages", "get_follow_up_messages"):
        runtime = Runtime(scripted([[call("work")], "done", "done"]))
        arguments: dict[str, Any] = {name: broken}
        with pytest.raises(OSError, match="no line"):
            runtime.exec("go", tools=[work], **arguments)
        run = the_run(runtime)
        assert sorted([*said(*run.new_messages), *said(*run.undelivered)]) == ["and then?", "go", "hello?"]
        assert run.queued == []


@pytest.mark.parametrize("gives", ["stop", None, {"role": "user"}, [{"role": "user"}], [None]], ids=repr)
def test_what_a_callback_returns_is_a_list_of_messages_or_one_clear_error(gives: Any) -> None:
    with pytest.raises(TypeError, match=r"^get_steering_messages returns"):
        Runtime(scripted(["ok"])).exec("go", get_steering_messages=lambda: gives)


def test_a_message_that_says_nothing_is_no_message() -> None:
    def reply(request: Request) -> str:
        for send in (runtime.steer, runtime.follow_up):
            with pytest.raises(ValueError, match="nothing to send"):
                send(" \n")
        return "done"

    blank = [" ", UserMessage(""), UserMessage([])]
    runtime = Runtime(scripted([reply, "never asked"]))
    arguments: dict[str, Any] = {"get_steering_messages": lambda: blank, "get_follow_up_messages": lambda: blank}
    assert runtime.exec("go", **arguments) == "done"
    assert the_run(runtime).rounds == 1 and not the_run(runtime).queued


def test_skipped_results_stand_before_the_message_that_skipped_them(server: WireServer) -> None:
    def work() -> str:
        runtime.steer("Only 2013, please.")
        return "1"

    server.script = [answer(Call("c1", "work"), Call("c2", "work"), Call("c3", "work")), answer("ok")]
    runtime = openai(server)
    runtime.exec("go", tools=[work])
    messages = server.asked[1].body["messages"]
    check_chat(messages)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "tool", "user"]


# -------------------------------------------------------------------- a second exec


@pytest.mark.parametrize("place", ["listener", "callback", "thread of a function", "provider", "aexec"])
def test_a_second_exec_beside_the_first_is_refused_from_anywhere_and_does_the_first_no_harm(place: str) -> None:
    refused: list[str] = []

    def other() -> None:
        try:
            asyncio.run(runtime.aexec("me too")) if place == "aexec" else runtime.exec("me too")
        except RunError as error:
            refused.append(f"{error.kind}: {error}")

    def in_thread() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    def work() -> str:
        if place in ("thread of a function", "aexec"):
            in_thread()
        return "worked"

    def reply(request: Request) -> list[ToolCall]:
        if place == "provider":
            other()
        return [call("work")]

    arguments: dict[str, Any] = {
        "listener": {"on_event": lambda event: other() if event.kind == "turn_start" else None},
        "callback": {"get_steering_messages": lambda: other() or []},
    }
    runtime = Runtime(scripted([reply, "done"]))
    assert runtime.exec("go", tools=[work], **arguments.get(place, {})) == "done"
    assert refused and set(refused) == {
        "setup: A run of this Runtime is under way: wait for its end, or use another Runtime."
    }
    assert the_run(runtime).text == "done" and results(the_run(runtime))[0].text == "worked"


# -------------------------------------------------------------------- what may be called


@pytest.mark.parametrize(
    "name",
    [
        "print",
        "exec",
        "eval",
        "__import__",
        "os.system",
        "secret",
        "denied",
        "later",
        "ADD",
        "add ",
        " add",
        "",
        "a" * 200,
    ],
)
def test_nothing_that_is_not_on_the_menu_is_ever_run_whatever_it_is_called(name: str) -> None:
    ran: list[str] = []

    @function(expose=False)
    def secret() -> None:
        """In the registry."""
        ran.append("secret")

    @function
    def denied() -> None:
        """Taken away."""
        ran.append("denied")

    def later() -> None:
        ran.append("later")  # only in this namespace

    runtime = Runtime(scripted([[call("add", a=1, b=1), ToolCall("", name, {}), call("add", a=2, b=2)], "ok"]))
    assert runtime.exec("go", tools=[add, denied], tools_deny=["denied"]) == "ok"
    first, second, third = results(the_run(runtime))
    assert (first.text, third.text) == ("2", "4")
    assert second.is_error and second.tool_call_id == "call_2" and "There are: add." in second.text
    assert ran == []


# -------------------------------------------------------------------- results


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot be said")


NO_TEXT = {
    "none": ValueError(),
    "empty": ValueError(""),
    "blank": ValueError(" \n"),
    "a key": KeyError(""),
    "an assertion": AssertionError(),
    "the end of an iterator": StopIteration(),
    "the end of a generator": GeneratorExit(),
    "an interrupt": KeyboardInterrupt(),
    "an exit": SystemExit(),
    "a cancellation": asyncio.CancelledError(),
    "a group": ExceptionGroup("", [ValueError()]),
    "one that cannot be said": Mute(),
}


@pytest.mark.parametrize("kind", NO_TEXT)
@pytest.mark.parametrize("how", ["sync", "coroutine", "generator"])
def test_an_exception_without_a_text_is_a_result_that_is_not_empty(kind: str, how: str) -> None:
    error = NO_TEXT[kind]

    def sync() -> None:
        raise error

    async def coroutine() -> None:
        raise error

    def generator() -> Iterator[int]:
        yield 1
        raise error

    tool: Callable[..., Any] = {"sync": sync, "coroutine": coroutine, "generator": generator}[how]
    runtime = Runtime(scripted([[call(how)], "ok"]))
    assert runtime.exec("go", tools=[tool]) == "ok"
    (result,) = results(the_run(runtime))
    name = "RuntimeError" if isinstance(error, StopIteration) and how != "sync" else type(error).__name__
    assert result.is_error and name in result.text


IMAGE = ImageContent(b"png", "image/png")
NOTHING: list[Any] = ["", None, " \n", [], {}, (), b"", [""], iter(()), TextContent(""), [TextContent("")], 0, False]


@pytest.mark.parametrize("value", [*NOTHING, IMAGE, [IMAGE], ["", IMAGE]], ids=lambda value: repr(value)[:50])
def test_a_result_of_nothing_or_of_an_image_alone_is_one_that_a_provider_takes(value: Any, server: WireServer) -> None:
    def give() -> Any:
        return value

    server.script = [answer(Call("c1", "give"), Call("c2", "give")), answer("ok")]
    assert openai(server).exec("go", tools=[give]) == "ok"
    check_chat(server.asked[1].body["messages"])


def test_half_a_character_is_replaced_wherever_a_function_gives_it_and_a_whole_one_is_not(server: WireServer) -> None:
    def give(how: str) -> Any:
        if how == "raise":
            raise ValueError("half \ud83d whole 😀")
        return {"text": "half \ud83d whole 😀", "key": {"half \ud83d": "😀"}, "list": ["half \udc00", "😀"]}[how]

    calls = [Call(f"c{n}", "give", [f'{{"how": "{how}"}}']) for n, how in enumerate(("text", "key", "list", "raise"))]
    server.script = [answer(*calls), answer("ok")]
    runtime = openai(server)
    assert runtime.exec("go", tools=[give]) == "ok"
    told = [message["content"] for message in server.asked[1].body["messages"] if message["role"] == "tool"]
    assert all("half \ufffd" in text and "😀" in text for text in told) and len(told) == 4
    assert Run.from_json(the_run(runtime).to_json()) == the_run(runtime)


# -------------------------------------------------------------------- interrupts


@pytest.mark.parametrize("moment", ["function", "silence", "between rounds"])
def test_after_an_interrupt_at_any_moment_the_next_cell_works(moment: str) -> None:
    inside, silence = threading.Event(), Silence()

    def work() -> None:
        inside.set()
        if moment == "function":
            time.sleep(LONG)

    def between(event: AgentEvent) -> None:
        if event.kind == "turn_end" and moment == "between rounds":
            interrupt()
            for _ in range(1000):  # the handler runs in here
                pass

    first = scripted([[call("work")], "never"])

    def stream(request: Request) -> Iterator[StreamEvent]:
        return silence.model.stream(request) if moment == "silence" else first.stream(request)

    runtime = Runtime(Model("scripted", "", stream))
    if moment != "between rounds":
        when(silence.reached if moment == "silence" else inside, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[work], on_event=between)
    run = the_run(runtime)
    assert run.stop_reason == "aborted"
    assert runtime.exec("next", tools=[work], model=scripted(["works"]), history=run.messages) == "works"
    assert the_run(runtime).stop_reason == "stop"
