"""What is left of a run in the notebook's file, and how it is read there: without a kernel, and without scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from op_jupyter import Run
from op_jupyter.notebook.bundle import mime_bundle
from tests.browser.lab import AGENT, STOP, Lab, Notebook, calls, export, need_chromium, read, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()

EVERYTHING = Path(__file__).parents[1] / "fixtures" / "runs" / "everything.json"
TIMES = 20


def replies(until: str = ".") -> list[Answer]:
    """A round with two calls, which wait for a file, and the answer."""
    return [Answer(pieces=[says("Let me see."), *calls(until, until)]), Answer(pieces=[says("All done."), *STOP])]


def test_a_cell_that_is_run_twenty_times_leaves_one_run_in_the_file_and_nothing_of_a_widget(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    wire.script = replies() * TIMES
    notebook = lab.run(page, "often.ipynb", AGENT)
    with saved_widgets(page):
        notebook.text("All done.").wait_for()
        notebook.box.wait_for(state="hidden")
        first = notebook.saved("All done.")
        for _ in range(TIMES - 1):
            page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
        notebook.box.wait_for(state="hidden")
        # The widget of the last run is closed before its cell has ended, and after its answer is shown.
        assert notebook.kernel_value("1 + 1") == 2
        last = notebook.saved("All done.", f'"execution_count": {TIMES + 1}')
    assert wire.script == []
    (before,), (after,) = (json.loads(text)["cells"][1]["outputs"] for text in (first, last))
    assert before["data"] == after["data"]
    # Times and ids have a digit more or less.
    assert abs(len(last) - len(first)) < 50
    assert json.loads(last)["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"] == {}
    assert "widget" not in str(after) and "'live'" not in str(after)


@contextmanager
def saved_widgets(page: Page) -> Generator[None]:
    """The setting of Jupyter Widgets that keeps their state in the file, which is off otherwise."""
    command = "@jupyter-widgets/jupyterlab-manager:saveWidgetState"
    page.wait_for_function("name => window.jupyterapp.commands.hasCommand(name)", arg=command)
    page.evaluate("name => window.jupyterapp.commands.execute(name)", command)
    page.wait_for_function("name => window.jupyterapp.commands.isToggled(name)", arg=command)
    try:
        yield
    finally:
        page.evaluate("name => window.jupyterapp.commands.execute(name)", command)


def test_a_saved_run_is_shown_whole_without_a_kernel_and_in_a_copy_that_is_not_trusted(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    wire.script = replies("kept")
    notebook = lab.run(page, "kept.ipynb", AGENT)
    notebook.text("running").wait_for()
    in_mid_run = notebook.saved('"live"')
    lab.touch("kept")
    notebook.text("All done.").wait_for()
    notebook.box.wait_for(state="hidden")
    text = read(page, ".run")
    saved = notebook.saved("All done.")

    page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    page.get_by_title("Change kernel").get_by_text("No Kernel").wait_for()
    assert read(page, ".run") == text
    assert_not_live(page)

    open_copy(page, lab, "copy.ipynb", saved)
    assert read(page, ".run") == text
    assert_not_live(page)

    open_copy(page, lab, "left.ipynb", in_mid_run)
    assert "The run had not ended when this was saved." in read(page, ".run")
    assert_not_live(page)


def open_copy(page: Page, lab: Lab, name: str, text: str) -> None:
    """Open a notebook that came from somebody else, for whose kernel there is none here."""
    notebook = json.loads(text)
    notebook["cells"][0]["source"] += "\n# What is signed by nobody is not trusted."
    notebook["metadata"] = {"kernelspec": {"name": "cobol", "display_name": "COBOL", "language": "cobol"}}
    (lab.folder / name).write_text(json.dumps(notebook))
    Notebook(page, lab, name)
    page.get_by_role("dialog").get_by_role("button", name="No Kernel").click()
    assert not page.evaluate("[...window.jupyterapp.shell.currentWidget.model.cells].some(cell => cell.trusted)")


def assert_not_live(page: Page) -> None:
    into_the_run = re.compile("Stop|Send|Approve|Deny")
    expect(page.locator(".jp-OutputArea-output").get_by_role("button", name=into_the_run)).to_have_count(0)
    expect(page.locator(".jp-OutputArea-output").get_by_role("textbox")).to_have_count(0)


def test_an_html_export_shows_the_whole_run_without_scripts(chromium: Browser, tmp_path: Path) -> None:
    data, metadata = mime_bundle(Run.from_json(EVERYTHING.read_text()))
    output = {"output_type": "display_data", "data": data, "metadata": metadata}
    cell = {"cell_type": "code", "source": AGENT, "metadata": {}, "outputs": [output], "execution_count": 1}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]}
    (tmp_path / "sent.ipynb").write_text(json.dumps(notebook))

    page = chromium.new_page(java_script_enabled=False)
    page.goto(export(tmp_path / "sent.ipynb").as_uri())
    text = read(page, ".jp-OutputArea")
    page.close()
    for said in [
        "✗ Failed · 3 rounds",
        "Plot the sales of this year, and say what stands out.\n<script>alert(1)</script>",
        "The sales come first, then the figure.",
        "First I load the data.",
        "✓ load_sales(year=2026)",
        "2 rows: month, total",
        "reading sales.csv",
        "month\ttotal\n1\t120\n2\t80",
        'plot(kind="bar")',
        "summarise(",
        "✓ Done · 1 round",
        "Summarise: January 120, February 80",
        "Sales fell by a third.",
        '✗ failed save({"path": "sal)',
        "path: the arguments are not a JSON object",
        '↷ skipped save(path="sales.png")',
        "Skipped due to queued user message",
        "You, while it ran, before round 3\nIn German, please",
        "Der Umsatz fiel um ein Drittel.",
        "Failed: The server closed the connection: run the cell again.",
        "Not delivered: Thanks",
    ]:
        before, found, text = text.partition(said)
        assert found, f"{said!r} does not come after {before[-100:]!r}"
