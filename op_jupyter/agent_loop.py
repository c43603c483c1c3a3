"""The loop: a round is one streamed reply of the model and the execution of the calls it holds.

Here the rules of a round stand, and nothing else: no provider is known here, no record kept, nothing drawn.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from dataclasses import replace
from itertools import count
from typing import Literal

from op_jupyter.context import AgentContext, CurrentRun, Emit, under
from op_jupyter.control import Aborted, RunControl
from op_jupyter.endings import STOPPED
from op_jupyter.errors import ErrorKind, RunError
from op_jupyter.events import (
    AgentEventAgentEnd,
    AgentEventMessageEnd,
    AgentEventMessageStart,
    AgentEventMessageUpdate,
    AgentEventRetry,
    AgentEventSteering,
    AgentEventTurnEnd,
    AgentEventTurnStart,
    RunStopReason,
    StreamEnd,
    StreamEvent,
    StreamRetry,
    apply_update,
    message_of,
)
from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    Message,
    ToolCall,
    UserMessage,
)
from op_jupyter.providers import Request, ToolSpec
from op_jupyter.tool_execution import _answer, _execute_tool_call
from op_jupyter.tools.results import error_text

MAX_INNER_ITERATIONS = 50

log = logging.getLogger(__name__)


def _run_loop(context: AgentContext, control: RunControl, emit: Emit) -> None:
    """Let the model answer, and pick functions, until it answers only, or the run is ended some other way.

    What is said is appended to `context.messages`, and told through `emit`; the last event is `AgentEventAgentEnd`.
    """
    stop_reason: RunStopReason = "error"
    error: str | None = None
    error_kind: ErrorKind | None = None
    try:
        stop_reason, error, error_kind = _rounds(context, control, emit)
    except BaseException as failure:
        if not control.aborted:
            error = error_text(failure)
            raise
        stop_reason = "aborted"
    finally:
        control.join()
        end = AgentEventAgentEnd(**context.where, stop_reason=stop_reason, error=error, error_kind=error_kind)
        with contextlib.ExitStack() as events:  # all of them happen, whatever a listener raises at one
            events.callback(emit, end)
            for message in reversed([*context.pending, *control.close()]):
                events.callback(_announce, context, emit, message, "undelivered")


def _rounds(
    context: AgentContext, control: RunControl, emit: Emit
) -> tuple[RunStopReason, str | None, ErrorKind | None]:
    """How the run ended, why, and the kind of error."""
    asked_for = MAX_INNER_ITERATIONS if context.max_iterations is None else context.max_iterations
    cap = max(1, min(MAX_INNER_ITERATIONS, asked_for))
    inner_iterations = 0
    context.pending += _get_steering_messages(context, control)
    while True:
        has_more_tool_calls = True
        message = AssistantMessage([])
        while has_more_tool_calls or context.pending:
            if control.aborted:
                return "aborted", None, None
            if inner_iterations >= cap:
                return "max_iterations", None, None
            inner_iterations += 1
            emit(AgentEventTurnStart(**context.where, round=inner_iterations))
            _say(context, emit)

            message = _stream_assistant_response(context, control, emit)
            # Without a call of ours, it waits for tools that the provider runs: the message goes back as it is.
            has_more_tool_calls = len(message.tool_calls) > 0 or message.stop_reason == "tool_use"
            _execute_tool_calls(context, message, control, emit)
            emit(AgentEventTurnEnd(**context.where, round=inner_iterations))
            if message.stop_reason in ("error", "aborted"):
                return message.stop_reason, message.error_message, context.error_kind

        context.pending += _get_follow_up_messages(context, control) or _repair(context, control, emit, message)
        while not context.pending:
            if control.close_if_idle():
                return ("aborted" if control.aborted else message.stop_reason), None, None
            context.pending += control.get_steering_messages() or control.get_follow_up_messages()


def _repair(context: AgentContext, control: RunControl, emit: Emit, message: AssistantMessage) -> list[UserMessage]:
    """What is wrong with a last reply that had to be of some form; said once."""
    objection = context.objection
    if objection is None:
        return []
    # Validators that somebody wrote may take long, or ask a model themselves.
    with under(CurrentRun(context, control, emit, None)):
        reason = control.interruptible(lambda: objection(message.text))
    if reason is None:
        return []
    context.objection = None
    return [UserMessage(reason)]


def _get_steering_messages(context: AgentContext, control: RunControl) -> list[UserMessage]:
    # Asked first: should it fail, what is queued must not be lost.
    given = control.interruptible(context.get_steering_messages)
    return [*control.get_steering_messages(), *given]


def _get_follow_up_messages(context: AgentContext, control: RunControl) -> list[UserMessage]:
    given = control.interruptible(context.get_follow_up_messages)
    return [*control.get_follow_up_messages(), *given]


def _say(context: AgentContext, emit: Emit) -> None:
    while context.pending:
        message = context.pending[0]
        emit(AgentEventMessageStart(**context.where, message=message))
        # From here on it is said, whatever a listener raises.
        context.messages.append(context.pending.pop(0))
        try:
            emit(AgentEventMessageEnd(**context.where, message=message))
        finally:
            _announce(context, emit, message, "delivered")


def _announce(
    context: AgentContext, emit: Emit, message: UserMessage, state: Literal["delivered", "undelivered"]
) -> None:
    if message.source != "user":
        emit(AgentEventSteering(**context.where, message=message, state=state))


# -------------------------------------------------------------------- the reply


def _stream_assistant_response(context: AgentContext, control: RunControl, emit: Emit) -> AssistantMessage:
    """One reply of the model. A failure ends the message, and `context` has its kind."""
    provider, name = context.model.provider, context.model.name
    emit(AgentEventMessageStart(**context.where, message=AssistantMessage([], provider=provider, model=name)))
    content: list[Block] = []
    end: StreamEnd | None = None
    with contextlib.closing(_events(context, control)) as events:
        for event in events:
            match event:
                case StreamEnd():
                    end = event
                    break
                case StreamRetry():
                    emit(
                        AgentEventRetry(**context.where, attempt=event.attempt, delay=event.delay, reason=event.reason)
                    )
                case _:
                    apply_update(content, event)
                    emit(AgentEventMessageUpdate(**context.where, update=event))
    if end is None:
        lost = "The reply broke off: the stream ended without its closing event. Run again."
        end = StreamEnd("error", error_message=lost, error_kind="connection")
    message = message_of(_with_unique_ids(content, context.messages), end, provider, name)
    emit(AgentEventMessageEnd(**context.where, message=message))
    context.messages.append(message)
    if context.reset_tool_choice and _is_pick(context, message):
        context.tool_choice = "auto"
    context.error_kind = end.error_kind
    return message


def _events(context: AgentContext, control: RunControl) -> Generator[StreamEvent, None, None]:
    """What the model sends. Whatever goes wrong there is the closing event."""
    try:
        request = Request(
            model=context.model.name,
            system=context.system,
            messages=replayable(context.messages),
            tools=[ToolSpec(tool.name, tool.description, tool.parameters) for tool in context.tools.values()],
            tool_choice=context.tool_choice,
            parallel_tool_calls=context.parallel_tool_calls,
            options=context.options,
            connection=context.connection,
        )
        yield from control.receive(lambda: context.model.stream(request), request.on_abandon)
    except GeneratorExit:  # of the reader of this
        raise
    except Aborted:
        yield StreamEnd("aborted")
    except RunError as error:
        yield StreamEnd("error", error_message=str(error), error_kind=error.kind)
    except BaseException as error:  # of its thread: one that would end that must not end this one
        log.debug("The provider %s failed", context.model, exc_info=True)
        yield StreamEnd("error", error_message=error_text(error), error_kind="provider")


def _is_pick(context: AgentContext, message: AssistantMessage) -> bool:
    """Whether `message` makes the pick that the choice of the run forces."""
    picked = {call.name for call in message.tool_calls} & context.tools.keys()
    if isinstance(context.tool_choice, str):
        return context.tool_choice == "required" and bool(picked)
    return context.tool_choice["name"] in picked


def _with_unique_ids(content: list[Block], earlier: list[Message]) -> list[Block]:
    """`content` with an id of its own for each call: some providers send none, or the same one twice."""
    taken = {call.id for message in earlier if isinstance(message, AssistantMessage) for call in message.tool_calls}
    blocks: list[Block] = []
    for block in content:
        if isinstance(block, ToolCall):
            if not block.id or block.id in taken:
                block = replace(block, id=next(id for n in count(len(taken) + 1) if (id := f"call_{n}") not in taken))
            taken.add(block.id)
        blocks.append(block)
    return blocks


# -------------------------------------------------------------------- the calls


def _execute_tool_calls(context: AgentContext, message: AssistantMessage, control: RunControl, emit: Emit) -> None:
    """Answer every call of `message`, in order; what the person has sent meanwhile is then pending."""
    for position, call in enumerate(message.tool_calls):
        reason = _reason_not_to_run(context, message, position)
        if control.aborted or message.stop_reason == "aborted":
            _answer(context, emit, call, STOPPED, "not_run")
        elif context.pending:
            _skip_tool_call(context, emit, call)
        elif reason:
            _answer(context, emit, call, reason, "not_run")
        else:
            _execute_tool_call(context, call, control, emit)
            if not control.aborted:
                context.pending += _get_steering_messages(context, control)
    if not context.pending and not control.aborted and message.stop_reason not in ("error", "aborted"):
        context.pending += _get_steering_messages(context, control)


def _reason_not_to_run(context: AgentContext, message: AssistantMessage, position: int) -> str | None:
    if message.stop_reason == "error":
        return "Not run: the model's reply ended in an error."
    if message.stop_reason == "length":
        return "Not run: the reply reached its length limit, and the arguments may be cut. Call again, more briefly."
    if context.tool_choice == "none":
        return "Not run: functions may not be called in this run. Answer in text."
    if context.parallel_tool_calls is False and position > 0:
        return "Not run: only one call at a time is allowed. Call again if it is still needed."
    return None


def _skip_tool_call(context: AgentContext, emit: Emit, call: ToolCall) -> None:
    _answer(context, emit, call, "Skipped due to queued user message", "skipped")
