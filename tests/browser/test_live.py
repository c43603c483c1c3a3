"""A run is watched and steered while the kernel is busy: real applications, a real Chromium, a scripted server."""

from __future__ import annotations

import threading
import time

from playwright.sync_api import Page, expect

from tests.browser.lab import STOP, Lab, calls, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()


def test_a_run_is_seen_and_steered_while_a_function_blocks_the_kernel(page: Page, lab: Lab, wire: WireServer) -> None:
    gate = threading.Event()
    wire.script = [
        Answer(pieces=[says("Let me "), says("see."), *calls("steered", "never")]),
        Answer(pieces=[says("Half a "), gate, says("sentence."), *STOP]),
    ]
    notebook = lab.run(page, "steer.ipynb")
    # The text and the card are there while the function still sleeps.
    notebook.text("Let me see.").wait_for()
    notebook.text("running").wait_for()
    notebook.box.wait_for()
    sent = time.time()
    notebook.steer("only 2013, please")
    notebook.text("queued").wait_for(timeout=5000)
    acknowledged = time.time()
    lab.touch("steered")
    notebook.text("delivered in round 2").wait_for()
    assert notebook.text("skipped").count() == 1
    # Text streams in as the server sends it.
    notebook.text("Half a").wait_for()
    gate.set()
    notebook.text("Half a sentence.").wait_for()
    assert wire.asked[-1].body["messages"][-1] == {"role": "user", "content": "only 2013, please"}
    assert "Skipped due to queued user message" in str(wire.asked[-1].body["messages"][-2])
    (returned,) = notebook.kernel_value("returned")
    assert sent < acknowledged < returned
    # What is saved is the finished run, without a trace of the live one.
    saved = notebook.saved("Half a sentence.")
    assert '"live"' not in saved and "widget" not in saved


def test_in_notebook_7_a_run_is_seen_steered_and_stopped(page: Page, lab: Lab, wire: WireServer) -> None:
    wire.script = [Answer(pieces=[says("Let me see."), *calls("seven")]), Answer(pieces=calls("never"))]
    notebook = lab.run(page, "seven.ipynb", app="notebook")
    notebook.text("Let me see.").wait_for()
    notebook.text("running").wait_for()
    notebook.steer("only 2013, please")
    notebook.text("queued").wait_for()
    lab.touch("seven")
    notebook.text("delivered in round 2").wait_for()
    notebook.text("running").wait_for()
    notebook.stop.click()
    notebook.text("RunAborted: The run was stopped.").wait_for()
    assert notebook.kernel_value("1 + 1") == 2


def test_what_goes_on_stays_in_sight_unless_the_reader_has_scrolled_away(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    gates = [threading.Event(), threading.Event()]
    more = [says(f"Paragraph {n}.\n\n") for n in range(60)]
    wire.script = [Answer(pieces=[*more[:30], gates[0], *more[30:], gates[1], says("The end."), *STOP])]
    page.set_viewport_size({"width": 1000, "height": 500})
    notebook = lab.run(page, "follow.ipynb")
    notebook.text("Paragraph 29.").wait_for()
    expect(notebook.box).to_be_in_viewport()
    notebook.text("Paragraph 3.").scroll_into_view_if_needed()
    before = notebook.text("Paragraph 3.").bounding_box()
    gates[0].set()
    notebook.text("Paragraph 59.").wait_for()
    assert notebook.text("Paragraph 3.").bounding_box() == before
    gates[1].set()
    notebook.text("The end.").wait_for()


def test_nothing_moves_under_the_hands_of_who_marks_text_or_writes_in_another_cell(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    gates = [threading.Event() for _ in range(3)]
    parts = [[says(f"Paragraph {part}-{n}.\n\n") for n in range(20)] for part in range(3)]
    wire.script = [Answer(pieces=[*parts[0], gates[0], *parts[1], gates[1], *parts[2], gates[2], *STOP])]
    page.set_viewport_size({"width": 1000, "height": 500})
    notebook = lab.run(page, "hands.ipynb")
    notebook.text("Paragraph 0-19.").wait_for()
    expect(notebook.box).to_be_in_viewport()

    marked = notebook.text("Paragraph 0-18.")
    marked.dblclick()
    before = marked.bounding_box()
    gates[0].set()
    notebook.text("Paragraph 1-19.").wait_for()
    assert marked.bounding_box() == before
    assert page.evaluate("document.getSelection().type") == "Range"

    editor = notebook.cell(2).locator(".cm-content")
    editor.click()
    top = editor.evaluate("editor => editor.getBoundingClientRect().top")
    gates[1].set()
    notebook.text("Paragraph 2-19.").wait_for()
    # The next line of text may be a fraction of a pixel off.
    assert abs(editor.evaluate("editor => editor.getBoundingClientRect().top") - top) < 2
    expect(editor).to_be_in_viewport()
    gates[2].set()
