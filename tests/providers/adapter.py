"""What a provider's tests say of its server, and what the conformance tests ask of a reply.

An `Adapter` writes what the server would send; no test stands here.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from op_jupyter import Run, Runtime
from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEnd, StreamEvent, StreamRetry, apply_update
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from op_jupyter.providers import Connection, Model, Request, ToolSpec
from tests.providers.wire_server import Answer, Ending

KEY = "sk-conformance-0123456789abcdef"

ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
NOW = ToolSpec("now", "Say what time it is.", {"type": "object", "properties": {}})
HI = UserMessage("Hi")


@dataclass(frozen=True)
class Call:
    """A call that the server is to stream, its arguments in pieces."""

    id: str
    name: str
    pieces: list[str] = field(default_factory=list[str])


class Adapter(ABC):
    """How to reach a provider, and what its server says on the wire."""

    content_type: str
    key_name: str  # the variable that an error names where there is no key, or a refused one
    base_url_hint: str  # what is said behind an error that may come of a wrong address
    client_name: str  # what a client of one's own has to be

    @abstractmethod
    def model(self) -> Model:
        """The model to ask."""

    @abstractmethod
    def connection(self, url: str) -> Connection:
        """How the server at `url` is reached, with `KEY`."""

    @abstractmethod
    def other_client(self) -> Any:
        """A client of the SDK that cannot be asked."""

    @abstractmethod
    def reply(self, parts: list[str | Call], usage: Usage) -> list[bytes]:
        """A whole reply, one piece of the stream for each event, the closing event last.

        Each string is a piece of one text. The text comes before the calls.
        """

    @abstractmethod
    def error_event(self, message: str) -> bytes:
        """An error in the middle of a stream."""

    @abstractmethod
    def error_body(self, message: str) -> bytes:
        """The body of a response that is an error."""

    @abstractmethod
    def model_lists(self, names: list[str]) -> list[bytes]:
        """The bodies of the responses that say which models there are."""

    def ask(self, connection: Connection) -> Reply:
        """The reply to a question over `connection`."""
        return Reply(list(self.model().stream(self.question(connection))))

    def question(self, connection: Connection) -> Request:
        """A request over `connection`."""
        return Request(self.model().name, None, [HI], [ADD], connection=connection)

    def runtime(self, url: str, **settings: Any) -> Runtime:
        """A runtime that asks the server at `url`."""
        connection = self.connection(url)
        return Runtime(self.model(), api_key=connection.api_key, base_url=connection.base_url, **settings)

    def beginning(self, text: str) -> list[bytes]:
        """A reply that says `text` and stops there, without its closing event."""
        pieces = self.reply([text, " and more"], Usage())
        said = next(n for n, piece in enumerate(pieces) if text.encode() in piece)
        return pieces[: said + 1]

    def answer(self, *parts: str | Call, usage: Usage | None = None) -> Answer:
        """A whole reply as a response."""
        return self.streamed(self.reply(list(parts), usage or Usage(input=7, output=3)))

    def streamed(self, pieces: Sequence[bytes | threading.Event], then: Ending = "whole") -> Answer:
        """A response that streams `pieces`."""
        return Answer(pieces=pieces, headers={"content-type": self.content_type}, then=then)

    def failed(self, status: int, message: str, **headers: str) -> Answer:
        """A response that is an error."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Answer(
            status=status,
            pieces=[self.error_body(message)],
            headers={"content-type": "application/json"} | named,
        )


@dataclass
class Reply:
    """What the events of a stream come to."""

    events: list[StreamEvent]
    content: list[Block] = field(default_factory=list[Block])

    def __post_init__(self) -> None:
        for event in self.events:
            if isinstance(event, BlockStart | BlockDelta | BlockEnd):
                apply_update(self.content, event)

    @property
    def end(self) -> StreamEnd:
        """The closing event, which is the last one and the only one."""
        *before, last = self.events
        assert isinstance(last, StreamEnd)
        assert not any(isinstance(event, StreamEnd) for event in before)
        return last

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def calls(self) -> list[ToolCall]:
        return [block for block in self.content if isinstance(block, ToolCall)]

    @property
    def retries(self) -> list[StreamRetry]:
        return [event for event in self.events if isinstance(event, StreamRetry)]


class Reader:
    """A thread that reads a reply, as the loop has one, and the way to leave it."""

    def __init__(self, model: Model, request: Request) -> None:
        self.events: list[StreamEvent] = []
        self.something_came = threading.Event()
        self._request = request
        self._thread = threading.Thread(target=self._read, args=(model,), daemon=True)
        self._thread.start()

    def _read(self, model: Model) -> None:
        for event in model.stream(self._request):
            self.events.append(event)
            self.something_came.set()

    def abandon(self) -> None:
        self._request.on_abandon()

    def is_gone_within(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


def result(call_id: str, *content: TextContent | ImageContent, is_error: bool = False) -> ToolResultMessage:
    """What a function called `plot` gave."""
    return ToolResultMessage(call_id, "plot", list(content) or [TextContent("done")], is_error=is_error)


def shown(run: Run) -> list[Block]:
    """All that the model has said in `run`."""
    return [block for message in run.messages if isinstance(message, AssistantMessage) for block in message.content]


def wait_for(condition: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether `condition()` comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()
