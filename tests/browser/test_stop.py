"""Stop and the notebook's own interrupt free a cell at once, wherever its run waits, and the next cell runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.lab import AGENT, PATIENCE, SETUP, Lab, Notebook, calls, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()

AT_ONCE = 300
"""Milliseconds."""
TRIES = 3
"""On a busy machine anything may be slow once; a stop that is slow is so every time."""

LONG_SLEEP = """
@function
def hold(until: str) -> str:
    "Sleep for long, in one piece."
    time.sleep(600)

@function(requires_approval=True)
def delete(until: str) -> str:
    "Never runs here."
    raise AssertionError
"""
CELL, NEXT = 2, 3

# Playwright is in neither time: a click has its own, and the page hears itself that the cell has ended.
WATCH = """() => {
    const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
    document.addEventListener('click', (event) => { window.clicked = event.timeStamp; }, true);
    kernel.iopubMessage.connect((_, {parent_header, content}) => {
        if (parent_header.msg_type === 'execute_request' && content.execution_state === 'idle') {
            window.freed ||= performance.now();
        }
    });
}"""
TOOK = "window.freed && window.freed - window.clicked"


# What the server answers, and what the run then shows that it is at.
WAITS = {
    "before the headers": (Answer(then="silent"), "Waiting for the model."),
    "in a silent stream": (Answer(pieces=[says("Let me see.")], then="silent"), "The model is answering."),
    "in a long sleep": (Answer(pieces=calls("never")), "Running hold."),
    "for an approval": (Answer(pieces=calls("never", function="delete")), "Waiting for your approval of delete."),
}
BUTTONS = {"Stop": "RunAborted: The run was stopped.", "Interrupt the kernel": "KeyboardInterrupt"}


@pytest.fixture(scope="module")
def notebook(chromium: Browser, lab: Lab) -> Iterator[Notebook]:
    """One notebook for all of these tests: each runs its agent cell again."""
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    lab.write("stop.ipynb", SETUP, LONG_SLEEP, AGENT, "1 + 1")
    notebook = Notebook(context.new_page(), lab, "stop.ipynb")
    notebook.wait_for_kernel()
    for cell in range(CELL):
        notebook.run_cell(cell)
    notebook.page.evaluate(WATCH)
    yield notebook
    context.close()


@pytest.mark.parametrize("button", BUTTONS)
@pytest.mark.parametrize("waits", WAITS)
def test_the_cell_is_free_at_once_and_the_next_one_runs(
    notebook: Notebook, wire: WireServer, waits: str, button: str
) -> None:
    answer, doing = WAITS[waits]
    took: list[float] = []
    while not took or (min(took) >= AT_ONCE and len(took) < TRIES):
        wire.script = [answer]
        notebook.run_cell(CELL)
        wire.wait_until_asked()
        notebook.text(doing).wait_for()
        expect(notebook.box).to_be_editable()
        notebook.page.evaluate("window.clicked = window.freed = 0")
        notebook.page.get_by_role("button", name=button, exact=button == "Stop").click()
        took.append(notebook.page.wait_for_function(TOOK).json_value())
        # One line, and nothing else.
        expect(notebook.errors(CELL)).to_have_text([BUTTONS[button]])
    print(f"free after {', '.join(f'{time:.0f}' for time in took)} ms")
    assert min(took) < AT_ONCE
    notebook.run_cell(NEXT)
    expect(notebook.cell(NEXT).locator(".jp-OutputArea-executeResult")).to_contain_text("2")
