"""From the arguments of `exec` to what the loop works on: the model, the menu, the messages.

What a nested run inherits is decided here; running is the business of `runtime` and `agent_loop`.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from op_jupyter.context import (
    AgentContext,
    CurrentRun,
    OnApproval,
    _current_context,
    _current_run,
    _current_tools,
    host,
    runs_under_way,
)
from op_jupyter.decision import Expected
from op_jupyter.emit import OnEvent
from op_jupyter.errors import RunError
from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    InputBlock,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Connection, Model, ToolChoice, default_model, resolve
from op_jupyter.redact import redact, whole_characters
from op_jupyter.tools.gates import TOOL_SEARCH, Policy, exposed, is_runnable, policy, preset, tool_search_over
from op_jupyter.tools.images import as_image
from op_jupyter.tools.registry import AgentTool, menu

if TYPE_CHECKING:
    from op_jupyter.runtime import Runtime

Content = str | Sequence[Any]
"""A text, or a list of texts and images, each an `ImageContent` or anything else that `as_image` takes."""

GetQueued = Callable[[], Sequence[str | UserMessage]]

MAX_DEPTH = 8


class ExecArguments(TypedDict, total=False):
    """The arguments of `exec` that `aexec` takes too; `exec` documents them."""

    system: str | None
    model: str | Model | None
    options: dict[str, Any] | None
    tools: Sequence[Any] | None
    toolset: str | None
    tools_source: str | None
    tools_allow: Iterable[str] | None
    tools_deny: Iterable[str] | None
    tool_choice: ToolChoice
    reset_tool_choice: bool
    parallel_tool_calls: bool | None
    max_iterations: int | None
    history: Sequence[Message] | None
    get_steering_messages: GetQueued | None
    get_follow_up_messages: GetQueued | None
    on_event: OnEvent | None
    on_approval: OnApproval | None


def context_for(
    runtime: Runtime, content: Content, arguments: ExecArguments, expected: Expected | None = None
) -> AgentContext:
    """All that the loop needs, resolved in the thread of the caller; `expected` is what the last reply has to be."""
    parent, outer = _current_run.get(), _current_context.get()
    depth = outer.depth + 1 if outer else 0
    if depth > MAX_DEPTH:
        raise RunError(f"Runs are nested more than {MAX_DEPTH} deep: a function calls itself again.", kind="setup")
    prompt = UserMessage(_blocks(content))
    tool_choice = arguments.get("tool_choice", "auto")
    named = tool_choice.get("name") if isinstance(tool_choice, dict) else None
    offered = _menu(runtime, arguments, outer, named, expected)
    tools = offered.tools
    if tool_choice not in ("auto", "required", "none") and not (isinstance(named, str) and named in tools):
        there_are = f"The functions are {', '.join(tools)}." if tools else "There are no functions."
        if isinstance(named, str):
            raise ValueError(f"tool_choice names {named!r}, which is not on the menu. {there_are}")
        raise ValueError(
            f"tool_choice is 'auto', 'required', 'none', or {{'type': 'function', 'name': …}} with the name of a "
            f"function, and not {tool_choice!r}. {there_are}"
        )
    given = arguments.get("history") or []
    if not isinstance(given, list | tuple):
        raise TypeError(f"history takes a list of messages, such as run.messages, not {type(given).__name__}")
    history = list(given)
    for message in history:
        if not isinstance(message, UserMessage | AssistantMessage | ToolResultMessage):
            raise TypeError(f"history takes messages of op_jupyter, not {type(message).__name__}")
    most = arguments.get("max_iterations")
    if most is not None and not isinstance(most, int):
        raise TypeError(f"max_iterations takes a whole number, not {most!r}")
    options = arguments.get("options") or {}
    if not isinstance(options, dict):
        raise TypeError(f"options takes a dict of settings of the provider, not {options!r}")
    model, connection = _model(runtime, arguments.get("model"), outer)
    return AgentContext(
        run_id=uuid.uuid4().hex,
        parent_call_id=parent.call_id if parent else None,
        depth=depth,
        runtime=runtime,
        model=model,
        connection=connection,
        system=_system(arguments.get("system") or runtime.system, expected),
        messages=history,
        pending=[prompt],
        tools=tools,
        deferred=offered.deferred,
        policy=offered.policy,
        options={**runtime.options, **options},
        tool_choice=tool_choice,
        reset_tool_choice=arguments.get("reset_tool_choice", True),
        parallel_tool_calls=arguments.get("parallel_tool_calls"),
        max_iterations=most,
        objection=expected.objection if expected else None,
        get_steering_messages=_queue("steering", arguments.get("get_steering_messages")),
        get_follow_up_messages=_queue("follow_up", arguments.get("get_follow_up_messages")),
        on_approval=arguments.get("on_approval") or (outer.on_approval if outer else host.ask),
        always_allowed=_always_allowed(parent, arguments),
        capture=outer.capture if outer else runtime.capture,
    )


def _always_allowed(parent: CurrentRun | None, arguments: ExecArguments) -> set[AgentTool]:
    """What has been allowed in the run around, unless somebody else is asked in this one."""
    if parent is None or arguments.get("on_approval"):
        return set()
    return set(parent.context.always_allowed)


@dataclass(frozen=True, slots=True)
class _Menu:
    tools: dict[str, AgentTool]
    deferred: dict[str, AgentTool]
    policy: Policy


def _menu(
    runtime: Runtime,
    arguments: ExecArguments,
    outer: AgentContext | None,
    forced: str | None,
    expected: Expected | None,
) -> _Menu:
    """What the run is offered, in full and by name only; a nested run gets nothing that the outer policy took away.

    The tool that the model is `forced` to pick is offered in full.
    """
    candidates, deferrable = _candidates(runtime, arguments, outer)
    limits = policy(
        arguments.get("tools_allow"),
        arguments.get("tools_deny"),
        arguments.get("tools_source"),
        candidates,
        outer.policy if outer else Policy(),
    )
    for tool in expected.tools if expected else ():
        if not (limits.lets(tool) and is_runnable(tool)):
            raise ValueError(f"choices: {tool.name} may not be called in this run, or not here")
    tools = {tool.name: tool for tool in candidates if limits.lets(tool) and is_runnable(tool)}
    deferred = {name: tools.pop(name) for name in list(tools) if name in deferrable and name != forced}
    if deferred:
        if TOOL_SEARCH in (*tools, *deferred):
            raise ValueError(f"A function is named {TOOL_SEARCH}, which is what loads deferred ones: rename it")
        tools[TOOL_SEARCH] = tool_search_over(deferred, tools)
    return _Menu(tools, deferred, limits)


def _candidates(
    runtime: Runtime, arguments: ExecArguments, outer: AgentContext | None
) -> tuple[list[AgentTool], set[str]]:
    """The tools that the menu names, inherits or gets by default, and the names of those that are to be loaded."""
    named, toolset = arguments.get("tools"), arguments.get("toolset")
    if named is not None and toolset is not None:
        raise ValueError("tools and toolset both say what is on the menu: pass one of them")
    inherits = outer is not None and runtime is outer.runtime
    if named is None and toolset is None and not inherits:
        named = runtime.tools
    if named is not None:
        return menu(named), set()
    inherited = _current_tools.get()
    if toolset is not None:
        tools = preset(toolset)
    elif inherited is not None:
        return inherited, set(outer.deferred) if outer else set()
    elif runs_under_way and threading.current_thread() is not threading.main_thread():
        # A thread started without the context of its run must not get more than the run was allowed.
        tools = []
    else:
        tools = exposed()
    return tools, {tool.name for tool in tools if tool.defer}


def _model(runtime: Runtime, named: str | Model | None, outer: AgentContext | None) -> tuple[Model, Connection]:
    if outer is None:
        return _resolved(named or runtime.model or default_model()), runtime.connection
    if named is None and (runtime is outer.runtime or runtime.model is None):
        return outer.model, outer.connection
    model = _resolved(named or runtime.model or default_model())
    return (outer.model.within(model) if outer.model.within else model), runtime.connection


def _system(system: str | None, expected: Expected | None) -> str | None:
    parts = [part for part in (system, expected.instructions if expected else None) if part]
    return "\n\n".join(parts) or None


def _resolved(model: object) -> Model:
    if isinstance(model, Model):
        return model
    if not isinstance(model, str):
        raise TypeError(f"model takes a text, provider:model, or a Model, not {model!r}")
    return resolve(model)


def _blocks(content: Content) -> list[InputBlock]:
    if not isinstance(content, str | list | tuple):
        raise TypeError(f"content is a text, or a list of texts and images, and not of type {type(content).__name__}")
    blocks: list[InputBlock] = []
    for item in [content] if isinstance(content, str) else content:
        if isinstance(item, str):
            blocks.append(TextContent(whole_characters(redact(item))))
        elif isinstance(item, TextContent):
            blocks.append(item)
        elif image := as_image(item):
            blocks.append(image)
        else:
            raise TypeError(f"content takes texts and images, not {type(item).__name__}")
    if not _says_something(blocks):
        raise ValueError("There is nothing to ask: the content is empty.")
    return blocks


def _says_something(blocks: list[InputBlock]) -> bool:
    return any(isinstance(block, ImageContent) or block.text.strip() for block in blocks)


def _queue(source: Literal["steering", "follow_up"], get_messages: GetQueued | None) -> Callable[[], list[UserMessage]]:
    """`get_messages`, whose texts become messages of this `source`; one that says nothing is none."""
    if get_messages is None:
        return list

    def get() -> list[UserMessage]:
        items = get_messages()
        if not isinstance(items, list | tuple):
            raise TypeError(f"get_{source}_messages returns a list, not {type(items).__name__}")
        messages = [_queued(item, source) for item in items]
        return [message for message in messages if _says_something(message.content)]

    return get


def _queued(item: object, source: Literal["steering", "follow_up"]) -> UserMessage:
    match item:
        case str():
            return UserMessage(item, source)
        case UserMessage():
            return replace(item, source=source)
        case _:
            raise TypeError(f"get_{source}_messages returns texts or messages of op_jupyter, not {type(item).__name__}")
