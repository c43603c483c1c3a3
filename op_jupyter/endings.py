"""How what a run has left open is ended: the events that the record still needs, and the words of such results.

Everything else that happens in a run is told by the loop itself; nothing is run or left here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from op_jupyter.events import (
    AgentEvent,
    AgentEventAgentEnd,
    AgentEventMessageEnd,
    AgentEventToolEnd,
    RunStopReason,
    ToolOutcome,
)
from op_jupyter.messages import Block, StopReason, TextContent, ToolCall, ToolResultMessage
from op_jupyter.record import AssistantStep, CallStep, Run, find_run

STOPPED = "Not run: the run was stopped before this call."
INTERRUPTED = "Interrupted: the run was stopped while this function ran. It may have had side effects."
NOT_REACHED = "Not run: the run ended before this call."


def endings(root: Run, end: AgentEventAgentEnd) -> list[AgentEvent]:
    """What has to happen before `end`, so that every reply is complete and every call answered.

    A failing callback breaks a run off anywhere. With the root, those nested runs end whose functions were left.
    """
    run = find_run(root, end.run_id)
    if run is None:
        return []
    nested = [event for call_id in root.children for event in _of_nested(root, call_id)] if run is root else []
    return [*nested, *_of_open(run, end.parent_call_id, end.stop_reason)]


def _of_nested(parent: Run, call_id: str) -> Iterator[AgentEvent]:
    for run in parent.children[call_id]:
        for inner_id in run.children:
            yield from _of_nested(run, inner_id)
        if run.ended is None:
            yield from _of_open(run, call_id or None, "aborted")
            yield AgentEventAgentEnd(run_id=run.run_id, parent_call_id=call_id or None, stop_reason="aborted")


def _of_open(run: Run, parent_call_id: str | None, stop_reason: RunStopReason) -> Iterator[AgentEvent]:
    """The ends of the reply and of the calls of `run` that have none."""
    reply = next((step for step in reversed(run.steps) if isinstance(step, AssistantStep)), None)
    if reply is None:
        return
    message = reply.message
    if reply.ended is None:
        # Its calls may be incomplete, and none of them has begun.
        said: list[Block] = [block for block in message.content if not isinstance(block, ToolCall)]
        reason: StopReason = "aborted" if stop_reason == "aborted" else "error"
        message = replace(message, content=said, stop_reason=reason)
        yield AgentEventMessageEnd(run_id=run.run_id, parent_call_id=parent_call_id, message=message)
    steps = {step.call.id: step for step in run.steps if isinstance(step, CallStep)}
    for call in message.tool_calls:
        step = steps.get(call.id)
        if step and step.result:
            continue
        text, outcome = _answer(step, stop_reason)
        result = ToolResultMessage(call.id, call.name, [TextContent(text)], is_error=True)
        yield AgentEventToolEnd(
            run_id=run.run_id, parent_call_id=parent_call_id, call=call, message=result, outcome=outcome
        )


def _answer(step: CallStep | None, stop_reason: RunStopReason) -> tuple[str, ToolOutcome]:
    if stop_reason != "aborted":
        return NOT_REACHED, "not_run"
    return (INTERRUPTED, "interrupted") if step and step.state == "running" else (STOPPED, "not_run")
