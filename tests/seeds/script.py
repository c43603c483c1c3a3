"""A scripted model that keeps what it is asked, and short ways to what a run came to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from op_jupyter import Run, Runtime
from op_jupyter.events import StreamEvent
from op_jupyter.messages import ToolResultMessage
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
