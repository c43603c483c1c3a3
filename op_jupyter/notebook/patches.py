"""What an event changes in the record, as operations that a view applies to its copy.

Pure functions from a folded event to JSON; sending is done in `channel`. A change costs what it is large, not the run.
"""

from __future__ import annotations

from typing import Any, assert_never

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
    BlockDelta,
)
from op_jupyter.messages import AssistantMessage
from op_jupyter.notebook.as_json import as_json, run_as_json, step_as_json
from op_jupyter.record import AssistantStep, CallStep, Run, find_run

Op = dict[str, Any]


def ops_of(root: Run, event: AgentEvent) -> list[Op]:
    """The operations that bring a copy of `root`, as it was before `event`, to where it is now."""
    run = find_run(root, event.run_id)
    if run is None:
        return []
    match event:
        case AgentEventAgentStart():
            parent = event.parent_run_id
            return [_op("run", run, parent_id=parent, call_id=event.parent_call_id, run=run_as_json(run))]
        case AgentEventAgentEnd():
            return [_set(run, "stop_reason", "error", "error_kind", "ended")]
        case AgentEventTurnStart():
            return [_set(run, "rounds")]
        case AgentEventTurnEnd():
            return []
        case AgentEventMessageUpdate(update=BlockDelta(index=block, text=text)):
            return [_op("append", run, index=_reply(run), block=block, text=text)]
        case AgentEventMessageStart():
            return [_step(run, _reply(run))] if isinstance(event.message, AssistantMessage) else []
        case AgentEventMessageUpdate():
            return [_step(run, _reply(run))]
        case AgentEventMessageEnd():
            return [_step(run, _reply(run) if isinstance(event.message, AssistantMessage) else len(run.steps) - 1)]
        case AgentEventToolStart() | AgentEventToolEnd() | AgentEventApproval():
            return [_step(run, _call(run, event.call.id))]
        case AgentEventToolUpdate():
            return [_op("output", run, index=_call(run, event.call_id), output=event.output)]
        case AgentEventRetry():
            return [_step(run, len(run.steps) - 1)]
        case AgentEventSteering():
            return [_set(run, "queued", "undelivered")]
        case _:
            assert_never(event)


def add(ops: list[Op], op: Op) -> None:
    """Put `op` after `ops`, into the last of them where both append to the same text."""
    if ops and op["op"] == "append" == ops[-1]["op"]:
        last = ops[-1]
        if all(last[key] == op[key] for key in ("run_id", "index", "block")):
            last["text"] += op["text"]
            return
    ops.append(op)


def _op(kind: str, target: Run, **values: Any) -> Op:
    return {"op": kind, "run_id": target.run_id, **values}


def _set(run: Run, *names: str) -> Op:
    return _op("set", run, fields={name: as_json(getattr(run, name)) for name in names})


def _step(run: Run, index: int) -> Op:
    return _op("step", run, index=index, step=step_as_json(run, run.steps[index]))


def _reply(run: Run) -> int:
    return next(i for i in reversed(range(len(run.steps))) if isinstance(run.steps[i], AssistantStep))


def _call(run: Run, call_id: str) -> int:
    for index in reversed(range(len(run.steps))):
        step = run.steps[index]
        if isinstance(step, CallStep) and step.call.id == call_id:
            return index
    raise ValueError(f"Call {call_id!r} is not in the record")
