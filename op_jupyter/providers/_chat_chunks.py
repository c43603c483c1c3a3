"""The reply of a server that speaks OpenAI chat completions: from its chunks to events.

A pure function over the texts of the chunks, and the many ways in which servers write them; no network here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEvent
from op_jupyter.messages import StopReason, TextContent, ThinkingContent, ToolCall, Usage
from op_jupyter.providers._messages import kept
from op_jupyter.providers._openai import error_words, usage_of
from op_jupyter.providers._replies import broke_off, closing, event_in
from op_jupyter.providers._shared import ProviderError, http_error
from op_jupyter.providers._wire import as_dict, as_list, as_str, parse_arguments

PROVIDER = "openai"
DONE = "[DONE]"


def read_chunks(data: Iterable[str]) -> Iterator[StreamEvent]:
    """The events of a reply whose chunks are `data`, JSON texts that `[DONE]` ends.

    Raises:
        ProviderError: when it fails before any output, in a way that may pass.
    """
    reply = _Reply()
    failure: ProviderError | None = None
    try:
        for text in data:
            if text.startswith(DONE):
                break
            yield from reply.add(text)
        else:
            if not reply.finish:
                raise broke_off()
    except ProviderError as error:
        is_whole = reply.finish and error.kind in ("connection", "timeout")
        if not is_whole:
            if error.retry and not reply.parts:
                raise
            failure = error
    yield from reply.end(failure)


@dataclass(slots=True, kw_only=True)
class _Part:
    """A block that still grows. `position` is the server's own number for a call."""

    index: int
    kind: Literal["text", "thinking", "call"]
    pieces: list[str] = field(default_factory=list[str])
    is_open: bool = True
    id: str = ""
    name: str = ""
    position: Any = None
    extras: dict[str, Any] = field(default_factory=dict[str, Any])

    def block(self) -> TextContent | ThinkingContent | ToolCall:
        text = "".join(self.pieces)
        provider_data = kept(PROVIDER, self.extras)
        match self.kind:
            case "text":
                return TextContent(text, provider_data)
            case "thinking":
                return ThinkingContent(text, provider_data=provider_data)
            case "call":
                arguments, raw = parse_arguments(text)
                return ToolCall(self.id, self.name, arguments, raw, provider_data)
            case _:
                assert_never(self.kind)


class _Reply:
    """What has come of a reply."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.finish: str | None = None
        self.refusal = ""
        self.usage = Usage()
        self.reasoning_details: list[dict[str, Any]] = []

    def add(self, text: str) -> Iterator[StreamEvent]:
        chunk = as_dict(event_in(text))
        if usage := as_dict(chunk.get("usage")):
            self.usage = usage_of(usage, "prompt", "completion")
        if chunk.get("error") or chunk.get("object") == "error":
            raise _event_error(chunk)
        for choice in map(as_dict, as_list(chunk.get("choices"))):
            if choice.get("index") not in (None, 0, "0"):
                continue  # a second reply, which nobody asked for
            yield from self._add_delta(as_dict(choice.get("delta")))
            self.finish = as_str(choice.get("finish_reason")) or self.finish

    def _add_delta(self, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._add_thinking(delta)
        yield from self._write("text", as_str(delta.get("content")))
        for item in map(as_dict, as_list(delta.get("content"))):
            yield from self._write("text", as_str(item.get("text")))
            for piece in map(as_dict, as_list(item.get("thinking"))):
                yield from self._write("thinking", as_str(piece.get("text")))
        for call in map(as_dict, as_list(delta.get("tool_calls"))):
            yield from self._add_call(call)
        self.refusal += as_str(delta.get("refusal"))

    def _add_thinking(self, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        details = [as_dict(detail) for detail in as_list(delta.get("reasoning_details"))]
        for detail in details:
            _grow_details(self.reasoning_details, detail)
        for name in ("reasoning_content", "reasoning"):
            if thinking := as_str(delta.get(name)):
                yield from self._write("thinking", thinking, {"field": name})
                return
        for detail in details:
            yield from self._write("thinking", as_str(detail.get("text")) or as_str(detail.get("summary")))

    def _write(
        self, kind: Literal["text", "thinking"], text: str, extras: dict[str, Any] | None = None
    ) -> Iterator[StreamEvent]:
        if not text:
            return
        part = self.parts[-1] if self.parts else None
        if part is None or part.kind != kind:
            yield from self._close_text()
            part = _Part(index=len(self.parts), kind=kind, extras=extras or {})
            self.parts.append(part)
            yield BlockStart(part.index, part.block())
        part.pieces.append(text)
        yield BlockDelta(part.index, text)

    def _add_call(self, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        function = as_dict(delta.get("function"))
        call_id, name, arguments = as_str(delta.get("id")), as_str(function.get("name")), function.get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments) if arguments else ""
        part = self._find_call(delta.get("index"), call_id, name)
        if part is None:
            if not (call_id or name or arguments):
                return
            yield from self._close_text()
            part = _Part(index=len(self.parts), kind="call", id=call_id, name=name, position=delta.get("index"))
            self.parts.append(part)
            yield BlockStart(part.index, part.block())
        part.id, part.name = part.id or call_id, part.name or name
        if extra := delta.get("extra_content"):
            part.extras["extra_content"] = extra
        if arguments:
            part.pieces.append(arguments)
            yield BlockDelta(part.index, arguments)

    def _find_call(self, position: Any, call_id: str, name: str) -> _Part | None:
        """The call that a delta goes on with; `None` when it begins one.

        Servers leave the position out, or give every call the same, or repeat id and name in each delta.
        """
        calls = [part for part in reversed(self.parts) if part.kind == "call"]
        if position is not None:
            latest = next((call for call in calls if call.position == position), None)
            return None if latest and call_id and latest.id and call_id != latest.id else latest
        if call_id:
            return next((call for call in calls if call.id == call_id), None)
        return calls[0] if calls and not name else None

    def _close_text(self) -> Iterator[StreamEvent]:
        """End the text or thinking that something else follows. Calls stay open: their deltas may be mixed."""
        if self.parts and self.parts[-1].kind != "call":
            self.parts[-1].is_open = False
            yield BlockEnd(self.parts[-1].index, self.parts[-1].block())

    def end(self, failure: ProviderError | None) -> Iterator[StreamEvent]:
        for part in self.parts:
            if part.is_open:
                yield BlockEnd(part.index, part.block())
        failure = failure or self._failure()
        yield closing(
            failure,
            self._stop_reason(),
            finish=self.finish,
            usage=self.usage,
            provider_data=kept(
                PROVIDER, {"reasoning_details": self.reasoning_details} if self.reasoning_details else {}
            ),
        )

    def _failure(self) -> ProviderError | None:
        if self.refusal:
            return ProviderError(f"The model refused: {self.refusal}", "filter")
        if self.finish == "content_filter":
            return ProviderError("The content filter of the server stopped the reply: say it in other words", "filter")
        if self.finish == "error":
            return ProviderError("The server failed in the middle of the reply: run again", "provider")
        return None

    def _stop_reason(self) -> StopReason:
        if self.finish in ("length", "max_tokens", "model_length"):
            return "length"
        return "tool_use" if any(part.kind == "call" for part in self.parts) else "stop"


def _event_error(chunk: dict[str, Any]) -> ProviderError:
    error = as_dict(chunk.get("error")) or (chunk if chunk.get("object") == "error" else {"message": chunk["error"]})
    code, message = error_words(error)
    status = str(error.get("code"))
    return http_error(int(status) if status.isdigit() else None, message, code=code)


def _grow_details(details: list[dict[str, Any]], detail: dict[str, Any]) -> None:
    """Join a piece of OpenRouter's `reasoning_details` to the one it goes on with; they are sent back joined."""
    last = details[-1] if details else {}
    if not last or (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index")):
        details.append(dict(detail))
        return
    for key, value in detail.items():
        if key in ("text", "summary", "data") and isinstance(last.get(key), str):
            last[key] += value or ""
        elif value:
            last[key] = value
