"""The tools there are: what a tool is, the one registry that the decorators fill, and what may stand in `tools=[...]`.

Which tools a run sees is decided here; how a tool is described is in `schema`, how it is run in `call`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from op_jupyter.tools.call import by_name
from op_jupyter.tools.coerce import is_object
from op_jupyter.tools.hints import name_of
from op_jupyter.tools.schema import describe, given_schema
from op_jupyter.tools.validation import check_schema, check_types

Validator = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentTool:
    """A function that a model may pick.

    `parameters` is the JSON Schema (type `object`) that the model sees; `validate` turns arguments that are JSON
    into the keyword arguments of `execute`, or raises `ValueError` with a message that the model can act on.
    A result longer than `max_result_chars` is cut. With a `timeout`, in seconds, a tool that is not async runs in a
    worker thread. With `requires_approval` it runs only when a person lets it. The other fields are the gates (see
    `gates`): `available`, `expose`, `toolset`, `unsafe_in`, `requires_env`, `check_fn` and `defer`.

    Raises:
        ValueError: when providers would refuse the name, or nothing would be left of a result.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    execute: Callable[..., Any]
    validate: Validator = field(repr=False)
    available: bool = True
    expose: bool = True
    toolset: frozenset[str] = frozenset()
    unsafe_in: frozenset[str] = frozenset()
    requires_env: frozenset[str] = frozenset()
    check_fn: Callable[[], bool] | None = None
    defer: bool = False
    requires_approval: bool = False
    timeout: float | None = None
    max_result_chars: int | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_-]{0,63}", self.name):
            raise ValueError(
                f"{self.name!r} cannot be the name of a tool: providers take the letters a to z, digits, _ and -, "
                "64 at most, and a letter or _ first"
            )
        if self.timeout is not None and not (isinstance(self.timeout, int | float) and self.timeout > 0):
            raise ValueError(f"{self.name}: timeout is {self.timeout!r}, and must be more than 0 seconds")
        if self.max_result_chars is not None and self.max_result_chars < 1:
            raise ValueError(f"{self.name}: max_result_chars is {self.max_result_chars}, and must be 1 or more")


TOOL_ATTRIBUTE = "__agent_tool__"
"""Where a decorated function keeps its `Decorated`."""


@dataclass(frozen=True, slots=True)
class Decorated:
    """What a decorator has made of `function`; `describe` makes the like of a wrapper around it."""

    function: Callable[..., Any]
    tool: AgentTool
    describe: Callable[[Callable[..., Any]], AgentTool]


def decorated_tool(entry: Any) -> AgentTool | None:
    """The tool that a decorated function is, or a wrapper of one; `None` of anything else."""
    decorated = getattr(entry, TOOL_ATTRIBUTE, None)
    if not isinstance(decorated, Decorated):
        return None
    # functools.wraps copies the mark to the wrapper, which is what has to be called.
    is_wrapper = entry is not decorated.function and decorated.tool.available
    return decorated.describe(entry) if is_wrapper else decorated.tool


class ToolOptions(TypedDict, total=False):
    """What the decorators take; `@function` documents it."""

    hidden: Iterable[str]
    available_if: bool | Callable[[], bool]
    expose: bool
    toolset: Iterable[str]
    unsafe_in: Iterable[str]
    requires_env: Iterable[str]
    check_fn: Callable[[], bool] | None
    defer: bool
    requires_approval: bool
    timeout: float | None
    max_result_chars: int | None


_registry: dict[str, AgentTool] = {}


def register(tool: AgentTool) -> None:
    """Put `tool` into the registry, in place of an earlier one of its name."""
    _registry[tool.name] = tool


def registered() -> list[AgentTool]:
    """The registered tools, in the order in which their names were first registered."""
    return list(_registry.values())


def menu(entries: Iterable[Any]) -> list[AgentTool]:
    """The tools that `tools=[...]` names.

    Raises:
        TypeError: when it is no list, or an entry is not a tool (see `as_tool`).
        ValueError: when two tools have one name.
    """
    if not isinstance(entries, list | tuple | set | frozenset):
        raise TypeError(f"tools takes a list of functions, not {_shown(entries)}: write tools=[…]")
    tools: dict[str, AgentTool] = {}
    for entry in cast("Iterable[Any]", entries):
        tool = as_tool(entry)
        if tool.name in tools:
            raise ValueError(f"Two tools are named {tool.name!r}: rename one of them or leave it out")
        tools[tool.name] = tool
    return list(tools.values())


def as_tool(entry: Any) -> AgentTool:
    """The tool that one entry of `tools=[...]` stands for.

    An entry is a decorated function, an `AgentTool`, a `{"spec": {"name", "description", "parameters"}, "execute": f}`
    dict, an object with `.spec` and `.execute`, or a plain callable.

    Raises:
        TypeError: when the entry is anything else, or cannot be described to a model.
        ValueError: when its name or its JSON Schema is not one that a provider takes.
    """
    if isinstance(entry, AgentTool):
        return entry
    if tool := decorated_tool(entry):
        return tool
    if inspect.isclass(entry):
        raise TypeError(f"{_shown(entry)} is a class, not a tool: pass a function, or an object of that class")
    spec, execute = _part(entry, "spec"), _part(entry, "execute")
    if spec is not None and execute is not None:
        return _from_spec(entry, spec, execute)
    if callable(entry):
        return from_function(entry)
    raise TypeError(
        f"{_shown(entry)} is not a tool: pass a function, a {{'spec': ..., 'execute': ...}} dict, "
        "or an object with .spec and .execute"
    )


def from_function(
    function: Callable[..., Any],
    *,
    filled: Iterable[str] = (),
    hidden: Iterable[str] = (),
    available_if: bool | Callable[[], bool] = True,
    expose: bool = True,
    toolset: Iterable[str] = (),
    unsafe_in: Iterable[str] = (),
    requires_env: Iterable[str] = (),
    check_fn: Callable[[], bool] | None = None,
    defer: bool = False,
    requires_approval: bool = False,
    timeout: float | None = None,
    max_result_chars: int | None = None,
) -> AgentTool:
    """The tool that is described by the signature and the docstring of `function`.

    The model does not see parameters in `hidden` and `filled`; the former need a default, the latter are filled when
    the function is called. What is not available is not described: what its annotations name may not be there.

    Raises:
        TypeError: when a model could not call the function, with the reason and what to do.
        ValueError: when providers would refuse its name or that of a parameter.
    """
    available = available_if() if callable(available_if) else available_if
    if not available:
        name = name_of(function)
        return AgentTool(
            name=name, description=name, parameters={}, execute=function, validate=dict, available=False, expose=False
        )
    described = describe(function, hidden=hidden, filled=filled)
    return AgentTool(
        name=described.name,
        description=described.description or described.name,
        parameters=described.parameters,
        execute=by_name(function),
        validate=functools.partial(check_types, described.adapter, described.parameters, described.unseen),
        expose=expose,
        toolset=_names(toolset),
        unsafe_in=_names(unsafe_in),
        requires_env=_names(requires_env),
        check_fn=check_fn,
        defer=defer,
        requires_approval=requires_approval,
        timeout=timeout,
        max_result_chars=max_result_chars,
    )


def _from_spec(entry: Any, spec: Any, execute: Any) -> AgentTool:
    name, description = _part(spec, "name"), str(_part(spec, "description") or "").strip()
    if not isinstance(name, str):
        raise TypeError(f"{_shown(entry)} is not a tool: its spec needs a name, a description and parameters")
    if not callable(execute):
        raise TypeError(f"{name}: execute is {_shown(execute)}, which cannot be called")
    parameters = given_schema(name, _part(spec, "parameters"))
    return AgentTool(
        name=name,
        description=description or name,
        parameters=parameters,
        execute=execute,
        validate=functools.partial(check_schema, parameters),
    )


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset([names] if isinstance(names, str) else names)


def _part(whole: Any, name: str) -> Any:
    """What a dict, or an object, has under `name`."""
    return whole.get(name) if is_object(whole) else getattr(whole, name, None)


def _shown(entry: Any) -> str:
    text = repr(entry)
    return text if len(text) <= 100 else f"{text[:99]}…"
