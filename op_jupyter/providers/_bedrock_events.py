"""The reply of Bedrock's ConverseStream: from the messages of its event stream to our events.

A pure function over headers and payloads; no network here, and no SDK.
"""

from __future__ import annotations

import functools
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEvent
from op_jupyter.messages import (
    Block,
    ImageContent,
    ServerContent,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from op_jupyter.providers._claude import bound
from op_jupyter.providers._messages import kept
from op_jupyter.providers._replies import broke_off, closing, event_in
from op_jupyter.providers._shared import ProviderError, http_error
from op_jupyter.providers._wire import as_dict, as_int, as_list, as_str, parse_arguments

PROVIDER = "bedrock"

# An exception in the stream bears no status.
STATUS = {
    "validationException": 400,
    "accessDeniedException": 403,
    "modelTimeoutException": 408,
    "throttlingException": 429,
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "serviceUnavailableException": 503,
}
_FILTERED = {
    "guardrail_intervened": "A guardrail stopped the reply: say it in other words, or change the guardrail",
    "content_filtered": "A content filter stopped the reply: say it in other words",
}


Bind: TypeAlias = Callable[[str], dict[str, str]]


def read_events(
    messages: Iterable[tuple[Mapping[str, Any], bytes]], basis: str = "", before: str = ""
) -> Iterator[StreamEvent]:
    """The events of a reply whose event stream has `messages`, each its headers and its payload, which is JSON.

    Beside each block of signed reasoning is kept that it is bound to this `basis`, and to what was said `before`.

    Raises:
        ProviderError: when it fails before any output, in a way that may pass.
    """
    reply = _Reply(functools.partial(bound, basis, before))
    failure: ProviderError | None = None
    try:
        for headers, payload in messages:
            yield from reply.add(headers, payload)
            if reply.finish and reply.usage:
                break
        if not reply.finish:
            raise broke_off()
    except ProviderError as error:
        # After the closing event only the usage is still to come.
        failure = None if reply.finish else error
    failure = failure or reply.failure()
    if failure and failure.retry and not reply.count:
        raise failure
    yield from reply.end(failure)


@dataclass(slots=True)
class _Part:
    """A block that still grows: of its kind, as the server began it, with the pieces of its text, JSON or base64."""

    index: int
    kind: str
    start: dict[str, Any]
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""
    results: list[Any] = field(default_factory=list[Any])

    def block(self, bind: Bind) -> Block:
        text = "".join(self.pieces)
        match self.kind:
            case "text":
                return TextContent(text)
            case "reasoning":
                own = {"signature": self.signature} | bind(text)
                return ThinkingContent(text, provider_data=kept(PROVIDER, own if self.signature else {}))
            case "redacted":
                own = {"redactedContent": _joined(self.pieces)} | bind("")
                return ThinkingContent("", redacted=True, provider_data={PROVIDER: own})
            case "toolUse":
                arguments, raw_arguments = parse_arguments(text)
                name = as_str(self.start.get("name"))
                if self.start.get("type") == "server_tool_use":
                    return _server(name, toolUse=self.start | {"input": arguments})
                return ToolCall(as_str(self.start.get("toolUseId")), name, arguments, raw_arguments)
            case "toolResult":
                return _server(as_str(self.start.get("type")), toolResult=self.start | {"content": self.results})
            case _:
                return ImageContent(b64decode(_joined(self.pieces)), f"image/{as_str(self.start.get('format'))}")


def _server(name: str, **data: Any) -> ServerContent:
    kind = next(iter(data))
    return ServerContent(name or kind, data, {PROVIDER: {"type": kind}})


def _joined(pieces: list[str]) -> str:
    """The base64 of all the bytes that are in `pieces`, each of which is base64."""
    return pieces[0] if len(pieces) == 1 else b64encode(b"".join(map(b64decode, pieces))).decode()


class _Reply:
    """What has come of a reply."""

    def __init__(self, bind: Bind) -> None:
        self.bind = bind
        self.count = 0
        self.open: dict[Any, _Part] = {}
        self.citations: dict[Any, list[Any]] = {}
        self.calls = 0
        self.finish = ""
        self.fields: Any = None
        self.usage: dict[str, Any] = {}

    def add(self, headers: Mapping[str, Any], payload: bytes) -> Iterator[StreamEvent]:
        if headers.get(":message-type") == "error":
            raise http_error(None, as_str(headers.get(":error-message")), code=as_str(headers.get(":error-code")))
        event = as_dict(event_in(payload.decode("utf-8", "replace")))
        if headers.get(":message-type") == "exception":
            code = as_str(headers.get(":exception-type"))
            message = as_str(event.get("message")) or as_str(event.get("originalMessage"))
            raise http_error(STATUS.get(code), message, code=code)
        position = event.get("contentBlockIndex")
        match headers.get(":event-type"):
            case "contentBlockStart":
                for kind, start in as_dict(event.get("start")).items():
                    yield from self._begin(position, kind, as_dict(start))
            case "contentBlockDelta":
                yield from self._grow(position, as_dict(event.get("delta")))
            case "contentBlockStop":
                yield from self._stop(position)
            case "messageStop":
                self.finish = as_str(event.get("stopReason")) or "end_turn"
                self.fields = event.get("additionalModelResponseFields")
            case "metadata":
                self.usage = as_dict(event.get("usage"))
            case _:
                pass  # the start of the message, or what is yet to be invented

    def _begin(self, position: Any, kind: str, start: dict[str, Any]) -> Generator[StreamEvent, None, _Part]:
        yield from self._stop(position)
        part = self.open[position] = _Part(self.count, kind, start)
        self.count += 1
        block = part.block(self.bind)
        self.calls += isinstance(block, ToolCall)
        yield BlockStart(part.index, block)
        return part

    def _part(self, position: Any, kind: str) -> Generator[StreamEvent, None, _Part]:
        """The block at `position`, which may begin without a word: only calls and images have their own event."""
        part = self.open.get(position)
        if part is not None and part.kind == kind:
            return part
        if kind in ("toolUse", "toolResult", "image"):
            raise ProviderError("The server sent more of a block that it has not begun: run again", "provider")
        return (yield from self._begin(position, kind, {}))

    def _grow(self, position: Any, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        for kind, value in delta.items():
            match kind:
                case "text":
                    yield from self._write(position, "text", as_str(value))
                case "reasoningContent":
                    reasoning = as_dict(value)
                    yield from self._write(position, "reasoning", as_str(reasoning.get("text")))
                    if signature := as_str(reasoning.get("signature")):
                        part = yield from self._part(position, "reasoning")
                        part.signature += signature
                    if redacted := as_str(reasoning.get("redactedContent")):
                        part = yield from self._part(position, "redacted")
                        part.pieces.append(redacted)
                case "toolUse":
                    part = yield from self._part(position, kind)
                    shown = part.start.get("type") != "server_tool_use"
                    yield from _append(part, as_str(as_dict(value).get("input")), shown)
                case "toolResult":
                    part = yield from self._part(position, kind)
                    part.results += as_list(value)
                case "image":
                    part = yield from self._part(position, kind)
                    part.pieces.append(as_str(as_dict(as_dict(value).get("source")).get("bytes")))
                case "citation":
                    self.citations.setdefault(position, []).append(value)
                case _:
                    pass

    def _write(self, position: Any, kind: str, text: str) -> Iterator[StreamEvent]:
        # Some models open with a block that holds nothing but an empty text.
        if text:
            part = yield from self._part(position, kind)
            yield from _append(part, text)

    def _stop(self, position: Any) -> Iterator[StreamEvent]:
        if part := self.open.pop(position, None):
            yield BlockEnd(part.index, part.block(self.bind))
        if citations := self.citations.pop(position, None):
            block = _server("", citations=citations)
            yield BlockStart(self.count, block)
            yield BlockEnd(self.count, block)
            self.count += 1

    def failure(self) -> ProviderError | None:
        """What the model or a filter said went wrong, instead of an end."""
        if self.finish in _FILTERED:
            return ProviderError(_FILTERED[self.finish], "filter")
        if self.finish.startswith("malformed_"):
            wrote = self.finish.removeprefix("malformed_").replace("_", " ")
            return ProviderError(f"The model wrote a malformed {wrote}: run again", "provider", retry=True)
        return None

    def end(self, failure: ProviderError | None) -> Iterator[StreamEvent]:
        for position in [*self.open, *self.citations]:
            yield from self._stop(position)
        yield closing(
            failure,
            self._stop_reason(),
            finish=self.finish or None,
            usage=_usage(self.usage),
            provider_data=kept(PROVIDER, {"additionalModelResponseFields": self.fields} if self.fields else {}),
        )

    def _stop_reason(self) -> StopReason:
        if self.finish in ("max_tokens", "model_context_window_exceeded"):
            return "length"
        return "tool_use" if self.calls else "stop"


def _append(part: _Part, text: str, shown: bool = True) -> Iterator[StreamEvent]:
    if text:
        part.pieces.append(text)
        if shown:
            yield BlockDelta(part.index, text)


def _usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        input=as_int(usage.get("inputTokens")),
        output=as_int(usage.get("outputTokens")),
        cache_read=as_int(usage.get("cacheReadInputTokens")),
        cache_write=as_int(usage.get("cacheWriteInputTokens")),
    )
