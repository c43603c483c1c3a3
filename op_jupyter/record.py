"""The record of a run, and `fold`, the only place that says what an event does to it.

Nothing here runs or draws anything: the loop emits events, and every view is made from the record.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, assert_never

from op_jupyter.errors import ErrorKind
from op_jupyter.events import (
    AgentEvent,
    AgentEventAgentEnd,
    AgentEventAgentStart,
    AgentEventApproval,
    AgentEventMessageEnd,
    AgentEventMessageStart,
    AgentEventMessageUpdate,
    AgentEventRetry,
    AgentEventSteering,
    AgentEventToolEnd,
    AgentEventToolStart,
    AgentEventToolUpdate,
    AgentEventTurnEnd,
    AgentEventTurnStart,
    Approval,
    RunStopReason,
    ToolOutcome,
    apply_update,
)
from op_jupyter.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, Usage, UserMessage

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(slots=True, kw_only=True)
class UserStep:
    """A message of the person, delivered before the request of round `round`."""

    round: int
    message: UserMessage
    time: float
    kind: Literal["user"] = "user"


@dataclass(slots=True, kw_only=True)
class AssistantStep:
    """A reply of the model; `message` grows until `ended` is set. Times are in seconds since the epoch."""

    round: int
    message: AssistantMessage
    started: float
    ended: float | None = None
    kind: Literal["assistant"] = "assistant"


@dataclass(slots=True, kw_only=True)
class CallStep:
    """A call and its answer. `output` is what the function wrote, as notebook outputs (nbformat).

    `approval` is how it came to be allowed or refused, where it needs approval.
    """

    round: int
    call: ToolCall
    started: float
    state: Literal["running", "waiting"] | ToolOutcome = "running"
    output: list[dict[str, Any]] = field(default_factory=list)
    approval: Approval | None = None
    result: ToolResultMessage | None = None
    ended: float | None = None
    kind: Literal["call"] = "call"


@dataclass(slots=True, kw_only=True)
class RetryStep:
    """The provider failed before any output, and was asked again after `delay` seconds."""

    round: int
    attempt: int
    delay: float
    reason: str
    time: float
    kind: Literal["retry"] = "retry"


Step = UserStep | AssistantStep | CallStep | RetryStep


@dataclass(kw_only=True, repr=False)
class Run:
    """What happened in one `exec`, as far as it got.

    Attributes:
        run_id: a name that no other run has.
        steps: all that happened, in order.
        rounds: how often the model was asked.
        stop_reason: how the run ended; `None` while it goes on.
        error: what went wrong, in one line; `error_kind` is its kind.
        history: the messages that the run started from.
        queued: steering messages that wait for the next request.
        undelivered: steering messages that came too late for a request.
        children: the nested runs, in order, by the id of the call that they ran under.
        values: what each function returned, by call id; Python objects, which `to_json` leaves out.
    """

    run_id: str
    model: str = ""
    tools: list[str] = field(default_factory=list)
    history: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rounds: int = 0
    stop_reason: RunStopReason | None = None
    error: str | None = None
    error_kind: ErrorKind | None = None
    queued: list[UserMessage] = field(default_factory=list)
    undelivered: list[UserMessage] = field(default_factory=list)
    children: dict[str, list[Run]] = field(default_factory=dict)
    started: float | None = None
    ended: float | None = None

    def __post_init__(self) -> None:
        # No field, so that `to_json` leaves it out.
        self.values: dict[str, Any] = {}

    def __repr__(self) -> str:
        text = " ".join(self.text.split())
        shown = text if len(text) <= 80 else f"{text[:79]}…"
        return f"<Run: {self.stop_reason or 'under way'}, rounds={self.rounds}, text={shown!r}>"

    @property
    def new_messages(self) -> list[Message]:
        """The messages of this run, complete ones only."""
        messages: list[Message] = []
        for step in self.steps:
            match step:
                case UserStep():
                    messages.append(step.message)
                case AssistantStep():
                    if step.ended is not None:
                        messages.append(step.message)
                case CallStep():
                    if step.result is not None:
                        messages.append(step.result)
                case RetryStep():
                    pass
                case _:
                    assert_never(step)
        return messages

    @property
    def messages(self) -> list[Message]:
        """The whole conversation: `history` and what this run added."""
        return [*self.history, *self.new_messages]

    @property
    def text(self) -> str:
        """The text of the last message of the model; empty when there is none."""
        replies = [step.message.text for step in self.steps if isinstance(step, AssistantStep)]
        return replies[-1] if replies else ""

    @property
    def hit_cap(self) -> bool:
        """Whether the run ended because it had asked the model as often as it may."""
        return self.stop_reason == "max_iterations"

    @property
    def usage(self) -> Usage:
        """The tokens of this run and of the runs nested in it."""
        total = Usage()
        for step in self.steps:
            if isinstance(step, AssistantStep):
                total += step.message.usage
        for runs in self.children.values():
            for run in runs:
                total += run.usage
        return total

    def to_json(self) -> str:
        """The whole record as JSON, without `values`."""
        return _adapter().dump_json(self).decode()

    @staticmethod
    def from_json(text: str) -> Run:
        """The record that `to_json` wrote.

        Raises:
            ValueError: when `text` is not one.
        """
        return _adapter().validate_json(text)


@functools.cache
def _adapter() -> TypeAdapter[Run]:
    from pydantic import TypeAdapter

    return TypeAdapter(Run)


def find_run(root: Run, run_id: str) -> Run | None:
    """The run named `run_id` in the tree of runs under `root`."""
    if root.run_id == run_id:
        return root
    # The latest first: that is the one that goes on.
    for runs in reversed(root.children.values()):
        for run in reversed(runs):
            if found := find_run(run, run_id):
                return found
    return None


def fold(root: Run, event: AgentEvent) -> None:
    """Let the record `root` grow by one event of it or of a run nested in it, in place."""
    if isinstance(event, AgentEventAgentStart):
        _start(root, event)
        return
    run = find_run(root, event.run_id)
    if run is None:
        raise ValueError(f"An event of kind {event.kind!r} belongs to no run that has started: {event.run_id!r}")
    match event:
        case AgentEventAgentEnd():
            run.stop_reason, run.error, run.error_kind = event.stop_reason, event.error, event.error_kind
            run.ended = event.time
        case AgentEventTurnStart():
            run.rounds = event.round
        case AgentEventTurnEnd():
            pass
        case AgentEventMessageStart():
            if isinstance(event.message, AssistantMessage):
                own = replace(event.message, content=[])
                run.steps.append(AssistantStep(round=run.rounds, message=own, started=event.time))
        case AgentEventMessageUpdate():
            apply_update(_reply(run).message.content, event.update)
        case AgentEventMessageEnd():
            if isinstance(event.message, AssistantMessage):
                step = _reply(run)
                step.message, step.ended = event.message, event.time
            else:
                run.steps.append(UserStep(round=run.rounds, message=event.message, time=event.time))
        case AgentEventToolStart():
            run.steps.append(CallStep(round=run.rounds, call=event.call, started=event.time))
        case AgentEventToolUpdate():
            _write(_call(run, event.call_id).output, event.output)
        case AgentEventToolEnd():
            _end_call(run, event)
        case AgentEventRetry():
            run.steps.append(
                RetryStep(
                    round=run.rounds, attempt=event.attempt, delay=event.delay, reason=event.reason, time=event.time
                )
            )
        case AgentEventApproval():
            call = _call(run, event.call.id)
            # How long a person thought about it is not the time that the call took.
            call.started = event.time
            if event.state == "asked":
                call.state = "waiting"
            else:
                call.state, call.approval = "running", event.state
        case AgentEventSteering():
            _steer(run, event)
        case _:
            assert_never(event)


def _start(root: Run, event: AgentEventAgentStart) -> None:
    if event.run_id == root.run_id:
        run = root
    else:
        run = Run(run_id=event.run_id)
        parent = find_run(root, event.parent_run_id or root.run_id)
        if parent is None:
            raise ValueError(f"A nested run belongs to no run that has started: {event.parent_run_id!r}")
        parent.children.setdefault(event.parent_call_id or "", []).append(run)
    run.model, run.tools, run.history, run.started = event.model, event.tools, event.history, event.time


def _end_call(run: Run, event: AgentEventToolEnd) -> None:
    last = run.steps[-1]
    if not isinstance(last, CallStep) or last.result is not None:
        last = CallStep(round=run.rounds, call=event.call, started=event.time)
        run.steps.append(last)
    last.state, last.result, last.ended = event.outcome, event.message, event.time


def _write(outputs: list[dict[str, Any]], output: dict[str, Any]) -> None:
    """Add an output; what goes on in one stream is one output, however often a function writes."""
    last = outputs[-1] if outputs else {}
    if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
        outputs[-1] = {**last, "text": last["text"] + output["text"]}
    else:
        outputs.append(output)


def _steer(run: Run, event: AgentEventSteering) -> None:
    if event.state == "queued":
        run.queued.append(event.message)
        return
    if event.message in run.queued:
        run.queued.remove(event.message)
    if event.state == "undelivered":
        run.undelivered.append(event.message)


def _reply(run: Run) -> AssistantStep:
    """The reply that the model is giving."""
    for step in reversed(run.steps):
        if isinstance(step, AssistantStep):
            return step
    raise ValueError("A message was updated before it started")


def _call(run: Run, call_id: str) -> CallStep:
    for step in reversed(run.steps):
        if isinstance(step, CallStep) and step.call.id == call_id:
            return step
    raise ValueError(f"Call {call_id!r} was updated before it started")
