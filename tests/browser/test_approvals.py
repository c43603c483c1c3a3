"""A call that needs a person's yes waits in its card, and is answered there while the kernel is blocked."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.lab import STOP, Lab, Notebook, need_chromium, says
from tests.providers.chat_wire import DONE, call_delta, chunk, event
from tests.providers.wire_server import Answer, WireServer

need_chromium()

DELETE = """
deleted = []

@function(requires_approval=True)
def delete(table: str, where: str) -> str:
    "Delete rows."
    deleted.append(table)
    return f"{table} is gone"
"""
REFUSED = "Not run: this call was not approved."
WHERE = "city = 'Oslo' AND " * 40 + "the end of it"


def deletes(*tables: str) -> Answer:
    deltas = [
        call_delta(
            index=n,
            id=f"c{n}",
            type="function",
            name="delete",
            arguments=json.dumps({"table": table, "where": WHERE}),
        )
        for n, table in enumerate(tables)
    ]
    return Answer(pieces=[*map(event, deltas), event(chunk({}, "tool_calls")), DONE])


def asked(page: Page, lab: Lab, name: str) -> Notebook:
    notebook = lab.run(page, name, DELETE, "%%agent\nClean up.", "1 + 1")
    notebook.text("waits for approval").wait_for()
    return notebook


def test_one_call_is_approved_and_one_denied_with_the_arguments_in_full(page: Page, lab: Lab, wire: WireServer) -> None:
    wire.script = [deletes("sales", "cities"), Answer(pieces=[says("All clean."), *STOP])]
    notebook = asked(page, lab, "approve.ipynb")
    waiting = page.locator(".call[data-state=waiting]")
    expect(waiting.locator("pre").first).to_contain_text("the end of it")
    waiting.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".call[data-state=ok]")).to_contain_text("sales is gone")
    # By keyboard, too.
    deny = page.locator(".call[data-state=waiting]").get_by_role("button", name="Deny", exact=True)
    deny.focus()
    page.keyboard.press("Enter")
    page.get_by_text("All clean.").wait_for()
    expect(page.locator(".call[data-state=not_run]")).to_contain_text(REFUSED)
    assert notebook.kernel_value("deleted") == ["sales"]
    results = [message["content"] for message in wire.asked[-1].body["messages"] if message["role"] == "tool"]
    assert results == ["sales is gone", REFUSED]


@pytest.mark.parametrize("button", ["Stop", "Interrupt the kernel"])
def test_a_run_that_waits_for_an_approval_is_stopped_at_once(
    page: Page, lab: Lab, wire: WireServer, button: str
) -> None:
    wire.script = [deletes("sales")]
    notebook = asked(page, lab, f"stop-approval-{len(button)}.ipynb")
    page.get_by_role("button", name="Approve", exact=True).wait_for()
    page.evaluate("""() => {
        const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        document.addEventListener('click', () => { window.clicked = performance.now(); }, true);
        kernel.iopubMessage.connect((_, message) => {
            if (message.header.msg_type === 'error') window.freed = performance.now();
        });
    }""")
    if button == "Stop":
        notebook.stop.click()
    else:
        page.locator("[data-command='notebook:interrupt-kernel']").first.click()
    page.wait_for_function("window.freed")
    assert page.evaluate("window.freed - window.clicked") < 300
    assert notebook.kernel_value("deleted") == []
    expect(page.locator(".call[data-state=not_run]")).to_contain_text("Not run: the run was stopped before this call.")


def test_a_page_that_is_loaded_again_is_asked_again(page: Page, lab: Lab, wire: WireServer) -> None:
    wire.script = [deletes("sales"), Answer(pieces=[says("All clean."), *STOP])]
    asked(page, lab, "reload-approval.ipynb")
    page.reload()
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_text("All clean.").wait_for()
