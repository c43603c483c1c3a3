"""An agent cell looks like prose, and other cells like what they are; Tab completes in both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from playwright.sync_api import Browser, Locator, TimeoutError, expect

from tests.browser.beside import LAST_CELL, opened
from tests.browser.lab import Lab, Notebook, need_chromium

need_chromium()

PROSE = "Is there import or class in it, and for what, if any?"
FIRST, INDENTED, TIMED, COMMENTED, EMPTY = (LAST_CELL + n for n in range(1, 6))


@pytest.fixture(scope="module", params=["lab", "notebook"])
def notebook(request: pytest.FixtureRequest, chromium: Browser, lab: Lab) -> Iterator[Notebook]:
    cells = [
        f"%%agent --tools hold\n{PROSE}",
        f"\n  %%agent\n{PROSE}",
        "%%time\nimport os",
        f"# import\n%%agent\n{PROSE}",
        "",
    ]
    with opened(chromium, lab, f"prose-{request.param}.ipynb", request.param, *cells) as notebook:
        yield notebook


def coloured(cell: Locator) -> Locator:
    """The words that are highlighted."""
    return cell.locator(".cm-line span")


def write(notebook: Notebook, text: str) -> Locator:
    """Type this into the empty cell, in place of what is there."""
    cell = notebook.cell(EMPTY)
    cell.locator(".cm-content").click()
    notebook.page.keyboard.press("Control+A")
    notebook.page.keyboard.press("Delete")
    notebook.page.keyboard.insert_text(text)
    return cell


def test_a_cell_is_prose_where_ipython_takes_it_as_an_agent_cell(notebook: Notebook) -> None:
    # Brackets and the like that are not highlighted have no element of their own.
    expect(coloured(notebook.cell(TIMED)).get_by_text("import")).to_have_count(1)
    expect(coloured(notebook.cell(COMMENTED)).get_by_text("class")).to_have_count(1)
    for cell in FIRST, INDENTED:
        notebook.cell(cell).scroll_into_view_if_needed()
        expect(notebook.cell(cell)).to_contain_text(PROSE)
        expect(coloured(notebook.cell(cell))).to_have_count(0)


def test_a_cell_becomes_prose_as_it_is_typed(notebook: Notebook) -> None:
    cell = write(notebook, PROSE)
    expect(coloured(cell).get_by_text("class")).to_have_count(1)
    notebook.page.keyboard.press("Control+Home")
    notebook.page.keyboard.type("%%agent --tools hold")
    notebook.page.keyboard.press("Enter")
    expect(cell.locator(".cm-line").last).to_have_text(PROSE)
    expect(coloured(cell)).to_have_count(0)


def test_a_cell_is_code_again_when_its_first_line_is_taken_away_and_prose_when_that_is_undone(
    notebook: Notebook,
) -> None:
    cell, keyboard = notebook.cell(FIRST), notebook.page.keyboard
    cell.locator(".cm-content").click()
    for keys in "Control+Home", "Shift+End", "Delete":
        keyboard.press(keys)
    expect(coloured(cell).get_by_text("class")).to_have_count(1)
    keyboard.press("Control+Z")
    expect(cell).to_contain_text("%%agent")
    expect(coloured(cell)).to_have_count(0)


def test_a_cell_that_is_added_is_prose_too_and_nothing_of_it_is_saved(notebook: Notebook) -> None:
    write(notebook, "here")
    notebook.command("notebook:insert-cell-below")
    cell = notebook.cell(EMPTY + 1)
    cell.locator(".cm-content").click()
    notebook.page.keyboard.insert_text(f"%%agent\n{PROSE}")
    expect(cell).to_contain_text(PROSE)
    expect(coloured(cell)).to_have_count(0)
    saved = notebook.saved(PROSE, '"here"')
    assert "ipythongfm" not in saved and "markdown" not in saved
    notebook.command("notebook:delete-cell")
    expect(cell).to_have_count(0)


def test_tab_completes_a_name_of_the_notebook_in_prose(notebook: Notebook) -> None:
    cell = write(notebook, "%%agent\nUse this one, retu")
    expect(coloured(cell)).to_have_count(0)
    completion = notebook.page.locator(".jp-Completer-item", has_text="returned")
    # JupyterLab waits a second for the kernel's answer, which may be late on a busy machine.
    for _ in range(20):
        notebook.page.keyboard.press("Tab")
        with suppress(TimeoutError):
            completion.wait_for(timeout=1500)
            break
    completion.click()
    expect(cell.locator(".cm-line").last).to_have_text("Use this one, returned")
