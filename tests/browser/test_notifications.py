"""A person who looks elsewhere is told that a run has ended, or that it waits for an approval; who sees it is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.beside import agent, comes_to_its_end, look_away, opened, start
from tests.browser.lab import Lab, Notebook, calls, need_chromium
from tests.providers.wire_server import Answer, WireServer

need_chromium()


@pytest.fixture(scope="module", params=["lab", "notebook"])
def notebook(request: pytest.FixtureRequest, chromium: Browser, lab: Lab) -> Iterator[Notebook]:
    with opened(chromium, lab, f"notified-{request.param}.ipynb", request.param) as notebook:
        yield notebook


def notifications(notebook: Notebook) -> Locator:
    return notebook.page.locator(".Toastify__toast", has_text="The agent in")


def says_of(notebook: Notebook, text: str) -> None:
    """There is one notification, which says this of the agent in this notebook."""
    expect(notifications(notebook).filter(has_text=f"The agent in {notebook.path.name} {text}")).to_have_count(1)
    expect(notifications(notebook)).to_have_count(1)


def show(notebook: Notebook) -> None:
    """Take the notification at its word: the cell is there, and the notification is gone."""
    notifications(notebook).get_by_role("button", name="Show").click()
    expect(agent(notebook)).to_be_in_viewport()
    expect(notifications(notebook)).to_have_count(0)


def test_who_sees_the_run_is_told_nothing(notebook: Notebook, lab: Lab, wire: WireServer, gate: str) -> None:
    start(notebook, wire, gate, function="delete")
    agent(notebook).get_by_role("button", name="Approve", exact=True).click()
    comes_to_its_end(notebook)
    notebook.page.wait_for_timeout(300)
    expect(notifications(notebook)).to_have_count(0)


def test_who_has_scrolled_away_is_told_of_the_end_once_and_shown_it(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    start(notebook, wire, gate)
    look_away(notebook)
    lab.touch(gate)
    says_of(notebook, "is done.")
    show(notebook)
    comes_to_its_end(notebook)
    expect(agent(notebook).get_by_text("All is well.", exact=True)).to_be_in_viewport()


def test_who_has_scrolled_away_is_told_of_a_question_until_it_is_answered(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    start(notebook, wire, gate)
    look_away(notebook)
    wire.script.insert(0, Answer(pieces=calls(gate, function="delete")))
    lab.touch(gate)
    says_of(notebook, "waits for your approval of delete.")
    agent(notebook).get_by_role("button", name="Deny", exact=True).dispatch_event("click")
    says_of(notebook, "is done.")
    show(notebook)
    comes_to_its_end(notebook)


def test_in_a_page_that_is_hidden_the_question_is_told_and_shown(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    page = notebook.page
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    start(notebook, wire, gate, function="delete")
    says_of(notebook, "waits for your approval of delete.")
    page.evaluate("delete document.hidden")
    show(notebook)
    agent(notebook).get_by_role("button", name="Approve", exact=True).click()
    comes_to_its_end(notebook)
    expect(notifications(notebook)).to_have_count(0)


@pytest.mark.parametrize("notebook", ["lab"], indirect=True)
def test_in_another_notebook_one_is_told_and_shown_the_one_that_runs(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    page = notebook.page
    start(notebook, wire, gate)
    lab.write("notified-other.ipynb", "1 + 1")
    page.evaluate("jupyterapp.commands.execute('docmanager:open', {path: 'notified-other.ipynb'})")
    page.wait_for_function("jupyterapp.shell.currentWidget?.context?.path === 'notified-other.ipynb'")
    lab.touch(gate)
    says_of(notebook, "is done.")
    show(notebook)
    comes_to_its_end(notebook)
