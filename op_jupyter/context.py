"""What one run of the loop works on, and what the code that runs under it can find out about that.

Values, two context variables and a set; what is done with them is in `agent_loop` and `runtime`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypedDict

from op_jupyter.control import RunControl
from op_jupyter.errors import ErrorKind
from op_jupyter.events import AgentEvent
from op_jupyter.messages import Message, ToolCall, UserMessage
from op_jupyter.providers import Connection, Model, ToolChoice
from op_jupyter.tools.gates import Policy
from op_jupyter.tools.registry import AgentTool

Emit = Callable[[AgentEvent], None]
GetMessages = Callable[[], list[UserMessage]]
OnApproval = Callable[[ToolCall, AgentTool], bool]
Capture = Callable[[Callable[[dict[str, Any]], None]], contextlib.AbstractContextManager[None]]


class Where(TypedDict):
    """The run that an event belongs to."""

    run_id: str
    parent_call_id: str | None


@dataclass(slots=True, kw_only=True)
class AgentContext:
    """All that one run of the loop works on. Its messages, tools, choice, objection and error change as it goes.

    `prompts` open the first round. `tools` are offered; `deferred` are offered by name only, until they are loaded.
    `objection` says what is wrong with a last reply, in words for the model; it is heard once. `error_kind` is that of
    the last reply. `runtime` is what a function gets that asks for one. `values` takes what each function returned, by
    call id. `capture` catches what a function writes while it runs, and hands it on as notebook outputs.
    """

    run_id: str
    model: Model
    messages: list[Message]
    prompts: list[UserMessage]
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
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    error_kind: ErrorKind | None = None
    capture: Capture

    @property
    def where(self) -> Where:
        """What every event of the run begins with."""
        return {"run_id": self.run_id, "parent_call_id": self.parent_call_id}


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """The run, and the call of it, that the code of a function runs under: what a nested `exec` is a child of."""

    context: AgentContext
    control: RunControl
    emit: Emit
    call_id: str


_current_run: ContextVar[CurrentRun | None] = ContextVar("op_jupyter_current_run", default=None)
_current_tools: ContextVar[list[AgentTool] | None] = ContextVar("op_jupyter_current_tools", default=None)

runs_under_way: set[str] = set()
"""The ids of the root runs that go on in this process."""


@dataclass(slots=True)
class Host:
    """What the program around brings: `ask` asks its person where `exec` is not told how."""

    ask: OnApproval = lambda call, tool: False


host = Host()
