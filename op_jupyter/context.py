"""What one run of the loop works on, and what the code that runs under it can find out about that.

Values, context variables and a set; what is done with them is in `agent_loop`, `tool_execution` and `runtime`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from op_jupyter.control import RunControl
from op_jupyter.errors import ErrorKind
from op_jupyter.events import AgentEvent
from op_jupyter.messages import Message, ToolCall, UserMessage
from op_jupyter.providers import Connection, Model, ToolChoice
from op_jupyter.tools.gates import Policy, is_tool_search
from op_jupyter.tools.registry import AgentTool

Emit = Callable[[AgentEvent], None]
GetMessages = Callable[[], list[UserMessage]]
OnApproval = Callable[[ToolCall, AgentTool], bool | Literal["always"]]
Capture = Callable[[Callable[[dict[str, Any]], None]], contextlib.AbstractContextManager[None]]


class Where(TypedDict):
    """The run that an event belongs to."""

    run_id: str
    parent_call_id: str | None


@dataclass(slots=True, kw_only=True)
class AgentContext:
    """All that one run of the loop works on. Messages, tools, choice, objection and error change as it goes.

    `pending` is what the next request says, beginning with the prompt. `tools` are offered; `deferred` are offered by
    name only, until they are loaded. `objection` says what is wrong with a last reply, in words for the model; it is
    heard once. `error_kind` is that of the last reply. `runtime` is what a function gets that asks for one.
    `always_allowed` are the functions that a person lets run in this run without being asked again. `values` takes what
    each function returned, by call id. `capture` catches what a function writes while it runs, and hands it on as
    notebook outputs.
    """

    run_id: str
    model: Model
    messages: list[Message]
    pending: list[UserMessage]
    tools: dict[str, AgentTool]
    deferred: dict[str, AgentTool]
    policy: Policy
    runtime: Any
    system: str | None
    connection: Connection
    options: dict[str, Any]
    tool_choice: ToolChoice
    reset_tool_choice: bool
    parallel_tool_calls: bool | None
    max_iterations: int | None
    objection: Callable[[str], str | None] | None
    get_steering_messages: GetMessages
    get_follow_up_messages: GetMessages
    on_approval: OnApproval
    parent_call_id: str | None
    depth: int
    always_allowed: set[AgentTool]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    error_kind: ErrorKind | None = None
    capture: Capture

    @property
    def where(self) -> Where:
        """What every event of the run begins with."""
        return {"run_id": self.run_id, "parent_call_id": self.parent_call_id}


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """The run under way, and the call of it if any, that code runs under: what a nested `exec` is a child of."""

    context: AgentContext
    control: RunControl
    emit: Emit
    call_id: str | None


_current_run: ContextVar[CurrentRun | None] = ContextVar("op_jupyter_current_run", default=None)
_current_context: ContextVar[AgentContext | None] = ContextVar("op_jupyter_current_context", default=None)
_current_tools: ContextVar[list[AgentTool] | None] = ContextVar("op_jupyter_current_tools", default=None)


@contextlib.contextmanager
def bounded_by(context: AgentContext) -> Iterator[None]:
    """Whatever `exec` is called meanwhile inherits from `context`, and gets no more than its policy allows.

    Also where the run is over, as when a function runs that was its pick.
    """
    offered = [*context.tools.values(), *context.deferred.values()]
    context_token = _current_context.set(context)
    tools_token = _current_tools.set([tool for tool in offered if not is_tool_search(tool)])
    try:
        yield
    finally:
        _current_tools.reset(tools_token)
        _current_context.reset(context_token)


@contextlib.contextmanager
def under(current: CurrentRun) -> Iterator[None]:
    """Whatever `exec` is called meanwhile is a child of the run that is under way."""
    token = _current_run.set(current)
    try:
        with bounded_by(current.context):
            yield
    finally:
        _current_run.reset(token)


runs_under_way: set[str] = set()
"""The ids of the root runs that go on in this process."""


@dataclass(slots=True)
class Host:
    """What the program around brings: `ask` asks its person where `exec` is not told how."""

    ask: OnApproval = lambda call, tool: False


host = Host()
