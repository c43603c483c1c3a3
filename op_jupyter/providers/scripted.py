"""The scripted model: plays given replies in order, through the same events as a real one.

For tests and examples; it reaches no network and knows nothing of tools beyond what a reply says.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from op_jupyter.events import StreamEvent, stream_of
from op_jupyter.messages import AssistantMessage, Block, StopReason, TextContent, ToolCall
from op_jupyter.providers import Model, Request

Reply = str | ToolCall | Sequence[str | ToolCall] | BaseException | Callable[[Request], "Reply"]


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A pick of the function `name`, for a reply of `scripted`; the id is given when the reply is played."""
    return ToolCall("", name, arguments)


def scripted(replies: Iterable[Reply]) -> Model:
    """A model that gives these replies, one a request.

    Each is a string, a `call(…)`, a list of these, an exception (which the request then fails with), or a function
    of the `Request` that returns one of these. A script that has run out raises.

    Example:
        >>> from op_jupyter import Runtime
        >>> Runtime(model=scripted([[call("add", a=1, b=2)], "It is 3."]))
    """
    script = iter(replies)
    lock = threading.Lock()

    def stream(request: Request) -> Iterator[StreamEvent]:
        with lock:
            reply = next(script, None)
        if reply is None:
            raise LookupError("The script of replies has run out.")
        yield from stream_of(_message(reply, request))

    return Model("scripted", "", stream)


def _message(reply: Reply, request: Request) -> AssistantMessage:
    if isinstance(reply, BaseException):
        raise reply
    if callable(reply):
        return _message(reply(request), request)
    made = sum(len(message.tool_calls) for message in request.messages if isinstance(message, AssistantMessage))
    ids = (f"call_{n}" for n in itertools.count(made + 1))
    items = [reply] if isinstance(reply, str | ToolCall) else reply
    content: list[Block] = [
        TextContent(item) if isinstance(item, str) else ToolCall(next(ids), item.name, item.arguments) for item in items
    ]
    stop_reason: StopReason = "tool_use" if any(isinstance(block, ToolCall) for block in content) else "stop"
    return AssistantMessage(content, stop_reason, provider="scripted")
