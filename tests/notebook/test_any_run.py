"""Whatever is in a run, its output is JSON, small, the same twice, and HTML that can do nothing."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from op_jupyter import Run
from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from op_jupyter.notebook.bundle import MOST, mime_bundle
from op_jupyter.record import AssistantStep, CallStep, RetryStep, UserStep

FRAGMENTS = [
    *["<script>", "</script>", "<img src=x onerror=y>", "javascript:", "[a](javascript:b)", "[a](//evil.example)"],
    *["![a](https://evil.example)", "<table>", "<td colspan=2>", "</table>", "<![CDATA[", "<!--", "</div></details>"],
    *["| a | b |\n|--:|:--|\n| 1 | 2 |", "- ", "1. ", "> ", "```", "**", "`", "[{", '"a": 1', "}]", "&#x202e;", "&lt;"],
    *["\x1b[2J", "\x00", "\x9b", "\u202e", "\r", "\r\n", "\u2028", "数据", "\u05d0", "style=", '"', "'", "LONG"],
]
ALLOWED = {
    "": {"style"},
    "a": {"href", "rel"},
    "details": {"open"},
    "img": {"alt", "src"},
    "li": {"value"},
    "ol": {"start"},
    "strong": {"title"},
    "td": {"align"},
    "th": {"align"},
}
VOID = {"br", "hr", "img"}
PLAIN = {*"blockquote code div em h1 h2 h3 h4 h5 h6 p pre span summary table tbody thead tr ul".split()}  # noqa: SIM905
ELEMENTS = ALLOWED.keys() | VOID | PLAIN


@st.composite
def some_text(draw: st.DrawFn) -> str:
    """What one may meet. Hypothesis prints how others are built, and warns that this is long."""
    fragments = draw(st.lists(st.sampled_from(FRAGMENTS), max_size=6))
    return " ".join(fragments).replace("LONG", "x" * 30_000) if fragments else draw(st.text(max_size=20))


texts = some_text()
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(texts, some, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, data, max_size=3)
provider_data = st.none() | objects
results = (
    texts | data.map(json.dumps) | st.lists(st.fixed_dictionaries({"a": texts, "b": st.integers()})).map(json.dumps)
)
text_blocks = st.builds(TextContent, results, provider_data)
images = st.builds(ImageContent, st.binary(max_size=2000), st.sampled_from(["image/png", "image/svg+xml"]) | texts)
calls = st.builds(ToolCall, st.sampled_from(["a", "b", "c"]), texts, objects, st.none() | texts)
inputs = st.lists(text_blocks | images, max_size=2)
blocks = st.lists(
    st.one_of(text_blocks, images, calls, st.builds(ThinkingContent, texts), st.builds(ServerContent, texts, data)),
    max_size=4,
)
numbers = st.integers(0, 5)
times = st.floats(0, 1e9)
outputs = st.one_of(
    st.fixed_dictionaries(
        {"output_type": st.just("stream"), "name": st.sampled_from(["stdout", "stderr"]), "text": texts}
    ),
    st.fixed_dictionaries({"output_type": st.just("error"), "ename": texts, "evalue": texts}),
    st.fixed_dictionaries(
        {
            "output_type": st.just("display_data"),
            "data": st.dictionaries(st.sampled_from(["text/html", "text/plain", "image/png"]), texts),
        }
    ),
)
users = st.builds(UserMessage, inputs, st.sampled_from(["user", "steering", "follow_up"]), provider_data)
replies = st.builds(
    AssistantMessage,
    blocks,
    stop_reason=st.sampled_from(["stop", "length", "tool_use", "error", "aborted"]),
    usage=st.builds(Usage, numbers, numbers),
)
answers = st.builds(ToolResultMessage, texts, texts, inputs, st.booleans(), provider_data)
steps = st.one_of(
    st.builds(UserStep, round=numbers, message=users, time=times),
    st.builds(AssistantStep, round=numbers, message=replies, started=times),
    st.builds(
        CallStep,
        round=numbers,
        call=calls,
        started=times,
        state=st.sampled_from(["running", "waiting", "ok", "error", "skipped", "not_run", "interrupted"]),
        output=st.lists(outputs, max_size=3),
        result=st.none() | answers,
    ),
    st.builds(RetryStep, round=numbers, attempt=numbers, delay=times, reason=texts, time=times),
)


@st.composite
def runs(draw: st.DrawFn, depth: int) -> Run:
    """A run with others nested in it, so many deep."""
    nested = st.lists(runs(depth - 1), max_size=2) if depth else st.just([])
    run = st.builds(
        Run,
        run_id=texts,
        model=texts,
        tools=st.lists(texts, max_size=2),
        steps=st.lists(steps, max_size=8).map(lambda steps: sorted(steps, key=lambda step: step.round)),
        rounds=numbers,
        stop_reason=st.sampled_from([None, "stop", "length", "error", "aborted", "max_iterations"]),
        error=st.none() | texts,
        queued=st.lists(users, max_size=1),
        undelivered=st.lists(users, max_size=2),
        children=st.dictionaries(st.sampled_from(["a", "b"]), nested),
    )
    return draw(run)


class Page(HTMLParser):
    """Checks what a page is made of: each element is closed, and none does anything."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS
        for name, value in attrs:
            assert name in ALLOWED[""] | ALLOWED.get(tag, set()), (tag, name)
            if name == "src":
                assert str(value).startswith("data:image/")
            if name == "href":
                assert urlsplit(str(value)).scheme in ("http", "https", "mailto")
            if name == "style":
                assert "url" not in str(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def assert_harmless(run: Run) -> None:
    before = run.to_json()
    bundle, metadata = mime_bundle(run)
    written = json.dumps([bundle, metadata], allow_nan=False)
    assert len(written) <= MOST
    assert json.dumps([*mime_bundle(run)]) == written and run.to_json() == before
    html: Any = bundle["text/html"]
    assert Page(html).open == []
    for form in (html, bundle["text/plain"]):
        assert not [character for character in form if character in "\x00\x1b\x9b\r\u202e"]


@settings(
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(runs(2))
def test_any_run_is_small_valid_the_same_twice_and_does_nothing(run: Run) -> None:
    assert_harmless(run)
