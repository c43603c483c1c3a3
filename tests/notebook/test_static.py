"""The saved views of a run: complete, the same at every replay, and unable to do anything."""

from __future__ import annotations

import contextlib
import html
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from op_jupyter import Run, RunError, Runtime
from op_jupyter.messages import AssistantMessage, ImageContent, TextContent, ToolCall, UserMessage
from op_jupyter.notebook.bundle import MIME_TYPE, mime_bundle
from op_jupyter.notebook.static_text import to_text
from op_jupyter.notebook.static_words import ENDED, NOT_ENDED, STATES, columns
from op_jupyter.record import AssistantStep, CallStep, Step
from op_jupyter.testing import call, scripted

WORDS = Path(__file__).parents[1] / "fixtures" / "words.json"
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


def test_html_text_and_view_say_the_same_of_a_call_and_of_a_run() -> None:
    words = json.loads(WORDS.read_text())
    assert {state: list(said) for state, said in STATES.items()} == words["calls"]
    assert {"": list(NOT_ENDED)} | {end: list(said) for end, said in ENDED.items()} == words["runs"]


def test_a_failed_call_is_open_and_one_that_is_done_takes_a_line() -> None:
    data, _ = mime_bundle(ran([[call("add", a=1, b=2), call("add", a="x", b=2)], "done"]))
    opened = ["open" in attributes for tag, attributes in Elements(data["text/html"]).found if tag == "details"]
    assert opened == [False, True]


def test_the_answer_comes_last_after_a_rule_and_the_rounds_before_it_are_numbered() -> None:
    data, _ = mime_bundle(ran([["Let me see.", call("add", a=1, b=2)], [call("add", a=3, b=4)], "It is **seven**."]))
    steps, _, answer = data["text/html"].partition("<hr")
    assert "<strong>seven</strong>" in answer and "Let me see." in steps
    numbers = [attributes["value"] for tag, attributes in Elements(steps).found if tag == "li"]
    assert numbers == ["1", "2"]
    assert data["text/plain"].endswith("\n\nIt is **seven**.")


def test_rows_of_a_result_are_a_table_in_which_numbers_stand_to_the_right() -> None:
    def sales() -> list[dict[str, Any]]:
        return [{"city": HOSTILE, "total": 120}, {"city": "Oslo", "total": 80}]

    data, _ = mime_bundle(ran([[call("sales")], "ok"], tools=[sales]))
    found = Elements(data["text/html"]).found
    assert [tag for tag, _ in found if tag in ("table", "tr", "th", "td")] == ["table", "tr", "th", "th"] + 2 * [
        "tr",
        "td",
        "td",
    ]
    assert [attributes["align"] for tag, attributes in found if tag == "td"] == ["left", "right"] * 2
    assert "2 rows: city, total" in data["text/html"] and "2 rows: city, total" in data["text/plain"]
    assert "<script" not in data["text/html"]


TABLE = """<style>td { display: none }</style><table onclick="x()"><thead><tr><th></th><th>city</th></tr></thead>
<tbody><tr><th>0</th><td><script>alert(1)</script><b>Bergen</b> &lt;i&gt;</td></tr></tbody></table>"""


def displayed(data: dict[str, Any]) -> str:
    """The HTML of a run whose call displayed `data`."""
    run = ran([[call("add", a=1, b=2)], "ok"])
    (step,) = [step for step in run.steps if isinstance(step, CallStep)]
    step.output.append({"output_type": "display_data", "data": data, "metadata": {}})
    return str(mime_bundle(run)[0]["text/html"])


def test_a_table_that_was_displayed_is_made_anew_and_nothing_else_of_its_html_is_kept() -> None:
    page = displayed({"text/html": TABLE, "text/plain": "plain"})
    tags = [tag for tag, _ in Elements(page).found]
    assert "table" in tags and not {"style", "script", "b", "i"} & {*tags}
    assert "Bergen &lt;i&gt;" in page and "onclick" not in page and "plain" not in page


@pytest.mark.parametrize(
    "html", ["<b>no table</b>", TABLE * 2, "<table></table>", "<table><tr><td colspan=2>1", "<table><![x"]
)
def test_of_other_html_the_plain_text_is_shown(html: str) -> None:
    page = displayed({"text/html": html, "text/plain": "as <text>"})
    assert "as &lt;text&gt;" in page and "<table" not in page


def test_what_is_no_image_is_not_shown_as_one() -> None:
    page = displayed({"image/png": 'x" onerror="alert(1)" \x1b'})
    assert "<img" not in page and "alert" not in page and "cannot be read" in page


def test_entities_cannot_turn_the_direction_of_text_or_hide_in_it() -> None:
    entities = 'a &#x202e;exe.gnp&#8238; `&#x202e;` [b&#x2066;](https://a.example "&#x202e;") &#27;[31m &#x9b; &#8207;'
    data, _ = mime_bundle(ran([entities]))
    assert not set(data["text/html"]) & set("\u202e\u2066\u200f\x1b\x9b")
    assert "a \\u202eexe.gnp" in data["text/html"] and "b\\u2066</a>" in data["text/html"]


def test_every_line_of_the_text_fits_its_width_however_wide_its_characters_are() -> None:
    def echo(text: str, more: str) -> str:
        return text

    def ask(text: str) -> str:
        return Runtime(model=scripted([[call("echo", text=text, more="x")], "ok"])).exec("go", tools=[echo])

    long, wide = "some words " * 30, "数据" * 80
    replies = [
        [long, call("echo", text=long, more="\x1b" * 90)],
        [call("echo", text=wide, more=wide), call("ask", text=wide)],
    ]
    run = ran([*replies, long], question=long, tools=[echo, ask])
    for width in (100, 60, 40):
        lines = to_text(run, width).splitlines()
        assert [line for line in lines if columns(line) > width] == []
        assert sum("echo(" in line for line in lines) == 3
    assert to_text(run) == to_text(run, 100) == mime_bundle(run)[0]["text/plain"]


def test_what_cannot_be_seen_from_the_messages_is_said_in_words() -> None:
    message = AssistantMessage([TextContent("It is"), ToolCall("c", "add", {"a": 1})], stop_reason="length")
    steps: list[Step] = [AssistantStep(round=1, message=message, started=1.0)]
    run = Run(run_id="r", rounds=1, steps=steps, stop_reason="length")
    run.queued, run.undelivered = [UserMessage("soon", "steering")], [UserMessage("late", "steering")]
    for form in ("text/html", "text/plain"):
        text = mime_bundle(run)[0][form]
        for said in (
            "Cut off",
            "The reply was cut off: it reached the length limit.",
            "Queued: soon",
            "Not delivered: late",
        ):
            assert said in text, form
    assert "– not run <code>add(a=1)</code>" in mime_bundle(run)[0]["text/html"]


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
