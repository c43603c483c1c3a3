"""A run outlives the page that it was started from, and each page that shows it: reloads, second tabs, closed tabs."""

from __future__ import annotations

import json
import threading

import pytest
from playwright.sync_api import Page

from tests.browser.lab import AGENT, STOP, App, Lab, Notebook, calls, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()

MIME_TYPE = "application/vnd.op-jupyter.run+json"


def starts(
    page: Page, lab: Lab, wire: WireServer, name: str, after: str = "1 + 1", app: App = "lab"
) -> tuple[Notebook, threading.Event]:
    """A notebook whose agent is in the midst of a call, and what the last word of its answer waits for."""
    gate = threading.Event()
    wire.script = [
        Answer(pieces=[says("Let me see."), *calls(name)]),
        Answer(pieces=[says("The "), gate, says("end."), *STOP]),
    ]
    notebook = lab.run(page, f"{name}.ipynb", AGENT, after, app=app)
    notebook.text("running").wait_for()
    return notebook, gate


def shows_the_run(notebook: Notebook) -> None:
    """What was there before is there again: the text, and the card of the call that still runs."""
    notebook.text("Let me see.").wait_for()
    notebook.text("running").wait_for()


def is_steered(notebook: Notebook, lab: Lab, name: str) -> None:
    """A message typed here comes to the model, and the run goes on here."""
    notebook.steer("still there?")
    notebook.text("queued").wait_for()
    lab.touch(name)
    notebook.text("delivered in round 2").wait_for()
    notebook.text("The").wait_for()


def holds(notebook: Notebook, *whole_run: str) -> None:
    """The file, saved from here, has all of the run in every form, and no trace of the live page."""
    saved = notebook.saved(whole_run[-1])
    (outputs,) = [cell["outputs"] for cell in json.loads(saved)["cells"] if cell["source"][0] == "%%agent\n"]
    (output,) = outputs
    assert output["data"][MIME_TYPE]["stop_reason"] == "stop"
    for form in MIME_TYPE, "text/html", "text/plain":
        assert all(text in json.dumps(output["data"][form]) for text in whole_run)
    assert '"live"' not in saved and "widget" not in saved


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_page_that_is_loaded_again_in_mid_run_shows_the_run_and_steers_it_and_saves_it(
    page: Page, lab: Lab, wire: WireServer, app: App
) -> None:
    name = f"reload-{app}"
    notebook, gate = starts(page, lab, wire, name, app=app)
    # Not saved yet, and then saved.
    page.reload()
    shows_the_run(notebook)
    notebook.saved("vnd.op-jupyter")
    page.reload()
    shows_the_run(notebook)
    is_steered(notebook, lab, name)
    gate.set()
    notebook.text("The end.").wait_for()
    holds(notebook, "Let me see.", "still there?", "The end.")


def test_a_second_tab_shows_the_run_and_steers_it_as_the_first_does(page: Page, lab: Lab, wire: WireServer) -> None:
    first, gate = starts(page, lab, wire, "second")
    second = Notebook(page.context.new_page(), lab, "second.ipynb")
    shows_the_run(second)
    is_steered(second, lab, "second")
    first.text("delivered in round 2").wait_for()
    first.text("The").wait_for()
    gate.set()
    for tab in first, second:
        tab.text("The end.").wait_for()
    holds(second, "Let me see.", "still there?", "The end.")


def test_a_tab_that_was_closed_in_mid_run_and_is_opened_again_shows_the_run_and_steers_it(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    _, gate = starts(page, lab, wire, "closed")
    tab = page.context.new_page()
    page.close(run_before_unload=False)
    again = Notebook(tab, lab, "closed.ipynb")
    shows_the_run(again)
    is_steered(again, lab, "closed")
    gate.set()
    again.text("The end.").wait_for()
    holds(again, "Let me see.", "still there?", "The end.")


def test_a_run_that_ends_while_the_page_is_away_is_shown_and_saved_all_the_same(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    _, gate = starts(page, lab, wire, "away", "Path('ended').touch()")
    page.goto("about:blank")
    gate.set()
    lab.touch("away")
    while not (lab.folder / "ended").exists():
        page.wait_for_timeout(50)
    again = Notebook(page, lab, "away.ipynb")
    again.text("The end.").wait_for()
    holds(again, "Let me see.", "The end.")


def test_a_run_whose_output_is_folded_is_saved_all_the_same_by_a_page_that_was_loading_when_it_ended(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    notebook, gate = starts(page, lab, wire, "folded")
    notebook.command("notebook:hide-all-cell-outputs")
    notebook.saved("outputs_hidden")
    page.reload(wait_until="commit")
    gate.set()
    lab.touch("folded")
    notebook.wait_for_kernel()
    holds(notebook, "Let me see.", "The end.")
