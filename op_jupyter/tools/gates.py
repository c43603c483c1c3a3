"""Which functions a run is offered: presets, gates, the policy of the run, and what is offered by name only.

What a tool says of itself is in `registry`, how a run inherits a menu in `arguments`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from op_jupyter.tools.registry import AgentTool, from_function, registered

log = logging.getLogger(__name__)

disabled: set[str] = set()
"""The names of the tools that the user has switched off, for all runs."""

TOOL_SEARCH = "tool_search"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a run may not be offered, whatever its menu says. `sources` are the channels that its calls come from."""

    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()

    def within(self, outer: Policy) -> Policy:
        """Both at once: a nested run never gets what the outer one may not have."""
        allows = [allow for allow in (self.allow, outer.allow) if allow is not None]
        return Policy(
            allow=frozenset.intersection(*allows) if allows else None,
            deny=self.deny | outer.deny,
            sources=self.sources | outer.sources,
        )

    def lets(self, tool: AgentTool) -> bool:
        """Whether a run under this policy may be offered `tool`."""
        return (
            not self.sources & tool.unsafe_in
            and tool.name not in self.deny
            and (self.allow is None or tool.name in self.allow)
        )


def policy(
    allow: Iterable[str] | None,
    deny: Iterable[str] | None,
    source: str | None,
    menu: Iterable[AgentTool],
    outer: Policy,
) -> Policy:
    """The policy that the arguments of `exec` ask for, within the `outer` one.

    Raises:
        TypeError: when names are given as one string, or anything else is given in place of a name.
        ValueError: when a name is that of no function: in the registry, on the menu, or in the outer policy.
    """
    if not isinstance(source, str | None):
        raise TypeError(f"tools_source takes the name of one channel, not {source!r}")
    known = {tool.name for tool in (*registered(), *menu)} | (outer.allow or frozenset()) | outer.deny
    return Policy(
        allow=None if allow is None else _names("tools_allow", allow, known),
        deny=_names("tools_deny", deny or (), known),
        sources=frozenset([source] if source else ()),
    ).within(outer)


def _names(argument: str, given: Iterable[str], known: set[str]) -> frozenset[str]:
    if isinstance(given, str):
        raise TypeError(f"{argument} takes a list of names, not the string {given!r}")
    names = list(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument} takes names of functions, not {name!r}")
        if name not in known:
            there_are = f"There are: {', '.join(sorted(known))}." if known else "There are none."
            raise ValueError(f"{argument}: there is no function {name!r}. {there_are}")
    return frozenset(names)


def exposed() -> list[AgentTool]:
    """The registered tools that a run gets which names none."""
    return [tool for tool in registered() if tool.expose]


def preset(name: str) -> list[AgentTool]:
    """The registered tools of the preset `name`; of `"none"`, none.

    Raises:
        TypeError: when `name` is not a name.
        ValueError: when no tool names this preset.
    """
    if not isinstance(name, str):
        raise TypeError(f"toolset takes the name of one preset, not {name!r}")
    if name == "none":
        return []
    tools = [tool for tool in registered() if name in tool.toolset]
    if not tools:
        there_are = sorted({one for tool in registered() for one in tool.toolset} | {"none"})
        raise ValueError(f"There is no toolset {name!r}. There are: {', '.join(there_are)}.")
    return tools


def is_runnable(tool: AgentTool) -> bool:
    """Whether `tool` can be run here and now, by this user."""
    if not tool.available or tool.name in disabled or any(not os.environ.get(name) for name in tool.requires_env):
        return False
    try:
        return tool.check_fn is None or bool(tool.check_fn())
    except Exception:
        log.debug("The check_fn of %s failed", tool.name, exc_info=True)
        return False


# -------------------------------------------------------------------- what is offered by name only


def tool_search_over(deferred: dict[str, AgentTool], offered: dict[str, AgentTool]) -> AgentTool:
    """The tool `tool_search` of one run: what it finds among the `deferred` is moved to what is `offered`."""
    catalogue = list(deferred.values())

    def tool_search(query: str) -> list[dict[str, object]]:
        found = _found(query, catalogue)
        if not found:
            there_are = ", ".join(tool.name for tool in catalogue)
            raise LookupError(f"No function fits {query!r}. There are: {there_are}.")
        for tool in found:
            if deferred.pop(tool.name, None):
                offered[tool.name] = tool
        return [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in found]

    lines = [f"- {tool.name}: {tool.description.partition(chr(10))[0]}" for tool in catalogue]
    description = (
        "Load functions that are only listed here, by name or by words that describe them; "
        "they can be called from the next message on:\n" + "\n".join(lines)
    )
    return replace(from_function(tool_search), description=description)


def is_tool_search(tool: AgentTool) -> bool:
    """Whether `tool` is the `tool_search` of a run, and not a function of the user's that has this name."""
    return getattr(tool.execute, "__module__", None) == __name__


def _found(query: str, tools: list[AgentTool]) -> list[AgentTool]:
    """The tools that `query` names; else those whose names and descriptions have the most of its words, if any."""
    tokens = set(re.findall(r"[\w-]+", query.lower()))
    if named := [tool for tool in tools if tool.name.lower() in tokens]:
        return named
    words = set(re.findall(r"[^\W_]+", query.lower()))
    matches = [sum(word in f"{tool.name} {tool.description}".lower() for word in words) for tool in tools]
    most = max(matches, default=0)
    return [tool for tool, matched in zip(tools, matches, strict=True) if matched == most > 0]
