"""How a tool is called: what its function returns, whether it is sync, async or a generator.

Arguments are validated in `validation` before; `results` turns what comes back into what the model reads.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, cast

from op_jupyter.tools.results import MOST_ITEMS, listed, marked

if TYPE_CHECKING:
    from op_jupyter.tools.registry import AgentTool


def call_tool(tool: AgentTool, arguments: Mapping[str, Any], on_item: Callable[[Any], None] = lambda item: None) -> Any:
    """Run the function of `tool` with validated arguments.

    An async function gives a coroutine, to be awaited on an event loop. A generator (or another one-time iterator of
    Python's own) is read, up to 1000 items, and gives a list, or what it returns at its end; `on_item` is called with
    what a generator yields, as it comes.

    Raises:
        Exception: whatever the function raises.
    """
    value = tool.execute(**arguments)
    if inspect.isasyncgen(value):
        return _read_async(cast("AsyncIterator[Any]", value), on_item)
    if inspect.isawaitable(value):
        return _awaited(value)
    if inspect.isgenerator(value):
        return _read(cast("Generator[object, None, object]", value), on_item)
    return listed(value)


def by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, made callable with keyword arguments alone, where `*args` is a list."""
    signature = inspect.signature(function)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if not kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}:
        return function

    @functools.wraps(function)
    def execute(**arguments: Any) -> Any:
        bound = inspect.BoundArguments(signature, cast("Any", {}))
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[parameter.name] = arguments
            elif parameter.name in arguments:
                bound.arguments[parameter.name] = arguments.pop(parameter.name)
        bound.apply_defaults()
        return function(*bound.args, **bound.kwargs)

    return execute


async def _awaited(value: Awaitable[Any]) -> Any:
    return listed(await value)


def _read(generator: Generator[object, None, object], on_item: Callable[[Any], None]) -> Any:
    items: list[Any] = []
    try:
        while len(items) <= MOST_ITEMS:
            item = listed(next(generator))
            on_item(item)
            items.append(item)
    except StopIteration as end:
        if end.value is not None:
            return listed(end.value)
    return marked(items)


async def _read_async(value: AsyncIterator[Any], on_item: Callable[[Any], None]) -> list[Any]:
    items: list[Any] = []
    async for yielded in value:
        item = listed(yielded)
        on_item(item)
        items.append(item)
        if len(items) > MOST_ITEMS:
            break
    return marked(items)
