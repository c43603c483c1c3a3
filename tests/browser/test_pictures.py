"""How a run looks in both themes, in a narrow window and at twice the size: pictures for people, in build/pictures.

What a test can say of them: each text stands out from what is behind it, and nothing reaches out of its place.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.lab import Lab, Notebook, calls, export, need_chromium, read, says
from tests.providers.chat_wire import DONE, call_delta, chunk, event
from tests.providers.wire_server import Answer, WireServer

need_chromium()

PICTURES = Path(__file__).parents[2] / "build" / "pictures"
LONG_WORD = "9f86d081884c7d65" * 6
FUNCTIONS = f"""
import sys
from op_jupyter import agentic_function

@function
def load_sales(year: int, columns: list[str]) -> list:
    "Read the sales of a year."
    print("reading {LONG_WORD}")
    print("two lines are empty", file=sys.stderr)
    return [dict(month=month, city="Bergen", total=100 + 7 * month) for month in range(1, 13)]

@agentic_function
def compare(years: list[int], runtime) -> str:
    "Compare the sales of two years."
    return runtime.exec(f"Compare the sales of {{years}}.")
"""
ASK = "%%agent\nWhich month of 2026 was the best, and how does the year compare with the one before?"
REPORT = f"""December 2026 was the **best** month:

- December: 184
- January: 107

The year was better than 2025 by a tenth: `{LONG_WORD}`"""
OUTPUT = ".jp-OutputArea-output"
OVERLAYS = ".Toastify, #jupyterlab-splash { display: none }"
JUDGE = """(output) => {
    const around = (e) => e ? [...around(e.parentElement ?? e.getRootNode().host), e] : [];
    const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d");
    const paint = (color, alpha = 1) => {
        Object.assign(canvas, {fillStyle: color, globalAlpha: alpha}).fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((n) => n / 255)
            .map((n) => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (element) => {
        const styles = around(element).map((e) => getComputedStyle(e));
        let behind = paint("white");
        styles.forEach((style) => { behind = paint(style.backgroundColor); });
        const text = paint(styles.at(-1).color, styles.reduce((alpha, style) => alpha * style.opacity, 1));
        return (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    };
    const edge = output.getBoundingClientRect().right;
    const [faint, cut] = [[], []];
    const drawn = [...(output.shadowRoot ?? output).querySelectorAll("*:not(style)")];
    const parts = drawn.filter((element) => element.checkVisibility({opacityProperty: true}));
    for (const element of parts) {
        const texts = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
        // What stands in one line may end with three dots.
        const isShortened = around(element).some((e) => getComputedStyle(e).textOverflow === "ellipsis");
        const isOut = element.getBoundingClientRect().right > edge + 1;
        const isCut = element.clientWidth && element.scrollWidth > element.clientWidth + 1;
        if (!isShortened && (isOut || isCut)) {
            cut.push(`${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`);
        }
        // A sign with a word for it in its title is a picture.
        if (texts.length && !element.matches(":disabled") && contrast(element) < (element.title ? 3 : 4.5)) {
            faint.push(`${contrast(element).toFixed(2)} ${element.className} ${element.textContent.slice(0, 40)}`);
        }
    }
    return {judged: parts.length > 20, faint, cut};
}"""


def called(name: str, arguments: str) -> list[bytes]:
    delta = call_delta(index=0, id=f"{name} {arguments}", type="function", name=name, arguments=arguments)
    return [event(delta), event(chunk({}, "tool_calls")), DONE]


@pytest.fixture
def story(wire: WireServer) -> None:
    """What the model says: a call that fails, one that prints, and one in which another run calls `hold`."""
    stop = [event(chunk({}, "stop")), DONE]
    wire.script = [
        Answer(
            pieces=[
                event(chunk({"reasoning_content": "The figures of 2026 come first."})),
                says("I load the sales of **2026** first, then I compare."),
                *called("load_sales", '{"year": "this", "columns": ["month", "city", "total"]}'),
            ]
        ),
        Answer(pieces=called("load_sales", '{"year": 2026, "columns": ["month", "city", "total"]}')),
        Answer(
            pieces=[says("December was the best. Now the comparison."), *called("compare", '{"years": [2025, 2026]}')]
        ),
        Answer(pieces=[says("I wait for the figures of both years."), *calls("pictures")]),
        Answer(pieces=[says("2026 was better by a tenth."), *stop]),
        Answer(pieces=[says(REPORT), *stop]),
    ]


def set_theme(page: Page, name: str) -> None:
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", f"JupyterLab {name}")
    page.wait_for_function(
        "wanted => (getComputedStyle(document.body).getPropertyValue('--jp-layout-color1') === 'white') === wanted",
        arg=name == "Light",
    )


def take(page: Page, name: str) -> None:
    """Keep a picture, and judge what it shows."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.bring_to_front()
    page.locator(OUTPUT).last.screenshot(path=PICTURES / f"{name}.png", style=OVERLAYS)
    found = page.locator(OUTPUT).last.evaluate(JUDGE)
    assert found == {"judged": True, "faint": [], "cut": []}, name


def test_a_run_is_legible_in_both_themes_in_a_narrow_window_and_at_twice_the_size(
    page: Page, lab: Lab, story: None
) -> None:
    page.set_viewport_size({"width": 1280, "height": 3000})
    notebook = lab.run(page, "pictures.ipynb", FUNCTIONS, ASK)
    notebook.text("I wait for the figures of both years.").wait_for()
    notebook.steer("in Norwegian, please")
    notebook.text("queued").wait_for()
    narrow = page.context.new_page()
    narrow.set_viewport_size({"width": 400, "height": 3000})
    Notebook(narrow, lab, "pictures.ipynb", app="notebook")
    narrow.get_by_text("I wait for the figures of both years.").wait_for()
    try:
        for theme in ("Dark", "Light"):
            set_theme(page, theme)
            take(page, f"live-{theme}")
        take(narrow, "live-narrow")
        lab.touch("pictures")
        for shown in (page, narrow):
            shown.bring_to_front()
            shown.get_by_text("December 2026 was").first.wait_for()
            shown.get_by_label("Message to the agent").wait_for(state="hidden")
            read(shown, OUTPUT)
        take(narrow, "done-narrow")
        for theme in ("Dark", "Light"):
            set_theme(page, theme)
            take(page, f"done-{theme}")
    finally:
        set_theme(page, "Light")
    # At 200 % a window has half the width, in pixels of the style.
    page.set_viewport_size({"width": 640, "height": 3000})
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    take(page, "done-twice")
    notebook.saved("December 2026 was")
    for theme in ("light", "dark"):
        narrow.set_viewport_size({"width": 1280, "height": 3000})
        narrow.goto(export(notebook.path, theme).as_uri())
        read(narrow, OUTPUT)
        take(narrow, f"export-{theme}")
    narrow.set_viewport_size({"width": 400, "height": 3000})
    take(narrow, "export-narrow")
