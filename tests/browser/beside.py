"""A notebook that stays open for all tests of a module: an agent cell at its top, and room to scroll away from it.

What is asserted is the business of the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Locator, expect

from tests.browser.lab import AGENT, PATIENCE, SETUP, STOP, App, Lab, Notebook, calls, end_kernels, says
from tests.providers.wire_server import Answer, WireServer

DELETE = """
@function(requires_approval=True)
def delete(until: str) -> str:
    "Delete something."
    return "gone"
"""
AGENT_CELL, LONG_CELL, LAST_CELL = 2, 3, 4


@contextmanager
def opened(chromium: Browser, lab: Lab, name: str, app: App, *more: str) -> Iterator[Notebook]:
    """A notebook in a browser profile of its own, its functions defined; `more` cells stand at its end."""
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    lab.write(name, SETUP, DELETE, AGENT, "#\n" * 80, "1 + 1", *more)
    notebook = Notebook(context.new_page(), lab, name, app)
    notebook.wait_for_kernel()
    for cell in 0, 1:
        notebook.run_cell(cell)
    notebook.page.wait_for_function(f"!{KERNEL_IS_BUSY}")
    yield notebook
    context.close()
    end_kernels()


KERNEL_IS_BUSY = "(window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy')"


def agent(notebook: Notebook) -> Locator:
    """The agent cell."""
    return notebook.cell(AGENT_CELL)


def start(notebook: Notebook, wire: WireServer, file: str, function: str = "hold") -> None:
    """Run the agent cell until it has called a function, which holds until there is a file."""
    wire.script = [
        Answer(pieces=[says("Let me see."), *calls(file, function=function)]),
        Answer(pieces=[says("All is well."), *STOP]),
    ]
    notebook.run_cell(AGENT_CELL)
    agent(notebook).get_by_role("button", name="Stop", exact=True).wait_for()
    agent(notebook).get_by_text("Let me see.", exact=True).wait_for()


def look_away(notebook: Notebook) -> None:
    """Click into the last cell, so that the agent cell is out of sight."""
    notebook.cell(LAST_CELL).locator(".cm-content").click()
    expect(agent(notebook)).not_to_be_in_viewport()


def comes_to_its_end(notebook: Notebook) -> None:
    """The run has ended, and the kernel is free."""
    agent(notebook).get_by_role("button", name="Stop", exact=True).wait_for(state="hidden")
    notebook.page.wait_for_function(f"!{KERNEL_IS_BUSY}")
