"""The saved views of a run: complete, the same at every replay, and unable to do anything."""

from __future__ import annotations

import contextlib
import html
import json
from html.parser import HTMLParser
from typing import Any

import pytest

from op_jupyter import Run, RunError, Runtime
from op_jupyter.messages import ImageContent
from op_jupyter.notebook.bundle import MIME_TYPE, mime_bundle
from op_jupyter.testing import call, scripted

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> [link](javascript:alert(3)) ![pixel](https://evil.example/p.png)"
    ' <a href="data:text/html,x">x</a> \x1b[31m\u202e'
)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ran(replies: list[Any], *, question: str = "1 + 2?", tools: list[Any] | None = None) -> Run:
    runtime = Runtime(model=scripted(replies))
    with contextlib.suppress(RunError):
        runtime.exec(question, tools=tools or [add])
    assert runtime.last_run
    return runtime.last_run


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_reader_of_the_page_sees_question_calls_arguments_results_and_answer() -> None:
    data, _ = mime_bundle(ran([[call("add", a=1, b=2)], "It is **three**."]))
    for form in ("text/html", "text/plain"):
        for seen in ("✓", "Done", "2 rounds", "1 + 2?", "add(a=1, b=2)", "3"):
            assert seen in html.unescape(data[form])
    assert "<strong>three</strong>" in data["text/html"]


def test_the_data_is_the_same_at_every_run_and_what_varies_is_in_the_metadata() -> None:
    def ask() -> str:
        return Runtime(model=scripted(["inner"])).exec("look", tools=[])

    bundles = [mime_bundle(ran([[call("ask"), call("add", a=1, b=2)], "done"], tools=[ask, add])) for _ in range(2)]
    assert bundles[0][0] == bundles[1][0] and bundles[0][1] != bundles[1][1]
    metadata = bundles[0][1][MIME_TYPE]
    assert set(metadata) == {"run_id", "model", "started", "ended", "retries", "steps", "children"}
    assert "provider_data" not in json.dumps(bundles[0][0])
    assert len(metadata["steps"]) == len(bundles[0][0][MIME_TYPE]["steps"])
    assert json.loads(json.dumps(bundles[0])) is not None


def test_what_anybody_says_does_nothing_in_the_page() -> None:
    def echo(text: str) -> str:
        return text

    run = ran([[HOSTILE, call("echo", text=HOSTILE)], HOSTILE], question=HOSTILE, tools=[echo])
    page = mime_bundle(run)[0]["text/html"]
    for tag, attributes in Elements(page).found:
        assert tag not in ("script", "img", "iframe", "object", "style", "svg", "form", "link")
        assert not any(name.startswith("on") for name in attributes)
        href = attributes.get("href") or ""
        assert href == "" or href.startswith("https://"), href


def test_what_was_typed_while_it_ran_says_so() -> None:
    typed = ["in words"]
    runtime = Runtime(model=scripted(["Three."]))
    runtime.exec("1 + 2?", get_steering_messages=lambda: [typed.pop()] if typed else [])
    assert runtime.last_run
    data = mime_bundle(runtime.last_run)[0]
    assert "<strong>You</strong><br>1 + 2?" in data["text/html"]
    assert "<strong>You, while it ran, before round 1</strong><br>in words" in data["text/html"]
    assert "1   You, while it ran, before round 1: in words" in data["text/plain"].splitlines()


def test_images_are_data_and_stand_in_the_page() -> None:
    def picture() -> ImageContent:
        return ImageContent(b"\xff\xfe\xfd", "image/png")

    data, _ = mime_bundle(ran([[call("picture")], "ok"], tools=[picture]))
    (image,) = [attributes for tag, attributes in Elements(data["text/html"]).found if tag == "img"]
    assert image["src"] == "data:image/png;base64,//79"
    assert "[image: image/png, 3 bytes]" in data["text/plain"]


def test_nested_runs_stand_inside_the_call_that_opened_them() -> None:
    def ask() -> str:
        return Runtime(model=scripted([[call("add", a=4, b=5)], "nine"])).exec("look", tools=[add])

    data, _ = mime_bundle(ran([[call("ask")], "done"], tools=[ask]))
    page = html.unescape(data["text/html"])
    assert page.index("ask()") < page.index("add(a=4, b=5)") < page.rindex("done")
    assert "      1   ✓ add(a=4, b=5)  9" in data["text/plain"].splitlines()


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([[call("add", a=1)], "ok"], "failed"),
        ([RunError("The key was refused.", kind="auth")], "Failed: The key was refused."),
        ([[call("add", a=1, b=1)]] * 50, "Ended after 50 rounds, the most that this run may take."),
    ],
)
def test_how_it_ended_is_said_in_words(replies: list[Any], said: str) -> None:
    assert said in mime_bundle(ran(replies))[0]["text/html"]


def test_a_run_that_is_saved_before_its_end_says_so() -> None:
    seen: list[str] = []
    runtime = Runtime(model=scripted(["three"]))

    def look(_: Any) -> None:
        assert runtime.under_way
        seen.append(mime_bundle(runtime.under_way.run)[0]["text/html"])

    runtime.exec("1 + 2?", on_event=look)
    assert "had not ended" in seen[0] and "had not ended" not in seen[-1]


def test_a_very_long_result_is_cut_in_the_page_and_that_is_said() -> None:
    def long() -> str:
        return "x" * 100_000

    data, _ = mime_bundle(ran([[call("long")], "ok"], tools=[long]))
    assert len(data["text/html"]) < 30_000 and "80,000 more characters" in data["text/html"]


def test_control_characters_are_seen_and_do_nothing() -> None:
    hostile = "\x1b]52;c;aGk=\x07 \x1b[2J \x9b1m \x00 \u202egnp.exe \r gone"

    def echo(text: str) -> str:
        return text

    data, _ = mime_bundle(ran([[call("echo", text=hostile)], hostile], question=hostile, tools=[echo]))
    for form in ("text/plain", "text/html"):
        assert not set(data[form]) & set("\x1b\x07\x9b\x00\u202e\r"), form
        assert "\\x1b" in data[form]


def test_a_very_long_answer_does_not_fill_the_notebook() -> None:
    data, _ = mime_bundle(ran(["word " * 20_000]))
    assert len(data["text/html"]) < 50_000 and len(data["text/plain"]) < 50_000
