"""A run as static HTML, complete without scripts: for GitHub, nbviewer, an export, an e-mail.

Inline styles, `<details>` and data images only, since viewers strip the rest; some strip the styles too, so that the
elements alone say what is what. What is said is escaped, or Markdown that went through a sanitiser.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from typing import Any, assert_never

from op_jupyter.messages import (
    Block,
    ImageContent,
    InputBlock,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from op_jupyter.notebook.fitting import left_out_between
from op_jupyter.notebook.static_markdown import markdown
from op_jupyter.notebook.static_tables import table_in_html, table_of
from op_jupyter.notebook.static_words import (
    CUT_OFF,
    FOLDED,
    STATES,
    answer_of,
    as_json,
    brief_signature,
    data_in,
    flat_rows,
    head,
    image_words,
    joined,
    notes,
    one_line,
    result_line,
    shown,
    signature,
    speaker,
)
from op_jupyter.record import AssistantStep, CallStep, RetryStep, Run, UserStep

_QUIET = "opacity:.75"
_ROOT = "line-height:1.5;overflow-wrap:anywhere"
_QUOTE = "border-left:3px solid rgba(128,128,128,.5);margin:4px 0 8px;padding:0 0 0 10px"
_BODY = "border-left:1px solid rgba(128,128,128,.5);margin:4px 0 8px 4px;padding:0 0 0 12px"
_PRE = "white-space:pre-wrap;margin:2px 0 6px;max-height:24em;overflow:auto;font-family:ui-monospace,monospace"
_RULE = "border:0;border-top:1px solid rgba(128,128,128,.5);margin:10px 0"
_ANSWER = "font-size:110%"
_GOOD, _BAD = "color:#188a42", "color:#e0443e"
_COLOURS = {"ok": _GOOD, "error": _BAD, "interrupted": _BAD}
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*=*")
_LINE = 80


def to_html(run: Run) -> str:
    """The run: how it ended, what was asked, each round's calls with arguments and results, and the answer."""
    return f'<div style="{_ROOT}">{_run(run, answer_style=_ANSWER)}</div>'


def _run(run: Run, answer_style: str = "") -> str:
    mark, outcome, rounds = head(run)
    parts = [f"<p><strong>{mark} {outcome}</strong> · {rounds}</p>"]
    answer = answer_of(run)
    answered: list[str] = []
    rows: list[tuple[int, str]] = []
    called = {(step.round, step.call.id) for step in run.steps if isinstance(step, CallStep)}
    previous = 0
    for step in run.steps:
        if left_out := left_out_between(run, previous, step.round):
            rows.append((0, _note(left_out)))
        previous = step.round
        match step:
            case UserStep():
                said = _said(speaker(step), step.message)
                if step.message.source == "user" and not rows:
                    parts.append(said)
                else:
                    rows.append((step.round, said))
            case AssistantStep():
                blocks = [block for block in step.message.content if not _is_called(block, step.round, called)]
                cut = next((n for n, block in enumerate(blocks) if isinstance(block, TextContent) and block.text), 0)
                before, after = (blocks[:cut], blocks[cut:]) if step is answer else (blocks, [])
                rows.append((step.round, "".join(map(_block, before))))
                answered = [*map(_block, after)]
                ending = answered if after else None
                if step.message.stop_reason == "length":
                    if ending is None:
                        rows.append((step.round, _note(CUT_OFF)))
                    else:
                        ending.append(_note(CUT_OFF))
            case CallStep():
                rows.append((step.round, _call(step, run.children.get(step.call.id, []))))
            case RetryStep():
                pass  # not at every replay; the metadata has it
            case _:
                assert_never(step)
    parts += _list(rows)
    if answered:
        parts.append(f'<hr style="{_RULE}"><div style="{answer_style}">{"".join(answered)}</div>')
    left_out = left_out_between(run, previous, run.rounds)
    return "".join([*parts, *map(_note, [*filter(None, [left_out]), *notes(run)])])


def _list(rows: list[tuple[int, str]]) -> Iterator[str]:
    """The rounds, each with its number in front."""
    rounds: dict[int, list[str]] = {}
    for number, row in rows:
        if row:
            rounds.setdefault(number, []).append(row)
    if not rounds:
        return
    yield '<ol style="list-style:decimal;margin:4px 0;padding-left:2em">'
    for number, items in rounds.items():
        # What was left out stands between two rounds.
        yield f'<li value="{number}">' if number else '<li style="list-style:none">'
        yield "".join(items)
        yield "</li>"
    yield "</ol>"


def _is_called(block: Block, number: int, called: set[tuple[int, str]]) -> bool:
    """Whether a call has a step of its own, with its result."""
    return isinstance(block, ToolCall) and (number, block.id) in called


def _said(who: str, message: UserMessage) -> str:
    content = "".join(
        _escaped(block.text).replace("\n", "<br>") if isinstance(block, TextContent) else _image(block)
        for block in message.content
    )
    return f'<blockquote style="{_QUOTE}"><strong>{who}</strong><br>{content}</blockquote>'


def _block(block: Block) -> str:
    match block:
        case TextContent():
            return markdown(block.text) if block.text.strip() else ""
        case ThinkingContent():
            if block.redacted:
                return _note("The model's reasoning was sent encrypted.")
            return _folded("Reasoning", markdown(block.thinking)) if block.thinking.strip() else ""
        case ImageContent():
            return _image(block)
        case ServerContent():
            return _folded(f"<code>{_brief(block.name)}</code>, run by the provider", _data(block.data))
        case ToolCall():
            mark, word = STATES["not_run"]
            return f"<p>{mark} {word} <code>{_brief(signature(block))}</code></p>"
        case _:
            assert_never(block)


def _call(step: CallStep, children: list[Run]) -> str:
    mark, word = STATES[step.state]
    colour = f' style="{_COLOURS[step.state]}"' if step.state in _COLOURS else ""
    # The mark says it to everybody where all went well.
    state = "" if step.state == "ok" else f" {word}"
    brief = html.escape(brief_signature(step.call, _LINE))
    summary = f'<strong{colour} title="{word}">{mark}</strong>{state} <code>{brief}</code>'
    if line := result_line(step, _LINE):
        summary += f' <span style="{_QUIET};unicode-bidi:isolate">&ensp;{html.escape(line)}</span>'
    parts: list[str] = []
    if "…" in brief:
        parts += [_label("Arguments"), _data(step.call.raw_arguments or step.call.arguments)]
    if step.output:
        parts += [_label("Output"), *map(_output, step.output)]
    parts += [f"<div>{_run(child)}</div>" for child in children]
    if step.result:
        parts += [_label("Result"), *map(_result, step.result.content)]
    return _folded(summary, "".join(parts), is_open=step.state not in FOLDED)


def _output(output: dict[str, Any]) -> str:
    match output["output_type"]:
        case "stream":
            return _pre(joined(output["text"]))
        case "error":
            return _pre(f"{output['ename']}: {output['evalue']}")
        case _:
            data: dict[str, Any] = output["data"]
    for mime_type in _IMAGES:
        if mime_type in data:
            return _img(mime_type, joined(data[mime_type]))
    return table_in_html(joined(data.get("text/html", ""))) or _pre(joined(data.get("text/plain", "(no text)")))


def _result(block: InputBlock) -> str:
    if isinstance(block, ImageContent):
        return _image(block)
    if rows := flat_rows(block.text):
        return table_of([*rows[0]], [[*row.values()] for row in rows])
    data = data_in(block.text)
    return _pre(block.text) if data is None else _data(data)


def _data(data: Any) -> str:
    return _pre(data if isinstance(data, str) else as_json(data, indent=2))


def _image(block: ImageContent) -> str:
    if block.mime_type not in _IMAGES:
        return f"<p>{_brief(image_words(block.mime_type, len(block.data)))}</p>"
    return _img(block.mime_type, base64.b64encode(block.data).decode())


def _img(mime_type: str, data: str) -> str:
    source = data.replace("\n", "")
    if not _BASE64.fullmatch(source):
        return _note("An image that cannot be read.")
    return f'<img alt="image" style="display:block;max-width:100%" src="data:{mime_type};base64,{source}">'


def _folded(summary: str, body: str, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f'<details{opened}><summary>{summary}</summary><blockquote style="{_BODY}">{body}</blockquote></details>'


def _label(name: str) -> str:
    return f'<strong style="font-size:85%;{_QUIET}">{name}</strong>'


def _note(text: str) -> str:
    return f"<p><em>{_escaped(text)}</em></p>"


def _pre(text: str) -> str:
    return f'<pre style="{_PRE}">{_escaped(text)}</pre>'


def _brief(text: str) -> str:
    return html.escape(one_line(text, _LINE))


def _escaped(text: str) -> str:
    return html.escape(shown(text))
