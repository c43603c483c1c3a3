"""A run as static HTML, complete without scripts: for GitHub, nbviewer, an export, an e-mail.

Inline styles, `<details>` and data images only, since viewers strip the rest; what is said is escaped or sanitised.
"""

from __future__ import annotations

import base64
import functools
import html
import json
from collections.abc import Callable
from typing import Any, assert_never

from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    InputBlock,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from op_jupyter.notebook.static_text import SIGNS, notes, one_line, result_line, shown, signature
from op_jupyter.record import AssistantStep, CallStep, RetryStep, Run, UserStep

_BOX = "border-left:3px solid #8886;padding:0 0 0 10px;margin:6px 0"
_MUTED = "opacity:.7"
_PRE = (
    "white-space:pre-wrap;margin:4px 0;max-height:24em;overflow:auto;font-family:ui-monospace,monospace;font-size:90%"
)
_SPEAKERS = {"user": "You", "steering": "You, while it ran", "follow_up": "Follow-up"}
_COLOURS = {"ok": "#188038", "error": "#c5221f", "interrupted": "#c5221f"}
_STATES = {
    "ok": "done",
    "error": "failed",
    "skipped": "skipped",
    "not_run": "not run",
    "interrupted": "interrupted",
    "running": "running",
    "waiting": "waiting for approval",
}


def to_html(run: Run) -> str:
    """The run: what was asked, each round's calls with arguments and results, and the answer."""
    return f'<div style="line-height:1.45;overflow-wrap:break-word">{_run(run)}</div>'


def _run(run: Run) -> str:
    parts: list[str] = []
    last_round = 0
    for step in run.steps:
        if step.round != last_round and not isinstance(step, UserStep):
            parts.append(f'<div style="{_MUTED};font-size:85%;margin:8px 0 2px">Round {step.round}</div>')
            last_round = step.round
        match step:
            case UserStep():
                said = f"<b>{_SPEAKERS[step.message.source]}</b><br>{_prose(step.message.content)}"
                parts.append(f'<div style="{_BOX};white-space:pre-wrap">{said}</div>')
            case AssistantStep():
                parts.append(_reply(step.message))
            case CallStep():
                parts.append(_call(step, run.children.get(step.call.id, [])))
            case RetryStep():
                pass  # not at every replay; the metadata has it
            case _:
                assert_never(step)
    return "".join([*parts, *map(_note, notes(run))])


def _reply(message: AssistantMessage) -> str:
    parts: list[str] = []
    for block in message.content:
        match block:
            case TextContent():
                parts.append(markdown(block.text))
            case ThinkingContent():
                if block.thinking.strip():
                    parts.append(_folded("Reasoning", f'<div style="{_MUTED}">{markdown(block.thinking)}</div>'))
            case ImageContent():
                parts.append(_image(block))
            case ServerContent():
                parts.append(_folded(_code(block.name), _pre(json.dumps(block.data, indent=2, ensure_ascii=False))))
            case ToolCall():
                pass  # shown by its own step, with its result
            case _:
                assert_never(block)
    return "".join(parts)


def _call(step: CallStep, children: list[Run]) -> str:
    sign = (
        f'<b style="color:{_COLOURS.get(step.state, "inherit")}" title="{_STATES[step.state]}">{SIGNS[step.state]}</b>'
    )
    result = f'<span style="{_MUTED}">{_escaped(result_line(step))}</span>'
    summary = f"{sign} {_code(one_line(signature(step.call)))} {result}"
    arguments = step.call.raw_arguments or json.dumps(step.call.arguments, indent=2, ensure_ascii=False)
    parts = [f"<b>Arguments</b>{_pre(arguments)}"]
    if step.output:
        parts.append(f"<b>Output</b>{''.join(map(_output, step.output))}")
    parts += [f'<div style="{_BOX}">{_run(child)}</div>' for child in children]
    if step.result:
        parts.append(f"<b>Result</b> ({_STATES[step.state]}){_content(step.result.content)}")
    return _folded(summary, "".join(parts), is_open=step.state != "ok" or bool(children))


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _pre(output["text"])
    data: dict[str, Any] = output["data"]
    for mime_type in ("image/png", "image/jpeg"):
        if mime_type in data:
            return _img(mime_type, data[mime_type])
    return _pre(str(data.get("text/plain", "")))


def _content(content: list[InputBlock]) -> str:
    return "".join(_pre(block.text) if isinstance(block, TextContent) else _image(block) for block in content)


def _prose(content: list[InputBlock]) -> str:
    return "".join(_escaped(block.text) if isinstance(block, TextContent) else _image(block) for block in content)


def _image(block: ImageContent) -> str:
    return _img(block.mime_type, base64.b64encode(block.data).decode())


def _img(mime_type: str, data: str) -> str:
    return f'<img alt="image" style="max-width:100%" src="data:{html.escape(mime_type)};base64,{html.escape(data)}">'


def _folded(summary: str, body: str, is_open: bool = False) -> str:
    return (
        f'<details{" open" if is_open else ""} style="margin:4px 0"><summary>{summary}</summary>'
        f'<div style="{_BOX}">{body}</div></details>'
    )


def _note(text: str) -> str:
    return f'<p style="{_MUTED}">{_escaped(text)}</p>'


def _code(text: str) -> str:
    return f"<code>{_escaped(text)}</code>"


def _pre(text: str) -> str:
    return f'<pre style="{_PRE}">{_escaped(text)}</pre>'


def _escaped(text: str) -> str:
    return html.escape(shown(text))


def markdown(text: str) -> str:
    """What a model wrote as Markdown, as HTML that can do nothing: no raw HTML, no images, no odd links."""
    return _renderer()(shown(text))


@functools.cache
def _renderer() -> Callable[[str], str]:
    import nh3
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return lambda text: nh3.clean(parser.render(text), url_schemes={"http", "https", "mailto"})
