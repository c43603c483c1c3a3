"""A run as plain text: for terminals, and for whoever reads the notebook file.

The words that all static views share stand here too; HTML is made in `static_html`.
"""

from __future__ import annotations

import json
from typing import assert_never

from op_jupyter.messages import ImageContent, InputBlock, TextContent, ToolCall
from op_jupyter.record import AssistantStep, CallStep, RetryStep, Run, UserStep

WIDTH = 100
LONGEST = 20_000
"""So many characters of one text are shown; the notebook's data has the rest."""

# C0 but newline and tab, C1, and what turns the direction of text: they would act on a terminal, or mislead a reader.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)} | {
    code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
SIGNS = {
    "ok": "✓",
    "error": "✗",
    "skipped": "↷",
    "not_run": "–",
    "interrupted": "■",
    "running": "●",
    "waiting": "?",
}


def to_text(run: Run) -> str:
    """The run: each message and answer in full, each call in one line."""
    return shown("\n".join(_lines(run)))


def shown(text: str) -> str:
    """`text` as a person may safely look at it: not too long, and control characters as they are written in Python."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters are in the notebook's data"
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def _lines(run: Run) -> list[str]:
    lines: list[str] = []
    last_round = 0
    for step in run.steps:
        match step:
            case UserStep():
                lines += _hanging("you", content_text(step.message.content))
            case AssistantStep():
                text = step.message.text.strip()
                mark = str(step.round) if step.round != last_round else ""
                if text:
                    lines += _hanging(mark, text)
                    last_round = step.round
            case CallStep():
                mark = str(step.round) if step.round != last_round else ""
                last_round = step.round
                lines.append(f"{mark:<4}{SIGNS[step.state]} {one_line(signature(step.call))}  {result_line(step)}")
                for child in run.children.get(step.call.id, []):
                    lines += [f"      {line}" for line in _lines(child)]
            case RetryStep():
                pass  # not at every replay; the metadata has it
            case _:
                assert_never(step)
    lines += [f"    {note}" for note in notes(run)]
    return lines


def _hanging(mark: str, text: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    return [f"{mark:<4}{first}", *(f"    {line}" for line in rest)]


def signature(call: ToolCall) -> str:
    """The call as Python would write it, whole."""
    if call.raw_arguments is not None and not call.arguments:
        return f"{call.name}({call.raw_arguments})"
    arguments = ", ".join(f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in call.arguments.items())
    return f"{call.name}({arguments})"


def result_line(step: CallStep) -> str:
    """What came of a call, in one line."""
    return one_line(content_text(step.result.content)) if step.result else ""


def content_text(content: list[InputBlock]) -> str:
    """The text of `content`, with a word for each image."""
    parts: list[str] = []
    for block in content:
        match block:
            case TextContent():
                parts.append(block.text)
            case ImageContent():
                parts.append(f"[image: {block.mime_type}]")
            case _:
                assert_never(block)
    return "\n".join(parts)


def one_line(text: str) -> str:
    """`text` in one line of `WIDTH` characters at the most."""
    joined = " ".join(text.split())
    return joined if len(joined) <= WIDTH else f"{joined[: WIDTH - 1]}…"


def notes(run: Run) -> list[str]:
    """What has to be said of how the run ended, beyond its messages."""
    said: list[str] = []
    if run.stop_reason is None:
        said.append("The run had not ended when this was saved.")
    if run.hit_cap:
        said.append(
            f"Stopped after {run.rounds} {'round' if run.rounds == 1 else 'rounds'}, the most that was allowed."
        )
    if run.stop_reason == "aborted":
        said.append("Stopped by you.")
    if run.stop_reason == "length":
        said.append("The reply reached its length limit.")
    if run.error:
        said.append(f"Failed: {run.error}")
    said += [f"Not delivered: {content_text(message.content)}" for message in run.undelivered]
    return said
