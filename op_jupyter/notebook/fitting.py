"""How much of a run is kept in the notebook's file: all, or where that is too much, less, and what was cut is said.

Pure functions from a record to a shorter one; the record in the kernel stays whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    InputBlock,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.notebook.static_words import LONGEST, as_json, byte_size, joined
from op_jupyter.record import AssistantStep, CallStep, RetryStep, Run, Step, UserStep

Item = TypeVar("Item")

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TEXTS = ("text/plain", "text/html")
_MOST_ITEMS = 100
"""So many outputs of a call, or messages that were not delivered, are kept of a run that is too large."""
_MOST_NAME = 200
_SHORT = 400
"""Texts of so many characters stay whole as long as rounds could go instead."""

# How many bytes of a notebook's file the bytes of a record make, since it holds JSON, HTML and text; as measured.
_PER_STRUCTURE, _PER_IMAGE, _PER_TEXT, _PER_LONG_TEXT = 1.65, 2.0, 3.3, 1.0

# The rounds that are kept of a nested run and of the run itself: what is tried in turn.
_ROUNDS = [(None, None), *((n, None) for n in (40, 30, 20, 10, 4, 2)), *((2, n) for n in (40, 20, 10, 4, 2))]


@dataclass(kw_only=True, repr=False)
class Shortened(Run):
    """A run that is not whole any more: `left_out` has the first and the last of rounds that are gone."""

    left_out: list[tuple[int, int]] = field(default_factory=list)


def fitted(run: Run, most: int) -> Run:
    """`run` itself where that takes about `most` bytes of a notebook's file at the most; else a shorter one that does.

    First the longest texts lose their middles, then the largest images go, the earlier one of two that are alike, and
    at last the middle rounds: of nested runs, then of the run. Of what is still too large the question and the answer
    are left. Images have at least half of the room, where they need it.
    """
    if _PER_TEXT * json_size(run) <= most:
        return run
    longest = max((child.rounds for child in _nested(run)), default=0)
    for nested, rounds in _ROUNDS:
        if nested is not None and nested >= longest and (rounds is None or rounds >= run.rounds):
            continue
        bare = _Cutter(nested, rounds)
        room = most - _PER_STRUCTURE * json_size(bare.run(run))
        texts, images = sum(map(_cost, bare.texts)), _PER_IMAGE * sum(bare.images)
        if rounds is nested is None and texts + images <= room and not bare.has_dropped:
            return run
        text = _waterline(bare.texts, room - min(images, room / 2))
        if text >= min(_SHORT, max(bare.texts, default=0)) and room > 0:
            left = room - sum(_cost(min(length, text + len(_gone(length)))) for length in bare.texts)
            return _Cutter(nested, rounds, text=text, keep=_kept(bare.images, left / _PER_IMAGE)).run(run)
    return _ends(run)


def _nested(run: Run) -> Iterator[Run]:
    for children in run.children.values():
        for child in children:
            yield child
            yield from _nested(child)


def _cost(length: int) -> float:
    return _PER_TEXT * min(length, LONGEST) + _PER_LONG_TEXT * max(length - LONGEST, 0)


def _waterline(lengths: list[int], room: float) -> int:
    """The length to which texts are cut so that all of them take no more than `room`."""
    left, count = room / _PER_TEXT, len(lengths)
    for length in sorted(lengths):
        if length * count >= left:
            return max(int(left / count) - len(_gone(length)), 0)
        left -= length
        count -= 1
    return max(lengths, default=0)


def json_size(run: Run) -> int:
    """How many bytes of JSON the record takes."""
    from pydantic_core import to_json

    return len(to_json(run, indent=1, exclude={"history"}, bytes_mode="base64"))


def left_out_between(run: Run, previous: int, current: int) -> str:
    """The rounds that were left out after a step of round `previous` and before one of round `current`, in words."""
    ranges = run.left_out if isinstance(run, Shortened) else []
    return " ".join(_rounds_words(*ends) for ends in ranges if previous < ends[1] <= current)


def _rounds_words(first: int, last: int) -> str:
    rounds = f"Round {first} was" if first == last else f"Rounds {first} to {last} were"
    return f"{rounds} left out of the notebook file."


def _kept(sizes: list[int], room: float) -> set[int]:
    """Which of these images fit: smaller before larger ones, and later before earlier ones."""
    kept: set[int] = set()
    for index in sorted(range(len(sizes)), key=lambda index: (sizes[index], -index)):
        room -= sizes[index]
        if room < 0:
            break
        kept.add(index)
    return kept


def _ends(run: Run) -> Run:
    """The question and the answer."""
    asked = [replace(step, message=_text_only(step.message)) for step in run.steps[:1] if isinstance(step, UserStep)]
    answers = [
        replace(step, message=replace(step.message, content=[TextContent(step.message.text)]))
        for step in run.steps[-1:]
        if isinstance(step, AssistantStep)
    ]
    undelivered = [_text_only(message) for message in run.undelivered]
    queued = [_text_only(message) for message in run.queued]
    ends = replace(run, steps=[*asked, *answers], children={}, undelivered=undelivered, queued=queued)
    return _without_rounds(_Cutter(text=_SHORT).run(replace(ends, rounds=1)), (1, run.rounds), run.rounds)


def _text_only(message: UserMessage) -> UserMessage:
    return UserMessage(message.text, message.source)


def _without_rounds(run: Run, left_out: tuple[int, int], rounds: int) -> Shortened:
    known = {each.name: getattr(run, each.name) for each in fields(Run)}
    return Shortened(**{**known, "rounds": rounds, "left_out": [left_out]})


class _Cutter:
    """Makes a copy of a run with less in it: by default without texts and images.

    `texts` and `images` have the size of each that was met. Texts keep `text` characters, and images stay whose place
    `keep` has.
    """

    def __init__(
        self,
        nested: int | None = None,
        rounds: int | None = None,
        *,
        text: int = 0,
        keep: Collection[int] = (),
    ) -> None:
        self._nested = nested
        self._rounds = rounds
        self._most = text
        self._keep = keep
        self.texts: list[int] = []
        self.images: list[int] = []
        self.has_dropped = False

    def run(self, run: Run, is_nested: bool = False) -> Run:
        """The copy, of a nested run or of the root."""
        most = self._nested if is_nested else self._rounds
        if most is None or run.rounds <= most:
            return self._copy(run, run.steps, is_nested)
        # The end of a run says as much as its beginning, and more than its middle.
        first, last = most // 2 + 1, run.rounds - (most - most // 2)
        steps = [step for step in run.steps if not first <= step.round <= last]
        return _without_rounds(self._copy(run, steps, is_nested), (first, last), run.rounds)

    def _copy(self, run: Run, steps: list[Step], is_nested: bool) -> Run:
        called = {step.call.id for step in steps if isinstance(step, CallStep)}
        return Run(
            run_id=run.run_id,
            model=_name(run.model),
            tools=[_name(name) for name in self._last(run.tools)],
            steps=[self._step(step) for step in steps],
            rounds=run.rounds,
            stop_reason=run.stop_reason,
            error=None if run.error is None else self._text(run.error),
            error_kind=run.error_kind,
            queued=[self._message(message) for message in self._last(run.queued)],
            undelivered=[self._message(message) for message in self._last(run.undelivered)],
            children={
                call_id: [self.run(child, is_nested=True) for child in children]
                for call_id, children in run.children.items()
                if call_id in called
            },
            started=run.started,
            ended=run.ended,
        )

    def _last(self, items: list[Item]) -> list[Item]:
        self.has_dropped |= len(items) > _MOST_ITEMS
        return items[-_MOST_ITEMS:]

    def _step(self, step: Step) -> Step:
        match step:
            case UserStep():
                return replace(step, message=self._message(step.message))
            case AssistantStep():
                return replace(step, message=self._reply(step.message))
            case CallStep():
                result = self._result(step.result) if step.result else None
                return replace(step, call=self._call(step.call), output=list(self._outputs(step.output)), result=result)
            case RetryStep():
                return replace(step, reason=self._text(step.reason))

    def _message(self, message: UserMessage) -> UserMessage:
        return UserMessage([self._input(block) for block in message.content], message.source)

    def _reply(self, message: AssistantMessage) -> AssistantMessage:
        error = None if message.error_message is None else self._text(message.error_message)
        return replace(
            message, content=[self._block(block) for block in message.content], error_message=error, provider_data=None
        )

    def _result(self, result: ToolResultMessage) -> ToolResultMessage:
        content = [self._input(block) for block in result.content]
        details = self._data(result.details)
        return ToolResultMessage(
            result.tool_call_id,
            _name(result.tool_name),
            content,
            result.is_error,
            details if isinstance(details, dict) else None,
        )

    def _input(self, block: InputBlock) -> InputBlock:
        return TextContent(self._text(block.text)) if isinstance(block, TextContent) else self._image(block)

    def _image(self, block: ImageContent) -> InputBlock:
        is_kept = self._keeps(len(block.data) * 4 // 3)
        return replace(block, provider_data=None) if is_kept else TextContent(_gone_image(len(block.data)))

    def _block(self, block: Block) -> Block:
        match block:
            case TextContent() | ImageContent():
                return self._input(block)
            case ThinkingContent():
                return ThinkingContent(self._text(block.thinking), block.redacted)
            case ToolCall():
                return self._call(block)
            case ServerContent():
                return ServerContent(_name(block.name), self._data(block.data))

    def _call(self, call: ToolCall) -> ToolCall:
        arguments = self._data(call.arguments)
        raw = call.raw_arguments if isinstance(arguments, dict) else arguments
        return ToolCall(
            call.id,
            _name(call.name),
            arguments if isinstance(arguments, dict) else {},
            None if raw is None else self._text(raw),
        )

    def _outputs(self, outputs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for index, output in enumerate(outputs):
            if _MOST_ITEMS // 2 <= index < len(outputs) - _MOST_ITEMS // 2:
                self.has_dropped = True
                if index == _MOST_ITEMS // 2:
                    many = f"[… {len(outputs) - _MOST_ITEMS:,} outputs were left out of the notebook file …]\n"
                    yield {"output_type": "stream", "name": "stdout", "text": many}
            elif output["output_type"] == "stream":
                yield {**output, "text": self._text(joined(output["text"]))}
            elif output["output_type"] == "error":
                yield {"output_type": "error", "ename": _name(output["ename"]), "evalue": self._text(output["evalue"])}
            else:
                yield {"output_type": output["output_type"], "data": self._displayed(output["data"]), "metadata": {}}

    def _displayed(self, data: dict[str, Any]) -> dict[str, Any]:
        """Only what can be drawn. HTML that is too long is of no use in part."""
        kept = {kind: joined(data[kind]) for kind in _TEXTS if kind in data}
        if "text/html" in kept and self._text(kept["text/html"]) != kept["text/html"]:
            del kept["text/html"]
        if "text/plain" in kept:
            kept["text/plain"] = self._text(kept["text/plain"])
        for kind in _IMAGES:
            if kind in data:
                base64 = joined(data[kind])
                if self._keeps(len(base64)):
                    kept[kind] = base64
                else:
                    kept["text/plain"] = _gone_image(len(base64) * 3 // 4)
        return kept

    def _keeps(self, size: int) -> bool:
        self.images.append(size)
        return len(self.images) - 1 in self._keep

    def _data(self, data: Any) -> Any:
        """JSON whose long texts are cut; the beginning and the end of its text where that is not enough."""
        if len(as_json(data)) <= _SHORT:
            return data
        if isinstance(data, str):
            return self._text(data)
        if isinstance(data, dict):
            data = {name: self._text(value) if isinstance(value, str) else value for name, value in data.items()}
        text = as_json(data)
        return data if len(text) <= 2 * max(self._most, _SHORT) else self._text(text)

    def _text(self, text: str) -> str:
        self.texts.append(len(text.encode(errors="replace")))
        most = self._most
        if len(text) <= most:
            return text
        end = len(text) - most // 2
        return f"{text[: most // 2]}{_gone(end - most // 2)}{text[end:]}" if most else ""


def _gone(number: int) -> str:
    return f"\n[… {number:,} characters were left out of the notebook file …]\n"


def _name(name: str) -> str:
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 1]}…"


def _gone_image(number: int) -> str:
    return f"[an image of {byte_size(number)} was left out of the notebook file]"
