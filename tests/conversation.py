"""A scripted model that keeps what it is asked, and short ways to what a run came to; no tests here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from op_jupyter import Run, Runtime
from op_jupyter.events import StreamEvent
from op_jupyter.messages import ToolResultMessage, UserMessage
from op_jupyter.providers import Model, Request
from op_jupyter.providers.scripted import Reply
from op_jupyter.testing import scripted


def playing(*replies: Reply) -> tuple[Model, list[Request]]:
    """A model that gives these replies, and the list that its requests go into."""
    model, requests = scripted(replies), list[Request]()

    def stream(request: Request) -> Iterator[StreamEvent]:
        requests.append(request)
        return model.stream(request)

    return replace(model, stream=stream), requests


class Conversation:
    """A Runtime whose model gives these replies, and the requests that it was sent."""

    def __init__(self, *replies: Any) -> None:
        model, self.requests = playing(*replies)
        self.runtime = Runtime(model=model)

    def exec(self, **arguments: Any) -> Any:
        return self.runtime.exec("go", **{"tools": [], **arguments})

    def aexec(self, **arguments: Any) -> Any:
        return asyncio.run(self.runtime.aexec("go", **{"tools": [], **arguments}))

    @property
    def run(self) -> Run:
        return the_run(self.runtime)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def offered(request: Request) -> list[str]:
    """The names of the functions that a request offers."""
    return [tool.name for tool in request.tools]


def the_run(runtime: Runtime) -> Run:
    """The latest run."""
    assert runtime.last_run is not None
    return runtime.last_run


def results(run: Run) -> list[ToolResultMessage]:
    """The results of its calls, in order."""
    return [message for message in run.new_messages if isinstance(message, ToolResultMessage)]


def last_text(request: Request) -> str:
    """What a person has said last."""
    message = request.messages[-1]
    assert isinstance(message, UserMessage)
    return message.text
