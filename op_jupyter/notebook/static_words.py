"""The signs and words that HTML, plain text and the view share: how a call stands, how a run ended, what tells most.

Text only, safe to look at; how it is laid out is the business of `static_html` and `static_text`.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any, assert_never, cast

from op_jupyter.messages import ImageContent, InputBlock, TextContent, ToolCall
from op_jupyter.record import AssistantStep, CallStep, RetryStep, Run, UserStep

LONGEST = 20_000
"""So many characters of one text are shown; the notebook's data has the rest."""

# C0 but newline and tab, C1, what turns the direction of text, and what nobody sees: they would act on a terminal, or
# mislead a reader.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_UNSEEN = (0xAD, 0x115F, 0x1160, 0x180E, 0x200B, 0x2028, 0x2029, *range(0x2060, 0x2065), 0x3164, 0xFEFF, 0xFFA0)
_CONTROLS = (
    {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)}
    | {code: f"\\u{code:04x}" for code in (*_TURNING, *_UNSEEN)}
    | {code: f"\\U{code:08x}" for code in range(0xE0000, 0xE0080)}
)
STATES = {
    "running": ("●", "running"),
    "waiting": ("?", "waits for approval"),
    "ok": ("✓", "done"),
    "error": ("✗", "failed"),
    "skipped": ("↷", "skipped"),
    "not_run": ("–", "not run"),
    "interrupted": ("■", "interrupted"),
}
"""How a call stands: a mark, and a word for it."""
ENDED = {
    "stop": ("✓", "Done"),
    "tool_use": ("✓", "Done"),
    "length": ("–", "Cut off"),
    "max_iterations": ("–", "Ended at its cap"),
    "aborted": ("■", "Stopped"),
    "error": ("✗", "Failed"),
}
"""How a run ended."""
NOT_ENDED = ("–", "Not ended")
FOLDED = ("ok", "skipped", "not_run")
"""What has come to its end as it should takes a line."""
SPEAKERS = {"user": "You", "steering": "You, while it ran", "follow_up": "Follow-up"}
CUT_OFF = "The reply was cut off: it reached the length limit."


def visible(text: str) -> str:
    """`text` as a person may safely look at it: control characters are written as in Python."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def shown(text: str) -> str:
    """`visible`, and not too long."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters are in the notebook's data"
    return visible(text)


def columns(text: str) -> int:
    """How many columns of a terminal a line takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def one_line(text: str, most: int) -> str:
    """The beginning of `text` in one line of `most` columns."""
    joined = " ".join(visible(text[: 10 * most]).split())
    if columns(joined) <= most and len(text) <= 10 * most:
        return joined
    joined = joined[:most]
    while columns(joined) > most - 1:
        joined = joined[:-1]
    return f"{joined}…"


def counted(number: int, noun: str) -> str:
    """`3 rounds`, `1 round`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def byte_size(number: int) -> str:
    """`3.1 MB`, as a person says it."""
    if number < 1000:
        return counted(number, "byte")
    return f"{number / 1000:,.0f} kB" if number < 1_000_000 else f"{number / 1_000_000:,.1f} MB"


def head(run: Run) -> tuple[str, str, str]:
    """The mark, how the run ended, and how far it got."""
    mark, outcome = ENDED[run.stop_reason] if run.stop_reason else NOT_ENDED
    return mark, outcome, counted(run.rounds, "round")


def notes(run: Run) -> list[str]:
    """What has to be said of how the run ended, beyond its messages."""
    said: list[str] = []
    if run.stop_reason is None:
        said.append("The run had not ended when this was saved.")
    if run.hit_cap:
        said.append(f"Ended after {counted(run.rounds, 'round')}, the most that this run may take.")
    if run.stop_reason == "aborted":
        said.append("Stopped.")
    if run.error:
        said.append(f"Failed: {run.error}")
    said += [f"Queued: {content_text(message.content)}" for message in run.queued]
    said += [f"Not delivered: {content_text(message.content)}" for message in run.undelivered]
    return said


def answer_of(run: Run) -> AssistantStep | None:
    """The reply that nothing follows, where it says something."""
    for step in reversed(run.steps):
        if not isinstance(step, RetryStep):
            return step if isinstance(step, AssistantStep) and step.message.text.strip() else None
    return None


def speaker(step: UserStep) -> str:
    """Who speaks, and when what was typed while the run was on got into it."""
    said = SPEAKERS[step.message.source]
    return f"{said}, before round {step.round}" if step.message.source == "steering" else said


def signature(call: ToolCall) -> str:
    """The call as Python would write it, whole."""
    if call.raw_arguments is not None and not call.arguments:
        return f"{call.name}({call.raw_arguments})"
    return f"{call.name}({', '.join(f'{name}={as_json(value)}' for name, value in call.arguments.items())})"


def brief_signature(call: ToolCall, most: int) -> str:
    """The call in one line of `most` columns: long arguments lose their ends before the last ones are lost."""
    whole = signature(call)
    if len(whole) > most and call.arguments:
        each = max(most // (len(call.arguments) + 1), 12)
        cut = [f"{name}={_cut(as_json(value), each)}" for name, value in call.arguments.items()]
        whole = f"{call.name}({', '.join(cut)})"
    return one_line(whole, most)


def _cut(value: str, most: int) -> str:
    """A JSON value, closed where it is cut."""
    if len(value) <= most:
        return value
    return f"{value[: most - 2]}…{value[-1]}" if value[-1] in '"]}' else f"{value[: most - 1]}…"


def result_line(step: CallStep, most: int) -> str:
    """What tells most of what came of a call, in one line of `most` columns."""
    if step.result is None:
        return ""
    blocks = [content_text([block]).strip() for block in step.result.content]
    text = "\n".join(blocks)
    if rows := flat_rows(text):
        return one_line(f"{counted(len(rows), 'row')}: {', '.join(rows[0])}", most)
    if text == "(no output)":
        printed = "".join(joined(item["text"]) for item in step.output if item["output_type"] == "stream")
        text = next((line for line in reversed(printed[-1000:].splitlines()) if line.strip()), text)
        return one_line(text, most)
    return one_line(" ".join(map(_beginning, blocks)), most)


def _beginning(text: str) -> str:
    """The first line, which says what a table is; of JSON all."""
    first, _, rest = text.partition("\n")
    return text if text[:1] in ("[", "{") else f"{first} …" if rest else first


def content_text(content: list[InputBlock]) -> str:
    """The text of `content`, with a word for each image."""
    parts: list[str] = []
    for block in content:
        match block:
            case TextContent():
                parts.append(block.text)
            case ImageContent():
                parts.append(image_words(block.mime_type, len(block.data)))
            case _:
                assert_never(block)
    return "\n".join(parts)


def image_words(mime_type: str, number: int) -> str:
    """What stands for an image that is not shown."""
    return f"[image: {mime_type}, {byte_size(number)}]"


def as_json(value: Any, indent: int | None = None) -> str:
    """`value` as JSON that a person can read."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def data_in(text: str) -> Any:
    """The JSON object or list that `text` is; `None` where it is none, or too long to be looked at."""
    if len(text) > LONGEST or text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def flat_rows(text: str) -> list[dict[str, Any]] | None:
    """The rows, where `text` is a JSON list of objects with the same names and plain values."""
    data = data_in(text) if text.lstrip()[:1] == "[" else None
    if not isinstance(data, list) or not data or not all(isinstance(row, dict) for row in data):
        return None
    rows = cast("list[dict[str, Any]]", data)
    is_flat = all(
        row.keys() == rows[0].keys() and not any(isinstance(cell, dict | list) for cell in row.values()) for row in rows
    )
    return rows if is_flat and rows[0] else None


def joined(text: Any) -> str:
    """Text as a notebook holds it, in lines or whole."""
    return "".join(cast("list[str]", text)) if isinstance(text, list) else str(text)
