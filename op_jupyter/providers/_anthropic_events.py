"""The reply of a server that speaks Anthropic messages: from its server-sent events to ours.

A pure function over the data of the events; no network here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEvent
from op_jupyter.messages import Block, ServerContent, StopReason, TextContent, ThinkingContent, ToolCall, Usage
from op_jupyter.providers._bedrock_events import STATUS
from op_jupyter.providers._claude import bound
from op_jupyter.providers._messages import kept
from op_jupyter.providers._replies import broke_off, closing, event_in
from op_jupyter.providers._shared import ProviderError, http_error
from op_jupyter.providers._wire import as_dict, as_int, as_list, as_str, parse_arguments

PROVIDER = "anthropic"

# An error event bears no status; Bedrock sends its own.
_STATUS = STATUS | {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


Bind: TypeAlias = Callable[[str], dict[str, str]]


def read_events(data: Iterable[str], basis: str = "", before: str = "") -> Iterator[StreamEvent]:
    """The events of a reply whose server-sent events hold `data`, JSON texts of which the last is `message_stop`.

    Beside each block of thinking is kept that it is bound to this `basis`, and to what was said `before`.

    Raises:
        ProviderError: when it fails before any output, in a way that may pass.
    """
    reply = _Reply(functools.partial(bound, basis, before))
    failure: ProviderError | None = None
    try:
        for text in data:
            yield from reply.add(text)
            if reply.is_complete:
                break
        else:
            raise broke_off()
    except ProviderError as error:
        if error.retry and not reply.count:
            raise
        failure = error
    yield from reply.end(failure)


@dataclass(slots=True)
class _Part:
    """A block that still grows: as the server began it, and the pieces of its text, or of the JSON of its input."""

    index: int
    raw: dict[str, Any]
    pieces: list[str] = field(default_factory=list[str])

    def block(self, bind: Bind) -> Block:
        kind, text = as_str(self.raw.get("type")), "".join(self.pieces)
        match kind:
            case "text":
                return TextContent(text, kept(PROVIDER, self._extras_of_text(text)))
            case "thinking":
                signature = self.raw.get("signature")
                return ThinkingContent(
                    text, provider_data=kept(PROVIDER, {"signature": signature} | bind(text) if signature else {})
                )
            case "redacted_thinking":
                return ThinkingContent(
                    "", redacted=True, provider_data=kept(PROVIDER, {"data": self.raw.get("data")} | bind(""))
                )
            case "tool_use":
                arguments, raw_arguments = self._input(text)
                caller = as_dict(self.raw.get("caller"))
                extras = {} if caller.get("type", "direct") == "direct" else {"caller": caller}
                return ToolCall(
                    as_str(self.raw.get("id")),
                    as_str(self.raw.get("name")),
                    arguments,
                    raw_arguments,
                    kept(PROVIDER, extras),
                )
            case _:
                whole = self.raw | {"input": self._input(text)[0]} if "input" in self.raw else self.raw
                return ServerContent(as_str(self.raw.get("name")) or kind, whole, kept(PROVIDER, {"type": kind}))

    def _extras_of_text(self, text: str) -> dict[str, Any]:
        if citations := as_list(self.raw.get("citations")):
            return {"citations": citations}
        # Between signed blocks even this has its place; without a mark it would be taken for nothing.
        return {"blank": True} if text and not text.strip() else {}

    def _input(self, text: str) -> tuple[dict[str, Any], str | None]:
        """The input as it was streamed, or as it stood in the beginning of the block."""
        return parse_arguments(text) if text.strip() else (as_dict(self.raw.get("input")), None)


class _Reply:
    """What has come of a reply."""

    def __init__(self, bind: Bind) -> None:
        self.bind = bind
        self.count = 0
        self.open: dict[Any, _Part] = {}
        self.calls = 0
        self.finish: str | None = None
        self.details: dict[str, Any] = {}
        self.container: dict[str, Any] = {}
        self.usage: dict[str, Any] = {}
        self.is_complete = False

    def add(self, text: str) -> Iterator[StreamEvent]:
        event = as_dict(event_in(text))
        match event.get("type"):
            case "message_start":
                self._update(as_dict(event.get("message")))
            case "content_block_start":
                yield from self._start(event.get("index"), as_dict(event.get("content_block")))
            case "content_block_delta":
                yield from self._grow(event.get("index"), as_dict(event.get("delta")))
            case "content_block_stop":
                if part := self.open.pop(event.get("index"), None):
                    yield BlockEnd(part.index, part.block(self.bind))
            case "message_delta":
                self._update(as_dict(event.get("delta")) | {"usage": event.get("usage")})
            case "message_stop":
                self.is_complete = True
            case "error":
                raise _event_error(as_dict(event.get("error")))
            case _:
                pass  # a ping, or what is yet to be invented

    def _update(self, message: dict[str, Any]) -> None:
        """Take over what is said of the message as a whole. The later counts; where it says nothing, the earlier."""
        self.finish = as_str(message.get("stop_reason")) or self.finish
        self.details = as_dict(message.get("stop_details")) or self.details
        self.container = as_dict(message.get("container")) or self.container
        counted = as_dict(message.get("usage")).items()
        self.usage |= {name: value for name, value in counted if value is not None}

    def _start(self, position: Any, raw: dict[str, Any]) -> Iterator[StreamEvent]:
        part = _Part(self.count, dict(raw))
        self.count += 1
        self.open[position] = part
        block = part.block(self.bind)
        self.calls += isinstance(block, ToolCall)
        yield BlockStart(part.index, block)
        if raw.get("type") in ("text", "thinking"):
            yield from _write(part, as_str(raw.get(raw["type"])))

    def _grow(self, position: Any, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        part = self.open.get(position)
        if part is None:
            raise ProviderError("The server sent more of a block that it has not begun: run again", "provider")
        match delta.get("type"):
            case "text_delta":
                yield from _write(part, as_str(delta.get("text")))
            case "thinking_delta":
                yield from _write(part, as_str(delta.get("thinking")))
            case "input_json_delta":
                part.pieces.append(as_str(delta.get("partial_json")))
                if part.pieces[-1] and part.raw.get("type") == "tool_use":
                    yield BlockDelta(part.index, part.pieces[-1])
            case "signature_delta":
                part.raw["signature"] = delta.get("signature")
            case "citations_delta":
                part.raw["citations"] = [*as_list(part.raw.get("citations")), delta.get("citation")]
            case "compaction_delta":
                part.raw |= {name: value for name, value in delta.items() if name != "type"}
            case _:
                pass

    def end(self, failure: ProviderError | None) -> Iterator[StreamEvent]:
        for part in self.open.values():
            yield BlockEnd(part.index, part.block(self.bind))
        failure = failure or self._refusal()
        yield closing(
            failure,
            self._stop_reason(),
            finish=self.finish,
            usage=_usage(self.usage),
            provider_data=kept(PROVIDER, {"container": self.container} if self.container else {}),
        )

    def _refusal(self) -> ProviderError | None:
        if self.finish != "refusal":
            return None
        why = as_str(self.details.get("explanation")) or "it gave no reason. Say it in other words"
        category = as_str(self.details.get("category"))
        return ProviderError(f"The model refused{category and f' ({category})'}: {why}", "filter")

    def _stop_reason(self) -> StopReason:
        if self.finish in ("max_tokens", "model_context_window_exceeded"):
            return "length"
        # A pause is one among tools that the server runs: sent back as it is, the message goes on.
        return "tool_use" if self.calls or self.finish == "pause_turn" else "stop"


def _write(part: _Part, text: str) -> Iterator[StreamEvent]:
    if text:
        part.pieces.append(text)
        yield BlockDelta(part.index, text)


def _event_error(error: dict[str, Any]) -> ProviderError:
    code, message = error_words(error)
    return http_error(_STATUS.get(code), message, code=code)


def error_words(error: dict[str, Any]) -> tuple[str, str]:
    """The code and the message of an error object. An account without money is told from a bad request by its words."""
    code, message = as_str(error.get("type")), as_str(error.get("message"))
    return ("billing_error" if "credit balance" in message else code), message


def _usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        input=as_int(usage.get("input_tokens")),
        output=as_int(usage.get("output_tokens")),
        cache_read=as_int(usage.get("cache_read_input_tokens")),
        cache_write=as_int(usage.get("cache_creation_input_tokens")),
        reasoning=as_int(as_dict(usage.get("output_tokens_details")).get("thinking_tokens")),
    )
