"""Interrupt and stop: at once, in the right place, and never a cell too late. Signals are real ones."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from op_jupyter import RunAborted, Runtime
from op_jupyter.events import AgentEvent, BlockStart, StreamEnd, StreamEvent
from op_jupyter.messages import TextContent
from op_jupyter.providers import Model, Request
from op_jupyter.testing import call, scripted
from tests.conversation import results, the_run

LONG = 30.0
"""Seconds that nothing here may really take."""


class Silence:
    """A reply that says `text`, if any, and then nothing."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.reached = threading.Event()
        self.abandoned = threading.Event()
        self.model = Model("silent", "", self._stream)

    def _stream(self, request: Request) -> Iterator[StreamEvent]:
        request.on_abandon.append(self.abandoned.set)
        if self.text:
            yield BlockStart(0, TextContent(self.text))
        self.reached.set()
        self.abandoned.wait(LONG)
        yield StreamEnd("stop")


def interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def when(reached: threading.Event, *actions: Callable[[], Any]) -> list[float]:
    """Do each action once `reached` is set, from another thread; gives the time of the first."""
    times: list[float] = []

    def act() -> None:
        assert reached.wait(LONG)
        time.sleep(0.02)  # let the main thread get to where it blocks
        for action in actions:
            times.append(time.perf_counter())
            action()
            time.sleep(0.05)

    threading.Thread(target=act, daemon=True).start()
    return times


def test_an_interrupt_while_the_stream_is_silent_ends_the_run_and_keeps_what_was_said() -> None:
    silence = Silence("Let me see")
    runtime = Runtime(model=silence.model)
    times = when(silence.reached, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go")
    assert time.perf_counter() - times[0] < 0.1
    assert silence.abandoned.wait(1)
    assert (the_run(runtime).stop_reason, the_run(runtime).text) == ("aborted", "Let me see")


def test_stop_while_the_stream_is_silent_raises_run_aborted() -> None:
    silence = Silence()
    runtime = Runtime(model=silence.model)
    when(silence.reached, runtime.abort)
    with pytest.raises(RunAborted) as caught:
        runtime.exec("go")
    assert caught.value.run is runtime.last_run and caught.value.kind == "aborted"


@pytest.mark.parametrize(("end", "error"), [("interrupt", KeyboardInterrupt), ("abort", RunAborted)])
def test_a_sleeping_function_is_left_at_once_and_every_call_is_answered(end: str, error: type[BaseException]) -> None:
    inside = threading.Event()

    def work(n: int) -> int:
        inside.set()
        time.sleep(LONG)
        return n

    runtime = Runtime(model=scripted([[call("work", n=1), call("work", n=2)], "never"]))
    times = when(inside, interrupt if end == "interrupt" else runtime.abort)
    with pytest.raises(error):
        runtime.exec("go", tools=[work])
    assert time.perf_counter() - times[0] < 0.1
    first, second = results(the_run(runtime))
    assert "side effects" in first.text and first.is_error
    assert "Not run" in second.text and second.is_error
    assert the_run(runtime).stop_reason == "aborted"


def test_a_function_that_swallows_the_interrupt_is_still_followed_by_the_end() -> None:
    inside = threading.Event()

    def stubborn() -> str:
        try:
            inside.set()
            time.sleep(LONG)
        except BaseException:
            return "I saw nothing"
        return "slept"

    runtime = Runtime(model=scripted([[call("stubborn")], "never"]))
    when(inside, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[stubborn])
    assert the_run(runtime).rounds == 1


def test_a_second_interrupt_raises_again_in_a_function_that_goes_on() -> None:
    inside = threading.Event()

    def very_stubborn() -> str:
        for _ in range(2):
            try:
                inside.set()
                time.sleep(LONG)
            except KeyboardInterrupt:
                continue
        return "gave up"

    runtime = Runtime(model=scripted([[call("very_stubborn")], "never"]))
    times = when(inside, interrupt, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[very_stubborn])
    assert len(times) == 2 and time.perf_counter() - times[1] < 1


def test_an_interrupt_in_a_nested_run_ends_the_whole_tree() -> None:
    silence = Silence()

    def research() -> str:
        try:
            return Runtime(model=silence.model).exec("look", tools=[])
        except BaseException:
            return "ignored"

    runtime = Runtime(model=scripted([[call("research")], "never"]))
    when(silence.reached, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[research])
    run = the_run(runtime)
    assert run.stop_reason == "aborted" and run.children["call_1"][0].stop_reason == "aborted"


def test_stop_in_a_nested_run_ends_the_whole_tree() -> None:
    inside = threading.Event()

    def nap() -> None:
        inside.set()
        time.sleep(LONG)

    def research() -> str:
        return Runtime(model=scripted([[call("nap")], "never"])).exec("look", tools=[nap])

    runtime = Runtime(model=scripted([[call("research")], "never"]))
    when(inside, runtime.abort)
    with pytest.raises(RunAborted):
        runtime.exec("go", tools=[research])
    assert "side effects" in results(the_run(runtime).children["call_1"][0])[0].text


def test_a_coroutine_function_is_cancelled() -> None:
    inside, cancelled = threading.Event(), threading.Event()

    async def wait() -> None:
        inside.set()
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    runtime = Runtime(model=scripted([[call("wait")], "never"]))
    times = when(inside, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[wait])
    assert time.perf_counter() - times[0] < 0.1
    assert cancelled.wait(1)


def test_an_abort_off_the_main_thread_waits_for_the_function_and_then_ends_the_run() -> None:
    inside, release = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def work() -> str:
        inside.set()
        release.wait(LONG)
        return "done"

    runtime = Runtime(model=scripted([[call("work")], "never"]))

    def run() -> None:
        try:
            runtime.exec("go", tools=[work])
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(LONG)
    runtime.abort()
    thread.join(0.1)
    assert thread.is_alive()
    release.set()
    thread.join(LONG)
    assert isinstance(raised[0], RunAborted)


def test_a_message_sent_just_before_a_stop_is_reported() -> None:
    silence = Silence()
    runtime = Runtime(model=silence.model)
    when(silence.reached, lambda: runtime.steer("wait"), runtime.abort)
    with pytest.raises(RunAborted):
        runtime.exec("go")
    assert [message.source for message in the_run(runtime).undelivered] == ["steering"]


def test_after_an_interrupt_the_same_conversation_goes_on() -> None:
    inside = threading.Event()

    def work() -> None:
        inside.set()
        time.sleep(LONG)

    seen: list[Request] = []
    runtime = Runtime(model=scripted([[call("work"), call("work")], lambda request: seen.append(request) or "ok"]))
    when(inside, interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[work])
    assert runtime.exec("go on", tools=[work], history=the_run(runtime).messages) == "ok"
    assert [message.kind for message in seen[0].messages] == ["user", "assistant", "tool_result", "tool_result", "user"]


def test_the_handler_is_given_back_after_a_run_however_it_ended() -> None:
    before = signal.getsignal(signal.SIGINT)
    runtime = Runtime(model=scripted(["ok", RuntimeError("x")]))
    runtime.exec("go")
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(Exception, match="x"):
        runtime.exec("go")
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_between_rounds_tears_no_event_and_ends_the_run() -> None:
    folded: list[str] = []

    def listen(event: Any) -> None:
        if event.kind == "turn_end":
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # the handler runs in here
                pass
        folded.append(event.kind)

    def work() -> str:
        return "done"

    runtime = Runtime(model=scripted([[call("work")], "never"]))
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[work], on_event=listen)
    assert folded[-2:] == ["turn_end", "agent_end"]
    assert results(the_run(runtime))[0].text == "done"


def test_an_interrupt_while_the_last_reply_is_taken_in_is_not_lost() -> None:
    def listen(event: Any) -> None:
        if event.kind == "message_end" and event.message.kind == "assistant":
            interrupt()
            for _ in range(1000):  # the handler runs in here
                pass

    runtime = Runtime(model=scripted(["done"]))
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", on_event=listen)
    assert the_run(runtime).stop_reason == "aborted"


def test_an_interrupt_after_the_last_event_still_surfaces() -> None:
    def listen(event: Any) -> None:
        if event.kind == "agent_end":
            interrupt()
            for _ in range(1000):
                pass

    with pytest.raises(KeyboardInterrupt):
        Runtime(model=scripted(["done"])).exec("go", on_event=listen)


def test_an_interrupt_leaves_a_callback_that_waits() -> None:
    inside = threading.Event()

    def get() -> list[str]:
        inside.set()
        time.sleep(LONG)
        return []

    times = when(inside, interrupt)
    with pytest.raises(KeyboardInterrupt):
        Runtime(model=scripted(["done"])).exec("go", get_follow_up_messages=get)
    assert time.perf_counter() - times[0] < 0.1


def test_a_callback_that_fails_leaves_no_call_without_a_result() -> None:
    asked: list[int] = []

    def get() -> list[str]:
        asked.append(1)
        if len(asked) == 2:
            raise OSError("no line")
        return []

    def work() -> str:
        return "done"

    runtime = Runtime(model=scripted([[call("work"), call("work")], "never"]))
    with pytest.raises(OSError, match="no line"):
        runtime.exec("go", tools=[work], get_steering_messages=get)
    assert [result.text for result in results(the_run(runtime))] == ["done", "Not run: the run ended before this call."]
    assert the_run(runtime).error == "OSError: no line"


def test_a_stop_ends_nested_runs_in_other_threads_before_the_run_itself() -> None:
    inside = threading.Event()

    def slow() -> str:
        inside.set()
        time.sleep(0.3)
        return "done"

    async def ask() -> str:
        return await Runtime(model=scripted([[call("slow")], "never"])).aexec("inner", tools=[slow])

    runtime = Runtime(model=scripted([[call("ask")], "never"]))
    when(inside, runtime.abort)
    with pytest.raises(RunAborted):
        runtime.exec("go", tools=[ask])
    (child,) = the_run(runtime).children["call_1"]
    assert child.stop_reason == "aborted" and len(results(child)) == 1
    assert (child.ended or 0) <= (the_run(runtime).ended or 0)


def test_200_stops_around_the_end_of_a_run_each_end_it_and_hit_nothing_after_it() -> None:
    """Each stop falls at another moment between 'in the function' and 'after the run'."""
    inside = threading.Event()

    def work() -> str:
        inside.set()
        time.sleep(0.001)
        return "done"

    def stop(runtime: Runtime, delay: float) -> None:
        inside.wait(LONG)
        time.sleep(delay)
        runtime.abort()

    stopped = 0
    for n in range(200):
        inside.clear()
        runtime = Runtime(model=scripted([[call("work")], "ok"]))
        thread = threading.Thread(target=stop, args=(runtime, 0.00003 * n))
        thread.start()
        try:
            runtime.exec("go", tools=[work])
        except RunAborted:
            stopped += 1
        thread.join()  # what comes after the run must not be hit
        time.sleep(0.0005)
        assert the_run(runtime).stop_reason in ("stop", "aborted")
    assert 0 < stopped < 200


def test_a_function_past_its_timeout_is_left_and_the_result_says_that_it_may_go_on() -> None:
    from op_jupyter import function

    release = threading.Event()

    @function(timeout=0.05)
    def slow() -> str:
        """Slow."""
        release.wait(LONG)
        return "late"

    runtime = Runtime(model=scripted([[call("slow")], "ok"]))
    assert runtime.exec("go", tools=[slow]) == "ok"
    (result,) = results(the_run(runtime))
    assert result.is_error and "0.05" in result.text and "still be running" in result.text
    release.set()


def interrupted(n: int) -> None:
    raise KeyboardInterrupt


def exited(n: int) -> None:
    raise SystemExit(4)


def test_an_interrupt_that_our_handler_never_saw_ends_the_run_all_the_same() -> None:
    def listen(event: AgentEvent) -> None:
        if event.kind == "tool_start":
            raise KeyboardInterrupt

    def work(n: int) -> str:
        return "fine"

    runtime = Runtime(model=scripted([[call("work", n=1), call("work", n=2)], "never"]))
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[work], on_event=listen)
    run = the_run(runtime)
    assert run.stop_reason == "error" and [result.tool_call_id for result in results(run)] == ["call_1", "call_2"]


@pytest.mark.parametrize(("leave", "text"), [(interrupted, "KeyboardInterrupt"), (exited, "SystemExit: 4")])
def test_a_validator_that_exits_ends_the_run_as_little_as_a_function_that_does(leave: Any, text: str) -> None:
    def checked(n: Any) -> str:
        return "never"

    def body() -> None:
        leave(1)

    checked.__annotations__["n"] = Annotated[int, AfterValidator(leave)]
    runtime = Runtime(model=scripted([[call("checked", n=1), call("body")], "ok"]))
    assert runtime.exec("go", tools=[checked, body]) == "ok"
    assert [result.text for result in results(the_run(runtime))] == [text, text]


def test_an_interrupt_surfaces_as_one_after_a_function_that_left_another_handler() -> None:
    silence = Silence("So")

    def careless() -> str:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return "done"

    replies = iter([scripted([[call("careless")]]), silence.model])
    model = Model("planned", "", lambda request: next(replies).stream(request))
    when(silence.reached, interrupt)
    runtime = Runtime(model=model)
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", tools=[careless])
    assert the_run(runtime).stop_reason == "aborted" and silence.abandoned.is_set()


@pytest.mark.parametrize("where", ["callback", "listener"])
def test_an_interrupt_in_a_run_that_a_callback_has_started_ends_the_run_of_the_callback_too(where: str) -> None:
    silence = Silence()
    judge = Runtime(model=silence.model)
    judged: list[int] = []

    def ask() -> list[str]:
        judged.append(1)
        if len(judged) == 2:
            judge.exec("fine?", tools=[])
        return []

    def listen(event: AgentEvent) -> None:
        if event.kind == "turn_start":
            judge.exec("fine?", tools=[])

    when(silence.reached, interrupt)
    runtime = Runtime(model=scripted(["never", "never"]))
    callbacks: dict[str, Any] = {"get_steering_messages": ask} if where == "callback" else {"on_event": listen}
    with pytest.raises(KeyboardInterrupt):
        runtime.exec("go", **callbacks)
    assert (the_run(runtime).stop_reason, the_run(judge).stop_reason) == ("aborted", "aborted")


def test_an_aexec_that_is_cancelled_twice_has_ended_when_it_is_left(caplog: pytest.LogCaptureFixture) -> None:
    started, release = threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        release.wait(LONG)

    runtime = Runtime(model=scripted([[call("slow")], "a"]))

    async def main() -> str:
        task = asyncio.create_task(runtime.aexec("go", tools=[slow]))
        await asyncio.to_thread(started.wait, LONG)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.02)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert runtime.under_way is None and the_run(runtime).stop_reason == "aborted"
        return await runtime.aexec("again")

    assert asyncio.run(main()) == "a"
    gc.collect()
    assert caplog.records == []
