"""A run as plain text, a line for each call: for terminals, and for whoever reads the notebook file."""

from __future__ import annotations

import textwrap
from typing import assert_never

from op_jupyter.messages import AssistantMessage
from op_jupyter.notebook.fitting import left_out_between
from op_jupyter.notebook.static_words import (
    CUT_OFF,
    STATES,
    answer_of,
    brief_signature,
    columns,
    content_text,
    head,
    notes,
    result_line,
    shown,
    speaker,
)
from op_jupyter.record import AssistantStep, CallStep, RetryStep, Run, UserStep

WIDTH = 100
_NARROWEST = 30
_GUTTER = 4
_NESTED = 6


def to_text(run: Run, width: int = WIDTH) -> str:
    """The run, `width` columns wide: messages and answers in full, each call in one line."""
    return "\n".join(_lines(run, width, is_root=True))


def _lines(run: Run, width: int, is_root: bool = False) -> list[str]:
    width = max(width, _NARROWEST)
    mark, outcome, rounds = head(run)
    lines = [f"{mark} {outcome} · {rounds}"]
    answer = answer_of(run)
    previous = numbered = 0
    for step in run.steps:
        if left_out := left_out_between(run, previous, step.round):
            lines += _hanging("…", left_out, width)
        previous = step.round
        number = str(step.round) if step.round != numbered else ""
        match step:
            case UserStep():
                if step.message.source == "user":
                    lines += _hanging("you", content_text(step.message.content), width)
                    continue
                said = _hanging(number, f"{speaker(step)}: {content_text(step.message.content)}", width)
            case AssistantStep():
                text = _said(step.message)
                if is_root and step is answer:
                    lines += ["", *_wrapped(text, width)]
                    continue
                said = _hanging(number, text, width) if text else []
            case CallStep():
                said = [f"{number:<{_GUTTER}}{_call(step, width - _GUTTER)}"]
                for child in run.children.get(step.call.id, []):
                    said += [" " * _NESTED + line for line in _lines(child, width - _NESTED)]
            case RetryStep():
                continue  # not at every replay; the metadata has it
            case _:
                assert_never(step)
        lines += said
        if said:
            numbered = step.round
    left_out = left_out_between(run, previous, run.rounds)
    ending = [line for note in [*filter(None, [left_out]), *notes(run)] for line in _hanging("", note, width)]
    return [*lines, "", *ending] if ending and answer and is_root else [*lines, *ending]


def _said(message: AssistantMessage) -> str:
    text = message.text.strip()
    return f"{text}\n{CUT_OFF}".strip() if message.stop_reason == "length" else text


def _call(step: CallStep, width: int) -> str:
    mark, _ = STATES[step.state]
    result = result_line(step, width * 4 // 10)
    called = brief_signature(step.call, width - columns(result) - 4)
    return f"{mark} {called}  {result_line(step, width - columns(called) - 4)}".rstrip()


def _hanging(mark: str, text: str, width: int) -> list[str]:
    first, *rest = _wrapped(text, width - _GUTTER) or [""]
    return [f"{mark:<{_GUTTER}}{first}", *(" " * _GUTTER + line for line in rest)]


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of `text`, of which those that are too long are broken between words."""
    lines: list[str] = []
    for line in shown(text).split("\n"):
        if len(line) <= width:
            lines.append(line)
        else:
            indent = line[: len(line) - len(line.lstrip())][: width // 2]
            lines += textwrap.wrap(
                line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            ) or [""]
    return lines
