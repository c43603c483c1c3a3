"""Whatever a model says, functions do and a person sends, and whenever: every call is answered, nothing is lost.

A `World` plays a plan (see `plans`) on real threads with real signals, and then checks all that the run left.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import HealthCheck, given, settings

from op_jupyter import OutputError, Run, RunAborted, RunError, Runtime, function
from op_jupyter.context import _current_run, _current_tools, runs_under_way
from op_jupyter.events import AgentEvent, AgentEventSteering, StreamEvent, stream_of
from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Model, Request, ToolChoice
from op_jupyter.record import AssistantStep, CallStep, fold
from op_jupyter.threads import background_loop
from op_jupyter.tools import registry
from tests.plans import Nested, Pick, Question, Reply, conversations
from tests.providers.adapter import wait_for

LONG = 10.0
"""Seconds that nothing here may really take."""

TOOLSET = "of the plans"


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


GIVES: dict[str, Callable[[], Any]] = {
    "text": lambda: "fine",
    "nothing": lambda: None,
    "blank": lambda: " \n",
    "data": lambda: {"a": [1, None, float("nan")], 2: {"b"}},
    "image": lambda: ImageContent(b"png", "image/png"),
    "image and text": lambda: ["see", ImageContent(b"png", "image/png"), ""],
    "no repr": Unshowable,
    "generator": lambda: (n for n in range(3)),
    "half a character": lambda: "a\ud83d",
    "an exception": lambda: ValueError("returned"),
    "much": lambda: "x" * 200_000,
}


@dataclass
class Asked:
    """What one run was told and sent; `opened_by` is the call of a function that opened it."""

    most: int | None
    choice: ToolChoice = "auto"
    reset: bool = True
    opened_by: int | None = None
    requests: list[Request] = field(default_factory=list)


class World:
    """Plays one question, and notes what happens."""

    def __init__(self, runtime: Runtime, question: Question, history: list[Message]) -> None:
        self.runtime = runtime
        self.question = question
        self.history = history
        self.numbers = itertools.count(1)
        self.picks: list[Pick] = []
        self.asked: list[Asked] = []
        self.events: list[AgentEvent] = []
        self.executed: list[int] = []
        self.busy: set[int] = set()
        self.steered_in: set[int] = set()
        self.sent: set[str] = set()
        self.accepted: set[str] = set()
        self.stops: set[str] = set()
        self.stops_in_time: set[str] = set()
        self.asked_after_a_stop = False
        self.over = threading.Event()

    # ------------------------------------------------------------ what happens

    def do(self, action: str) -> None:
        """Something happens: here, or `beside`, which is in another thread."""
        if action.endswith(" beside"):
            in_a_thread(lambda: self.do(action.removesuffix(" beside")))
            return
        match action:
            case "steer" | "follow up":
                text = f"{action} {next(self.numbers)}"
                self.sent.add(text)
                try:
                    (self.runtime.follow_up if action == "follow up" else self.runtime.steer)(text)
                except RunError:
                    return  # there is no run
                self.accepted.add(text)
            case "abort" | "abort and wait":
                self.stops.add("abort")
                self.runtime.abort()
                self.note_stop()
            case "interrupt":
                self.stops.add("interrupt")
                try:
                    if in_main_thread():
                        signal.raise_signal(signal.SIGINT)
                    else:
                        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                finally:
                    if self.question.runner == "main thread":
                        self.note_stop()
            case "raise":
                raise ValueError("for a reason")
            case "raise without words":
                raise LookupError
            case "leave":
                raise SystemExit(1)
            case "raise an interrupt":
                raise KeyboardInterrupt
            case _:
                raise AssertionError(action)

    def note_stop(self) -> None:
        if not self.over.is_set():
            self.stops_in_time.add("main thread" if in_main_thread() else "another thread")

    def listen(self, event: AgentEvent) -> None:
        self.events.append(event)
        if event.run_id == self.events[0].run_id and (
            event.kind == "agent_end" or (isinstance(event, AgentEventSteering) and event.state == "undelivered")
        ):
            self.over.set()
        count = sum(event.kind == earlier.kind for earlier in self.events)
        for kind, n, action in self.question.at:
            if (kind, n) == (event.kind, count):
                self.do(action)

    def callback(self, given: tuple[tuple[str, ...], ...]) -> Callable[[], list[str]]:
        left = iter(given)

        def get() -> list[str]:
            texts: list[str] = []
            for action in next(left, ()):
                if action == "give":
                    texts.append(f"given {next(self.numbers)}")
                else:
                    self.do(action)
            self.sent.update(texts)
            self.accepted.update(texts)
            return [*texts, " "]

        return get

    def approve(self, call: ToolCall, tool: Any) -> bool:
        for action in self.question.approval:
            if action != "yes":
                self.do(action)
        return "yes" in self.question.approval

    # ------------------------------------------------------------ the model

    def model(self, replies: tuple[Reply, ...], asked: Asked) -> Model:
        self.asked.append(asked)
        script = iter(replies)

        def stream(request: Request) -> Iterator[StreamEvent]:
            self.asked_after_a_stop |= "main thread" in self.stops_in_time
            asked.requests.append(request)
            abandoned = threading.Event()
            request.on_abandon.append(abandoned.set)
            reply = next(script, Reply())
            happens = sorted(reply.does)
            for position, piece in enumerate(stream_of(self.message(reply))):
                while happens and happens[0][0] <= position:
                    _, action = happens.pop(0)
                    self.do(action)
                    if action == "abort and wait":
                        abandoned.wait(LONG if self.runtime.under_way else 0)
                if position >= reply.cut and reply.end in ("lost", "raises", "leaves"):
                    break
                yield piece
            if reply.end == "raises":
                raise OSError("The line is dead.")
            if reply.end == "leaves":
                raise SystemExit(1)

        return Model("planned", str(len(self.asked) - 1), stream)

    def asked_of(self, run: Run) -> Asked:
        return self.asked[int(run.model.partition(":")[2])]

    def message(self, reply: Reply) -> AssistantMessage:
        content = [self.call(block) if isinstance(block, Pick) else block for block in reply.blocks]
        stop_reason: StopReason = "tool_use" if any(isinstance(block, ToolCall) for block in content) else "stop"
        if reply.end == "length" or reply.end == "error":
            stop_reason = reply.end
        return AssistantMessage(content, stop_reason, error_message="x" if reply.end == "error" else None)

    def call(self, pick: Pick) -> ToolCall:
        number = len(self.picks)
        self.picks.append(pick)
        id = f"id {number}" if pick.id is None else pick.id
        if pick.arguments == "are no object":
            return ToolCall(id, pick.name, {}, raw_arguments=f"[{number}")
        if pick.name == "tool_search":
            return ToolCall(id, pick.name, {"query": "deferred"})
        return ToolCall(id, pick.name, {"n": number} if pick.arguments == "fit" else {"n": "x", "number": number})

    # ------------------------------------------------------------ the functions

    def begin(self, number: int) -> Pick:
        pick = self.picks[number]
        self.busy.add(number)
        self.executed.append(number)
        for action in pick.does:
            before = len(self.accepted)
            self.do(action)
            if action.startswith("steer") and len(self.accepted) > before:
                self.steered_in.add(number)
        return pick

    def body(self, number: int) -> Any:
        try:
            pick = self.begin(number)
            if not pick.nested:
                return GIVES[pick.gives]()
            arguments = self.nested(pick.nested, number)
            if pick.nested.how == "copied context":
                return asyncio.run(asyncio.to_thread(lambda: self.runtime.exec("inner", **arguments)))
            return (Runtime() if pick.nested.how == "other runtime" else self.runtime).exec("inner", **arguments)
        except BaseException:
            if self.picks[number].swallows:
                return "swallowed"
            raise
        finally:
            self.busy.discard(number)

    async def async_body(self, number: int) -> Any:
        try:
            pick = self.begin(number)
            await asyncio.sleep(0)
            if not pick.nested:
                return GIVES[pick.gives]()
            return await self.runtime.aexec("inner", **self.nested(pick.nested, number))
        except BaseException:
            if self.picks[number].swallows:
                return "swallowed"
            raise
        finally:
            self.busy.discard(number)

    def nested(self, plan: Nested, number: int) -> dict[str, Any]:
        model = self.model(plan.replies, Asked(plan.most, opened_by=number))
        return {"model": model, "max_iterations": plan.most}

    # ------------------------------------------------------------ the run

    def play(self) -> Run:
        """Ask, wait until nothing of it goes on any more, check what it came to, and give the record."""
        plan = self.question
        arguments: dict[str, Any] = {
            "model": self.model(plan.replies, Asked(plan.most, plan.choice, plan.reset)),
            "toolset": TOOLSET,
            "tools_deny": ["denied"],
            "max_iterations": plan.most,
            "tool_choice": plan.choice,
            "reset_tool_choice": plan.reset,
            "parallel_tool_calls": plan.parallel,
            "response_format": {"type": "object"} if plan.wants_json else None,
            "history": self.history,
            "get_steering_messages": self.callback(plan.steering),
            "get_follow_up_messages": self.callback(plan.follow_ups),
            "on_event": self.listen,
            "on_approval": self.approve,
        }
        outcome: Any = None
        try:
            match plan.runner:
                case "main thread":
                    outcome = self.runtime.exec("go", **arguments)
                case "worker thread":
                    outcome = in_a_thread(lambda: self.runtime.exec("go", **arguments))
                case "aexec":
                    outcome = asyncio.run(self.runtime.aexec("go", **arguments))
        except BaseException as error:
            outcome = error
        assert self.runtime.under_way is None and not runs_under_way
        assert _current_run.get() is None and _current_tools.get() is None
        run = self.runtime.last_run
        assert run is not None and run.run_id == self.events[0].run_id
        self.over.set()
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), background_loop()).result(LONG)
        assert wait_for(lambda: not self.busy and not threads(), LONG), threads()
        assert self.runtime.last_run is run
        self.check_outcome(run, outcome)
        self.check_what_the_person_sent(run)
        self.check_record(run)
        for one in tree(run):
            self.check_messages(one)
            self.check_requests(one)
            self.check_calls(one)
        return run

    def check_outcome(self, run: Run, outcome: Any) -> None:
        """What `exec` returned or raised is what the record says."""
        assert run.hit_cap == (run.stop_reason == "max_iterations")
        ended_well = run.stop_reason in ("stop", "max_iterations", "length", "tool_use")
        match outcome:
            case KeyboardInterrupt():
                assert "interrupt" in self.stops and self.question.runner == "main thread"
                assert ended_well or run.stop_reason == "aborted"
            case RunAborted():
                assert run.stop_reason == "aborted" and outcome.run is run and "abort" in self.stops
            case RunError():
                assert run.stop_reason == "error" and outcome.run is run and str(outcome) == run.error
            case OutputError():
                assert ended_well and self.question.wants_json and not self.stops_in_time
            case ValueError():  # of a callback
                assert (run.stop_reason, run.error) == ("error", "ValueError: for a reason")
            case BaseException():
                raise AssertionError("no such exception") from outcome
            case _:
                assert ended_well and not self.stops_in_time
                assert isinstance(outcome, dict) if self.question.wants_json else outcome == run.text
        assert not self.asked_after_a_stop

    def check_what_the_person_sent(self, run: Run) -> None:
        """It is delivered once or undelivered once, and nothing waits any more."""
        delivered = [m.text for m in run.new_messages if isinstance(m, UserMessage) and m.source != "user"]
        undelivered = [message.text for message in run.undelivered]
        assert run.queued == []
        for text in self.sent:
            places = delivered.count(text) + undelivered.count(text)
            assert places == 1 if text in self.accepted else places <= 1
        assert {*delivered, *undelivered} <= self.sent

    def check_record(self, run: Run) -> None:
        """The events make the same record again, and so does its JSON; all that began has ended."""
        again = Run(run_id=run.run_id)
        for event in self.events:
            fold(again, event)
        assert again == run
        text = run.to_json()
        assert Run.from_json(text).to_json() == text
        for one in tree(run):
            assert one.stop_reason is not None and one.ended is not None
            for step in one.steps:
                assert not isinstance(step, AssistantStep | CallStep) or step.ended is not None

    def check_messages(self, run: Run) -> None:
        check_answered(run.new_messages)
        check_replayable(replayable(run.messages))
        calls = [call for message in replies(run) for call in message.tool_calls]
        for call_id, children in run.children.items():
            (call,) = [call for call in calls if call.id == call_id]
            assert all(call.arguments == {"n": self.asked_of(child).opened_by} for child in children)

    def check_requests(self, run: Run) -> None:
        """Each request holds all that was said before it, and the choice holds until it is made."""
        asked = self.asked_of(run)
        assert run.rounds <= max(1, min(50, 50 if asked.most is None else asked.most))
        choice = asked.choice
        said = list(run.history)
        requests = iter(asked.requests)
        for message in run.new_messages:
            if isinstance(message, AssistantMessage) and (request := next(requests, None)):
                check_replayable(request.messages)
                assert request.messages == replayable(said)
                assert request.tool_choice == choice
                offered = {tool.name for tool in request.tools}
                assert "denied" not in offered
                picked = {call.name for call in message.tool_calls} & offered
                if asked.reset and (choice == "required" or isinstance(choice, dict)):
                    wanted = picked if choice == "required" else picked & {cast(Any, choice)["name"]}
                    choice = "auto" if wanted else choice
            said.append(message)
        assert next(requests, None) is None

    def check_calls(self, run: Run) -> None:
        """Only what may run has run, once, in order, and nothing behind a message of the person."""
        asked = self.asked_of(run)
        is_root = asked.opened_by is None
        for message in replies(run):
            numbers = [call.arguments.get("n") for call in message.tool_calls]
            ran = [n for n in self.executed if n in numbers]
            in_time = [n for n in ran if self.picks[n].name != "late"]
            assert in_time == sorted(in_time) and len(set(ran)) == len(ran)
            assert not ran or (message.stop_reason == "tool_use" and asked.choice != "none")
            for n in ran:
                pick = self.picks[n]
                assert pick.arguments == "fit" and pick.name not in ("denied", "nowhere", "no such name!", "")
                assert pick.name != "guarded" or "yes" in self.question.approval
            if is_root:
                assert len(ran) <= 1 or self.question.parallel is None
                steered = [n for n in in_time if n in self.steered_in]
                assert not steered or max(ran) == min(steered)


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def in_a_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns in a thread of its own, or the exception that it raises."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(work())
        except BaseException as error:
            came.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return came[0]


def threads() -> list[str]:
    """The threads that a run has left behind; the loop of coroutine functions stays."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("op_jupyter") and name != "op_jupyter coroutines"]


def tree(run: Run) -> Iterator[Run]:
    yield run
    for children in run.children.values():
        for child in children:
            yield from tree(child)


def replies(run: Run) -> list[AssistantMessage]:
    return [message for message in run.new_messages if isinstance(message, AssistantMessage)]


def check_answered(messages: list[Message]) -> None:
    """Every call has its one result, in order and right behind its message, and an id of its own."""
    left = iter(messages)
    seen: set[str] = set()
    for message in left:
        assert not isinstance(message, ToolResultMessage), "a result without a call"
        for call in message.tool_calls if isinstance(message, AssistantMessage) else []:
            result = next(left, None)
            assert isinstance(result, ToolResultMessage) and result.tool_call_id == call.id
            assert call.id and call.id not in seen
            seen.add(call.id)


def check_replayable(messages: list[Message]) -> None:
    """A provider would take these: they begin with a person, the roles alternate, and nothing is blank."""
    check_answered(messages)
    assert replayable(messages) == messages
    assert all(isinstance(message, UserMessage) for message in messages[:1])
    for before, message in itertools.pairwise(messages):
        assert not (isinstance(before, AssistantMessage) and isinstance(message, AssistantMessage))
    for message in messages:
        assert message.content
        for block in message.content:
            if isinstance(block, TextContent | ThinkingContent) and not block.provider_data:
                assert (block.text if isinstance(block, TextContent) else block.thinking).strip()


# -------------------------------------------------------------------- the test


def register_functions(world: Callable[[], World]) -> None:
    @function(toolset=[TOOLSET], expose=False)
    def plain(n: int) -> Any:
        return world().body(n)

    @function(toolset=[TOOLSET], expose=False)
    async def coroutine(n: int) -> Any:
        return await world().async_body(n)

    @function(toolset=[TOOLSET], expose=False, timeout=LONG)
    def threaded(n: int) -> Any:
        return world().body(n)

    @function(toolset=[TOOLSET], expose=False, timeout=0.002)
    def late(n: int) -> Any:
        here = world()
        here.over.wait(LONG)
        return here.body(n)

    @function(toolset=[TOOLSET], expose=False, requires_approval=True)
    def guarded(n: int) -> Any:
        return world().body(n)

    @function(toolset=[TOOLSET], expose=False)
    def denied(n: int) -> Any:
        return world().body(n)

    @function(toolset=[TOOLSET], expose=False, defer=True)
    def deferred(n: int) -> Any:
        return world().body(n)


def play(plan: list[Question]) -> None:
    worlds: list[World] = []
    registry._registry.clear()
    register_functions(lambda: worlds[-1])
    runtime = Runtime()
    history: list[Message] = []
    # An interrupt that comes too late for a run must not end the test.
    before = signal.signal(signal.SIGINT, stray := lambda signum, frame: None)
    try:
        for question in plan:
            worlds.append(World(runtime, question, history))
            run = worlds[-1].play()
            assert signal.getsignal(signal.SIGINT) is stray
            history = run.messages if question.goes_on else []
    finally:
        signal.signal(signal.SIGINT, before)


# Derandomized and without a database: it plays the same plans everywhere, so that a red run is a real one.
@settings(max_examples=2000, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=conversations())
def test_whatever_happens_in_a_run_every_call_is_answered_and_no_message_is_lost(plan: list[Question]) -> None:
    play(plan)
