"""A Runtime on the scripted model that keeps what the model was sent; no tests here."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from op_jupyter import Run, Runtime
from op_jupyter.messages import UserMessage
from op_jupyter.providers import Request
from op_jupyter.testing import scripted


class Conversation:
    """A Runtime whose model gives these replies, and the requests that it was sent."""

    def __init__(self, *replies: Any) -> None:
        self.requests: list[Request] = []
        self.runtime = Runtime(model=scripted([partial(self._reply, reply) for reply in replies]))

    def _reply(self, reply: Any, request: Request) -> Any:
        self.requests.append(request)
        return reply(request) if callable(reply) else reply

    def exec(self, **arguments: Any) -> Any:
        return self.runtime.exec("go", **{"tools": [], **arguments})

    def aexec(self, **arguments: Any) -> Any:
        return asyncio.run(self.runtime.aexec("go", **{"tools": [], **arguments}))

    @property
    def run(self) -> Run:
        assert self.runtime.last_run is not None
        return self.runtime.last_run


def last_text(request: Request) -> str:
    message = request.messages[-1]
    assert isinstance(message, UserMessage)
    return "".join(block.text for block in message.content if block.kind == "text")
