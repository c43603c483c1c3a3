"""The reply of a server that speaks OpenAI responses: from its server-sent events to ours.

A pure function over the data of the events; no network here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEvent
from op_jupyter.messages import Block, ServerContent, StopReason, TextContent, ThinkingContent, ToolCall, Usage
from op_jupyter.providers._messages import kept
from op_jupyter.providers._openai import error_words, usage_of
from op_jupyter.providers._replies import broke_off, closing, event_in
from op_jupyter.providers._shared import ProviderError, http_error
from op_jupyter.providers._wire import as_dict, as_list, as_str, parse_arguments

PROVIDER = "openai-responses"
DONE = "[DONE]"


def read_events(data: Iterable[str], model: str = "") -> Iterator[StreamEvent]:
    """The events of a reply whose server-sent events hold `data`, JSON texts of which the last holds the response.

    `model` is kept with the message: what it has encrypted no other can read.

    Raises:
        ProviderError: when it fails before any output, in a way that may pass.
    """
    reply = _Reply(model)
    failure: ProviderError | None = None
    try:
        for text in data:
            if not text.startswith(DONE):
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
class _Item:
    """An item of the output that still grows: as the server last sent it, and the pieces of its text.

    `index` is that of its block, once it has one.
    """

    raw: dict[str, Any]
    pieces: list[str] = field(default_factory=list[str])
    index: int | None = None

    @property
    def kind(self) -> str:
        return as_str(self.raw.get("type"))

    def block(self, *, is_done: bool) -> Block:
        """What it is so far, or as a whole; only a whole one can be sent back as it came."""
        streamed = "".join(self.pieces)
        match self.kind:
            case "message":
                text = _texts(self.raw.get("content"), "") or streamed
                return TextContent(text, kept(PROVIDER, self._extras_of_text() if is_done else {}))
            case "reasoning":
                text = _texts(self.raw.get("summary")) or _texts(self.raw.get("content")) or streamed
                return ThinkingContent(text, is_done and not text, kept(PROVIDER, self.raw if is_done else {}))
            case "function_call":
                arguments, raw_arguments = parse_arguments(as_str(self.raw.get("arguments")) or streamed)
                return self._call(arguments, raw_arguments, self._extras_of_call() if is_done else {})
            case "custom_tool_call":
                written = as_str(self.raw.get("input")) or streamed
                arguments, raw_arguments = parse_arguments(written)
                return self._call(arguments, raw_arguments, self._extras_of_call() | {"input": written})
            case kind:
                name = as_str(self.raw.get("name")) or kind
                return ServerContent(name, self.raw, kept(PROVIDER, {"type": kind} if is_done else {}))

    def _call(self, arguments: dict[str, Any], raw_arguments: str | None, extras: dict[str, Any]) -> ToolCall:
        call_id = as_str(self.raw.get("call_id")) or as_str(self.raw.get("id"))
        return ToolCall(call_id, as_str(self.raw.get("name")), arguments, raw_arguments, kept(PROVIDER, extras))

    def _extras_of_call(self) -> dict[str, Any]:
        said = ("type", "call_id", "name", "arguments", "status")
        return {name: value for name, value in self.raw.items() if name not in said and value is not None}

    def _extras_of_text(self) -> dict[str, Any]:
        extras = {name: self.raw[name] for name in ("id", "phase") if self.raw.get(name)}
        parts = [_without(as_dict(part), "logprobs") for part in as_list(self.raw.get("content"))]
        # One without annotations is told by its text.
        return extras | ({"content": parts} if len(parts) > 1 or any(part.get("annotations") for part in parts) else {})


class _Reply:
    """What has come of a reply."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.count = 0
        self.open: dict[Any, _Item] = {}
        self.calls = 0
        self.refusal = ""
        self.finish: str | None = None
        self.is_incomplete = False
        self.usage = Usage()
        self.is_complete = False

    def add(self, text: str) -> Iterator[StreamEvent]:
        event = as_dict(event_in(text))
        match event.get("type"):
            case "response.output_item.added":
                yield from self._start(event)
            case (
                "response.output_text.delta"
                | "response.reasoning_summary_text.delta"
                | "response.reasoning_text.delta"
                | "response.function_call_arguments.delta"
                | "response.custom_tool_call_input.delta"
            ):
                yield from self._write(self._item(event), as_str(event.get("delta")))
            case "response.reasoning_summary_part.added":
                item = self._item(event)
                yield from self._write(item, "\n\n" if item.pieces else "")
            case "response.output_item.done":
                yield from self._finish(event)
            case "response.completed" | "response.incomplete" | "response.failed" as kind:
                self._close(kind.removeprefix("response."), as_dict(event.get("response")))
            case "error":
                self.finish = "failed"
                raise _error(as_dict(event.get("error")) or event)
            case _:
                pass  # what an item that the server runs is doing, or what stands in the whole item too

    def _start(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = _Item(as_dict(event.get("item")))
        self.open[_key(event)] = item
        # Before there is text in these, nothing is shown, and what fails can be sent again.
        if item.kind not in ("message", "reasoning"):
            yield from self._show(item)

    def _item(self, event: dict[str, Any]) -> _Item:
        item = self.open.get(_key(event))
        if item is None:
            raise ProviderError("The server sent more of an item that it has not begun: run again", "provider")
        return item

    def _show(self, item: _Item) -> Generator[StreamEvent, None, int]:
        """Begin the block of `item`, if it has not begun yet; its position."""
        if item.index is None:
            item.index = self.count
            self.count += 1
            block = item.block(is_done=False)
            self.calls += isinstance(block, ToolCall)
            yield BlockStart(item.index, block)
        return item.index

    def _write(self, item: _Item, text: str) -> Iterator[StreamEvent]:
        if text:
            index = yield from self._show(item)
            item.pieces.append(text)
            yield BlockDelta(index, text)

    def _finish(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = self.open.pop(_key(event), None) or _Item({})
        item.raw = as_dict(event.get("item"))
        self.refusal += "".join(as_str(as_dict(part).get("refusal")) for part in as_list(item.raw.get("content")))
        block = item.block(is_done=True)
        is_empty = isinstance(block, TextContent) and not block.text
        if item.index is not None or not is_empty:
            index = yield from self._show(item)
            yield BlockEnd(index, block)

    def _close(self, kind: str, response: dict[str, Any]) -> None:
        status = as_str(response.get("status")) or kind
        reason = as_str(as_dict(response.get("incomplete_details")).get("reason"))
        self.finish = reason or status
        self.is_incomplete = bool(reason) or status == "incomplete"
        self.usage = usage_of(as_dict(response.get("usage")), "input", "output")
        if status == "failed":
            raise _error(as_dict(response.get("error")))
        self.is_complete = True

    def end(self, failure: ProviderError | None) -> Iterator[StreamEvent]:
        for item in self.open.values():
            if item.index is not None:
                yield BlockEnd(item.index, item.block(is_done=False))
        failure = failure or self._failure()
        yield closing(
            failure,
            self._stop_reason(),
            finish=self.finish,
            usage=self.usage,
            provider_data=kept(PROVIDER, {"model": self.model}),
        )

    def _failure(self) -> ProviderError | None:
        if self.refusal:
            return ProviderError(f"The model refused: {self.refusal}", "filter")
        if self.finish == "content_filter":
            return ProviderError("The content filter of the server stopped the reply: say it in other words", "filter")
        return None

    def _stop_reason(self) -> StopReason:
        if self.is_incomplete:
            return "length"
        return "tool_use" if self.calls else "stop"


def _key(event: dict[str, Any]) -> Any:
    """What the events of one item have in common: its position, or its id where a server counts none.

    Some servers give an item another id in each event.
    """
    position = event.get("output_index")
    return position if position is not None else event.get("item_id") or as_dict(event.get("item")).get("id")


def _texts(parts: Any, between: str = "\n\n") -> str:
    return between.join(text for part in as_list(parts) if (text := as_str(as_dict(part).get("text"))))


def _without(value: dict[str, Any], left_out: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != left_out}


def _error(error: dict[str, Any]) -> ProviderError:
    code, message = error_words(error)
    if "policy" in code:
        return ProviderError(f"The server refused ({code}): {message}", "filter")
    # An event without a code has only its own type.
    return http_error(None, message, code="" if code == "error" else code)
