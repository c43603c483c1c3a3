"""One call of a function: a person is asked where that is needed, it is run, and it is answered, whatever happens.

Which calls of a message are run is decided in `agent_loop`; how arguments and results look is in `tools`.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, Literal

from op_jupyter.context import AgentContext, CurrentRun, Emit, under
from op_jupyter.control import RunControl
from op_jupyter.endings import INTERRUPTED, STOPPED
from op_jupyter.events import (
    AgentEventApproval,
    AgentEventToolEnd,
    AgentEventToolStart,
    AgentEventToolUpdate,
    Approval,
    ToolOutcome,
)
from op_jupyter.messages import InputBlock, TextContent, ToolCall, ToolResultMessage
from op_jupyter.tools.call import call_tool
from op_jupyter.tools.gates import TOOL_SEARCH
from op_jupyter.tools.registry import AgentTool
from op_jupyter.tools.results import error_text, error_traceback, to_content
from op_jupyter.tools.validation import validate_tool_arguments

MOST_OF_AN_ITEM = 2000
"""Characters shown of what a generator yields while it runs; its result has all of it."""

NOT_APPROVED = "Not run: this call was not approved."

_Outcome = tuple[str | list[InputBlock], ToolOutcome, dict[str, Any] | None]
"""What the model reads, how that came about, and details for the record."""


def _execute_tool_call(context: AgentContext, call: ToolCall, control: RunControl, emit: Emit) -> None:
    """Run the function that `call` names. Whatever happens becomes its result, which the model can read."""
    emit(AgentEventToolStart(**context.where, call=call))
    with under(CurrentRun(context, control, emit, call.id)):
        _answer(context, emit, call, *_outcome(context, call, control, emit))


def _outcome(context: AgentContext, call: ToolCall, control: RunControl, emit: Emit) -> _Outcome:
    try:
        # Interruptible, since validators that somebody wrote may take long.
        tool, arguments = control.interruptible(lambda: _prepare(context, call))
    except BaseException as error:
        if control.aborted:
            return STOPPED, "not_run", None
        # What is no ValueError is what a validator exits with: that ends a run as little as in a function.
        text = str(error) if isinstance(error, ValueError) else error_text(error)
        return _content(context, text), "error", None
    # Looked at behind the event of the start: a run that was left before it has been answered for.
    if control.aborted:
        return STOPPED, "not_run", None
    if tool.requires_approval and not _is_approved(context, call, tool, control, emit):
        return STOPPED if control.aborted else NOT_APPROVED, "not_run", None
    return _run_tool(context, call, tool, arguments, control, emit)


def _answer(
    context: AgentContext,
    emit: Emit,
    call: ToolCall,
    content: str | list[InputBlock],
    outcome: ToolOutcome,
    details: dict[str, Any] | None = None,
) -> None:
    blocks: list[InputBlock] = [TextContent(content)] if isinstance(content, str) else content
    result = ToolResultMessage(call.id, call.name, blocks, is_error=outcome != "ok", details=details)
    # First of all: a listener may raise what ends the run, and the call would be answered once more.
    context.messages.append(result)
    emit(AgentEventToolEnd(**context.where, call=call, message=result, outcome=outcome))


def _content(context: AgentContext, value: Any, max_result_chars: int | None = None) -> list[InputBlock]:
    return to_content(value, max_result_chars=max_result_chars, context_tokens=context.model.context_tokens)


def _prepare(context: AgentContext, call: ToolCall) -> tuple[AgentTool, dict[str, Any]]:
    """The function that `call` names, and the arguments to call it with.

    Raises:
        ValueError: in words that let the model correct itself.
    """
    tool = context.tools.get(call.name)
    if call.name in context.deferred:
        raise ValueError(f"{call.name} is not loaded yet: call {TOOL_SEARCH} with its name, and then call it again.")
    if tool is None:
        there_are = f"There are: {', '.join(context.tools)}." if context.tools else "There are none."
        raise ValueError(f"There is no function {call.name!r}. {there_are}")
    takes_none = not tool.parameters.get("properties") and tool.parameters.get("additionalProperties") is False
    if call.raw_arguments is not None and not takes_none:
        raise ValueError(f"The arguments are not a JSON object: {call.raw_arguments}")
    return tool, validate_tool_arguments(tool, call.arguments)


def _is_approved(context: AgentContext, call: ToolCall, tool: AgentTool, control: RunControl, emit: Emit) -> bool:
    """Whether a person lets `call` run. A run that is stopped meanwhile does not wait for the answer."""

    def tell(state: Literal["asked"] | Approval) -> None:
        emit(AgentEventApproval(**context.where, call=call, state=state))

    if tool in context.always_allowed:
        tell("earlier")
        return not control.aborted
    try:
        tell("asked")
        allowed: object = control.interruptible(lambda: context.on_approval(call, tool))
    except BaseException:
        if control.aborted:
            return False
        raise
    match allowed:
        case bool():
            tell("approved" if allowed else "denied")
        case str("always"):
            context.always_allowed.add(tool)
            tell("always")
        case _:
            # A coroutine that nobody awaits would be a yes.
            raise TypeError(f"on_approval returns True, False or 'always', not {allowed!r}")
    return bool(allowed) and not control.aborted


def _run_tool(
    context: AgentContext,
    call: ToolCall,
    tool: AgentTool,
    arguments: dict[str, Any],
    control: RunControl,
    emit: Emit,
) -> _Outcome:
    """The result of the function, for the model, and how it came about."""

    def emit_output(output: dict[str, Any]) -> None:
        # An interrupt may land in what a function prints, and must not tear the record.
        control.shielded(lambda: emit(AgentEventToolUpdate(**context.where, call_id=call.id, output=output)))

    def emit_item(item: Any) -> None:
        shown = to_content(item, max_result_chars=MOST_OF_AN_ITEM)
        text = "\n".join(block.text for block in shown if isinstance(block, TextContent))
        emit_output({"output_type": "stream", "name": "stdout", "text": f"{text}\n"})

    def result() -> list[InputBlock]:
        return _content(context, value, tool.max_result_chars)

    in_thread = None if inspect.iscoroutinefunction(tool.execute) else tool.timeout
    body = partial(call_tool, tool, arguments, emit_item)
    content: list[InputBlock]
    outcome: ToolOutcome = "error"
    details: dict[str, Any] | None = None
    try:
        with context.capture(emit_output):
            value = control.interruptible(body) if in_thread is None else control.run_in_thread(body, in_thread)
            if inspect.isawaitable(value):
                value = control.run_coroutine(value, tool.timeout)
        context.values[call.id] = value
        content, outcome = control.interruptible(result), "ok"
    except BaseException as error:
        content = _content(context, error_text(error), tool.max_result_chars)
        details = {"traceback": error_traceback(error)}
    if control.aborted:
        content, outcome = [TextContent(INTERRUPTED)], "interrupted"
    return content, outcome, details
