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
    allow: Iterable[str] | None, deny: Iterable[str] | None, source: str | None, menu: Iterable[AgentTool]
) -> Policy:
    """The policy that the arguments of `exec` ask for.

    Raises:
        TypeError: when names are given as one string.
        ValueError: when a name is that of no function, in the registry or on the menu.
    """
    known = {tool.name for tool in (*registered(), *menu)}
    for argument, names in (("tools_allow", allow), ("tools_deny", deny)):
        if isinstance(names, str):
            raise TypeError(f"{argument} takes a list of names, not the string {names!r}")
        if unknown := sorted(set(names or ()) - known):
            raise ValueError(f"{argument}: there is no function {unknown[0]!r}. There are: {', '.join(sorted(known))}.")
    return Policy(
        allow=None if allow is None else frozenset(allow),
        deny=frozenset(deny or ()),
        sources=frozenset([source] if source else ()),
    )


def exposed() -> list[AgentTool]:
    """The registered tools that a run gets which names none."""
    return [tool for tool in registered() if tool.expose]


def preset(name: str) -> list[AgentTool]:
    """The registered tools of the preset `name`; of `"none"`, none.

    Raises:
        ValueError: when no tool names this preset.
    """
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

    def tool_search(query: str) -> list[dict[str, object]]:
        found = _found(query, deferred)
        for tool in found:
            offered[tool.name] = deferred.pop(tool.name)
        if not found:
            there_are = ", ".join(deferred) or "none: all are loaded"
            raise LookupError(f"No function fits {query!r}. There are: {there_are}.")
        return [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in found]

    catalogue = "\n".join(f"- {tool.name}: {tool.description.splitlines()[0]}" for tool in deferred.values())
    description = (
        "Load functions that are only listed here, by name or by words that describe them; "
        f"they can be called from the next message on:\n{catalogue}"
    )
    return replace(from_function(tool_search), description=description)


def _found(query: str, deferred: dict[str, AgentTool]) -> list[AgentTool]:
    """The tools that `query` names; else those whose name or description has all its words, else any of them."""
    words = set(re.findall(r"\w+", query.lower()))
    named = [tool for tool in deferred.values() if tool.name.lower() in words]
    if named or not words:
        return named
    texts = {name: f"{name} {tool.description}".lower() for name, tool in deferred.items()}
    for wanted in (all, any):
        if found := [deferred[name] for name, text in texts.items() if wanted(word in text for word in words)]:
            return found
    return []
