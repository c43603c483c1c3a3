"""Everybody can read a run and reach into it: with a screen reader, by keyboard, in any theme, size and width."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import STOP, Lab, calls, end_kernels, export, need_chromium, read, says
from tests.browser.still import AXE, RULES, StillPage
from tests.browser.test_pictures import JUDGE, set_theme
from tests.providers.chat_wire import DONE, call_delta, chunk, event
from tests.providers.wire_server import Answer, WireServer

need_chromium()

LOOKS = [(None, "light"), (None, "dark"), ("light", "light"), ("dark", "dark"), ("dark-high-contrast", "dark")]
"""JupyterLab's themes, and none, which is how other pages are; each with what the browser is set to."""


def is_live(record: dict[str, Any]) -> bool:
    return "html" not in record


def open_all(page: Page) -> None:
    page.evaluate(
        """() => {
            const root = document.querySelector("main > div").shadowRoot ?? document;
            const next = () => root.querySelector("details:not([open]) > summary");
            while (next()) next().click();
        }"""
    )


@pytest.mark.parametrize(("theme", "scheme"), LOOKS)
def test_axe_finds_nothing_in_any_state_of_a_run(
    still: StillPage, records: dict[str, dict[str, Any]], theme: str | None, scheme: Any
) -> None:
    still.page.emulate_media(color_scheme=scheme)
    found = {}
    for name, record in records.items():
        still.show(record, live=is_live(record), theme=theme)
        folded = still.audit()
        open_all(still.page)
        found[name] = [*folded, *still.audit()]
        if not is_live(record):
            still.show_html(record["html"], theme)
            open_all(still.page)
            found[f"{name} as HTML"] = still.audit()
    assert found == {name: [] for name in found}


def test_axe_finds_nothing_where_a_message_is_lost_a_run_is_stopped_or_the_kernel_is_gone(
    still: StillPage, records: dict[str, dict[str, Any]]
) -> None:
    for theme in ("light", "dark"):
        page = still.show(records["delivered"], live=True, theme=theme)
        box = page.get_by_label("Message to the agent")
        box.fill("this one is lost\n" * 3)
        box.press("Enter")
        page.get_by_role("button", name="Take back").wait_for()
        box.fill("and this is a draft")
        assert still.audit() == []
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopping").first.wait_for()
        assert still.audit() == []
        for state in ("late", "gone"):
            page.evaluate(
                "state => { transport.link = {state, reason: 'The kernel is gone.'}; transport.listener.onLink() }",
                state,
            )
            assert still.audit() == []


def focusable(page: Page) -> list[dict[str, Any]]:
    """Everything that Tab comes to, in that order, as it looks there."""
    page.evaluate("document.activeElement.blur()")
    found: list[dict[str, Any]] = []
    while True:
        page.keyboard.press("Tab")
        focused = page.evaluate(
            """() => {
                const focused = document.activeElement.shadowRoot?.activeElement;
                if (!focused) return null;
                const style = getComputedStyle(focused), place = focused.getBoundingClientRect();
                const isNew = !focused.isSeen;
                focused.isSeen = true;
                return {
                    isNew, what: `${focused.tagName} ${focused.className} ${focused.textContent.slice(0, 40)}`,
                    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
                    color: style.outlineColor, top: place.top + scrollY, height: place.height, width: place.width,
                    isControl: focused.matches("button, summary, textarea"),
                };
            }"""
        )
        if focused is None or not focused["isNew"]:
            return found
        found.append(focused)


@pytest.mark.parametrize("forced", ["none", "active"])
def test_the_focus_is_seen_wherever_it_is_in_the_order_of_reading_and_every_target_is_large_enough(
    still: StillPage, records: dict[str, dict[str, Any]], forced: Any
) -> None:
    still.page.emulate_media(forced_colors=forced)
    for name in ("queued", "finished"):
        page = still.show(records[name], live=is_live(records[name]), theme=None if forced == "active" else "light")
        open_all(page)
        stops = focusable(page)
        assert len(stops) > 8
        for stop in stops:
            assert stop["outline"] >= 2 and not stop["color"].endswith(", 0)"), stop
            assert not stop["isControl"] or min(stop["height"], stop["width"]) >= 24, stop
        rows = [round(stop["top"] / 12) for stop in stops]
        assert rows == sorted(rows), stops


def test_nothing_moves_for_those_who_asked_for_that(still: StillPage, records: dict[str, dict[str, Any]]) -> None:
    still.page.emulate_media(reduced_motion="reduce")
    for name in ("a nested run", "streaming"):
        page = still.show(records[name], live=True, theme="light")
        parts = "[...document.querySelector('main > div').shadowRoot.querySelectorAll('*')]"
        assert page.evaluate(f"{parts}.flatMap((part) => part.getAnimations()).length") == 0


@pytest.mark.parametrize("width", [500, 400, 320])
def test_nothing_is_cut_off_in_a_narrow_pane_or_at_twice_the_size(
    still: StillPage, records: dict[str, dict[str, Any]], width: int
) -> None:
    still.page.set_viewport_size({"width": width, "height": 900})
    for name, record in records.items():
        page = still.show(record, live=is_live(record), theme="light")
        if is_live(record):
            box = page.get_by_label("Message to the agent")
            box.fill(f"lost {'9f86d081884c7d65' * 6}")
            box.press("Enter")
            page.get_by_role("button", name="Take back").wait_for()
        open_all(page)
        assert page.locator("main > div").evaluate(JUDGE)["cut"] == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_in_forced_colours_no_state_is_told_by_colour_alone(
    still: StillPage, records: dict[str, dict[str, Any]]
) -> None:
    still.page.emulate_media(forced_colors="active", color_scheme="dark")
    for name, record in records.items():
        page = still.show(record, live=is_live(record))
        marks = page.locator(".call > summary > .mark")
        signs = {mark.get_attribute("aria-label"): mark.text_content() for mark in marks.all()}
        assert len(set(signs.values())) == len(signs) and all(signs.values()), name
        assert still.audit() == [], name
    page = still.show(records["an approval"], live=True)
    buttons = page.locator(".approval button, .controls button")
    borders = buttons.evaluate_all("all => all.map((one) => getComputedStyle(one).borderTopWidth)")
    assert set(borders) == {"1px"}


def test_the_tree_that_a_screen_reader_has_names_everything_and_says_what_is_open(
    still: StillPage, records: dict[str, dict[str, Any]]
) -> None:
    page = still.show(records["an approval"], live=True, theme="light")
    tree = page.locator("main").aria_snapshot()
    for expected in (
        'article "Agent run"',
        'group "Round 1"',
        'group "Approval of delete"',
        'button "Approve"',
        'button "Deny"',
        'button "Always for this run"',
        'group "Control of the run"',
        'button "Stop"',
        'list "Messages to the agent"',
        'textbox "Message to the agent"',
        'button "Send"',
    ):
        assert expected in tree, tree
    always = page.get_by_role("button", name="Always for this run")
    expect(always).to_have_accessible_description(
        "Always: this call and every later call of delete in this run, and in the runs nested in it, "
        "without asking again."
    )
    always.click()
    assert page.evaluate("asked.map(([what, call, answer]) => [what, answer])") == [["approve", "always"]]


def deletes(*tables: str) -> list[bytes]:
    deltas = [
        call_delta(index=n, id=f"d{n}", type="function", name="delete", arguments=f'{{"table": "{table}"}}')
        for n, table in enumerate(tables)
    ]
    return [*map(event, deltas), event(chunk({}, "tool_calls")), DONE]


DELETE = """
deleted = []

@function(requires_approval=True)
def delete(table: str) -> str:
    "Delete a table."
    deleted.append(table)
    return f"{table} is gone"
"""


def tab_to(page: Page, wanted: Locator, key: str = "Tab") -> None:
    """Press Tab until the focus is there, as somebody does who has no mouse."""
    wanted.wait_for()
    for _ in range(40):
        page.keyboard.press(key)
        if wanted.evaluate("(e) => e.getRootNode().activeElement === e && e.matches(':focus-visible')"):
            return
    raise AssertionError(f"{key} does not come to {wanted}")


def test_a_whole_run_by_keyboard_alone(page: Page, lab: Lab, wire: WireServer) -> None:
    wire.script = [
        Answer(pieces=[says("First this."), *calls("keys")]),
        Answer(pieces=deletes("sales", "cities")),
        Answer(pieces=calls("never")),
    ]
    notebook = lab.run(page, "keys.ipynb", DELETE, "%%agent\nGo.")
    notebook.text("running").wait_for()
    tab_to(page, notebook.box)
    page.keyboard.type("only 2013,")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("please")
    page.keyboard.press("Enter")
    notebook.text("queued").wait_for()
    page.keyboard.press("ArrowUp")
    expect(notebook.box).to_have_value("only 2013,\nplease")
    page.keyboard.press("ArrowDown")
    expect(notebook.box).to_have_value("")
    lab.touch("keys")
    notebook.text("delivered in round 2").wait_for()
    # The focus stays where it is when a question comes.
    always = page.get_by_role("button", name="Always for this run")
    always.wait_for()
    expect(notebook.box).to_be_focused()
    tab_to(page, always, "Shift+Tab")
    page.keyboard.press("Enter")
    notebook.text("running").wait_for()
    expect(page.locator(".call[data-key^=d] > summary").first).to_be_focused()
    card = page.locator(".call[data-state=ok] > summary").first
    tab_to(page, card, "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".call[data-state=ok]").first).to_have_attribute("open", "")
    tab_to(page, notebook.stop)
    page.keyboard.press("Space")
    notebook.text("RunAborted: The run was stopped.").wait_for()
    assert notebook.kernel_value("deleted") == ["sales", "cities"]
    # Nothing that was pressed was a shortcut of the notebook.
    assert page.locator(".jp-Cell:visible").count() == 3
    assert wire.asked[1].body["messages"][-1] == {"role": "user", "content": "only 2013,\nplease"}


def audit_output(page: Page, name: str) -> list[str]:
    page.evaluate("source => { if (!window.axe) (0, eval)(source) }", AXE.read_text())
    found = page.evaluate(f"axe.run('.jp-OutputArea-output', {RULES})")
    return [f"{name}: {rule['id']} {node['html'][:200]}" for rule in found["violations"] for node in rule["nodes"]]


def test_axe_finds_nothing_in_jupyterlab_in_both_themes_live_saved_and_exported(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    gate = threading.Event()
    wire.script = [
        Answer(pieces=[says("# One\n\nFirst *this*."), *deletes("sales")]),
        Answer(pieces=[says("The **answer** "), gate, says("is 42."), *STOP]),
    ]
    notebook = lab.run(page, "axe.ipynb", DELETE, "%%agent\nGo.")
    found: list[str] = []

    def audit(state: str) -> None:
        for theme in ("Dark", "Light"):
            set_theme(page, theme)
            found.extend(audit_output(page, f"{state} {theme}"))

    notebook.text("waits for approval").wait_for()
    notebook.steer("in Norwegian")
    notebook.text("queued").wait_for()
    audit("an approval")
    page.get_by_role("button", name="Approve").click()
    notebook.text("delivered in round 2").wait_for()
    page.get_by_text("The answer").first.wait_for()
    audit("streaming")
    gate.set()
    notebook.box.wait_for(state="hidden")
    audit("finished")
    notebook.saved("is 42.")
    end_kernels()
    page.reload()
    page.get_by_text("is 42.").first.wait_for()
    audit("saved")
    for theme in ("light", "dark"):
        page.goto(export(notebook.path, theme).as_uri())
        read(page, ".jp-OutputArea-output")
        found.extend(audit_output(page, f"exported {theme}"))
    assert found == []
