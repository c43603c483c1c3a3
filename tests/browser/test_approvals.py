"""A call that needs a person's yes waits in its card, and is answered there while the kernel is blocked."""

from __future__ import annotations

import json

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
    expect(waiting.get_by_role("group", name="Arguments")).to_contain_text("the end of it")
    waiting.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".call[data-state=ok]")).to_contain_text("sales is gone")
    # A page that is loaded again is asked again, and answers by keyboard, too.
    page.locator(".call[data-state=waiting]").wait_for()
    page.reload()
    deny = page.locator(".call[data-state=waiting]").get_by_role("button", name="Deny", exact=True)
    deny.focus()
    page.keyboard.press("Enter")
    notebook.text("All clean.").wait_for()
    expect(page.locator(".call[data-state=not_run]")).to_contain_text(REFUSED)
    assert notebook.kernel_value("deleted") == ["sales"]
    results = [message["content"] for message in wire.asked[-1].body["messages"] if message["role"] == "tool"]
    assert results == ["sales is gone", REFUSED]
