"""The agent that runs is steered, stopped and found from anywhere in the application; the status bar speaks of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.beside import agent, comes_to_its_end, look_away, opened, start
from tests.browser.lab import AGENT, Lab, Notebook, calls, need_chromium
from tests.providers.wire_server import Answer, WireServer

need_chromium()

COMMANDS = ["op-jupyter:steer", "op-jupyter:stop", "op-jupyter:jump"]
STEER, STOP, JUMP = "Alt+Shift+K", "Alt+Shift+X", "Alt+Shift+J"
LABELS = {"Steer the Running Agent": STEER, "Stop the Running Agent": STOP, "Go to the Running Agent": JUMP}

# Notebook 7 has no status bar, and one notebook a page.
only_in_jupyterlab = pytest.mark.parametrize("notebook", ["lab"], indirect=True)


@pytest.fixture(scope="module", params=["lab", "notebook"])
def notebook(request: pytest.FixtureRequest, chromium: Browser, lab: Lab) -> Iterator[Notebook]:
    with opened(chromium, lab, f"commands-{request.param}.ipynb", request.param) as notebook:
        yield notebook


def enabled(notebook: Notebook) -> list[bool]:
    answers = notebook.page.evaluate("names => names.map(name => jupyterapp.commands.isEnabled(name))", COMMANDS)
    return [bool(answer) for answer in answers]


def status(notebook: Notebook) -> Locator:
    return notebook.page.locator(".op-jupyter-status:visible")


def test_the_agent_that_runs_is_found_steered_and_stopped_by_shortcut_from_another_cell(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    assert enabled(notebook) == [False, False, False]
    start(notebook, wire, gate)
    assert enabled(notebook) == [True, True, True]
    look_away(notebook)
    notebook.page.keyboard.press(JUMP)
    expect(agent(notebook)).to_be_in_viewport()
    expect(notebook.page.locator(".jp-Cell.jp-mod-active:visible")).to_contain_text("Do it, please.")
    look_away(notebook)
    notebook.page.keyboard.press(STEER)
    expect(notebook.box).to_be_focused()
    expect(notebook.box).to_be_in_viewport()
    notebook.page.keyboard.type("only 2013, please")
    notebook.page.keyboard.press("Enter")
    notebook.text("queued").wait_for()
    look_away(notebook)
    notebook.page.keyboard.press(STOP)
    notebook.text("RunAborted: The run was stopped.").wait_for()
    comes_to_its_end(notebook)
    assert enabled(notebook) == [False, False, False]


def test_the_palette_offers_the_commands_by_name_while_an_agent_runs(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    palette = notebook.page.locator(".lm-CommandPalette")
    items = palette.locator(".lm-CommandPalette-item", has_text="Running Agent")

    def search() -> None:
        notebook.command("apputils:activate-command-palette")
        palette.locator("input").fill("running agent")

    search()
    for label, shortcut in LABELS.items():
        expect(items.filter(has_text=label)).to_contain_text(shortcut)
    expect(palette.locator(".lm-CommandPalette-item.lm-mod-disabled", has_text="Running Agent")).to_have_count(3)
    notebook.page.keyboard.press("Escape")
    start(notebook, wire, gate)
    search()
    expect(palette.locator(".lm-CommandPalette-item.lm-mod-disabled", has_text="Running Agent")).to_have_count(0)
    items.filter(has_text="Stop").click()
    notebook.text("RunAborted: The run was stopped.").wait_for()
    comes_to_its_end(notebook)


def test_an_agent_whose_output_is_folded_is_steered_all_the_same(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    start(notebook, wire, gate)
    notebook.command("notebook:hide-all-cell-outputs")
    notebook.box.wait_for(state="hidden")
    look_away(notebook)
    notebook.page.keyboard.press(STEER)
    expect(notebook.box).to_be_focused()
    lab.touch(gate)
    comes_to_its_end(notebook)


@only_in_jupyterlab
def test_the_status_bar_says_what_the_agent_does_and_a_click_goes_there(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    expect(status(notebook)).to_have_count(0)
    start(notebook, wire, gate)
    expect(status(notebook)).to_have_text("Agent: round 1, running hold")
    item = status(notebook).get_by_role("button", name="Agent: round 1, running hold. Go to its cell.")
    look_away(notebook)
    item.click()
    expect(agent(notebook)).to_be_in_viewport()
    lab.touch(gate)
    comes_to_its_end(notebook)
    expect(status(notebook)).to_have_count(0)


@only_in_jupyterlab
def test_from_another_notebook_the_agent_is_found_but_not_stopped(
    notebook: Notebook, lab: Lab, wire: WireServer, gate: str
) -> None:
    page = notebook.page
    start(notebook, wire, gate)
    lab.write("commands-other.ipynb", "1 + 1")
    page.evaluate("jupyterapp.commands.execute('docmanager:open', {path: 'commands-other.ipynb'})")
    page.wait_for_function("jupyterapp.shell.currentWidget?.context?.path === 'commands-other.ipynb'")
    expect(status(notebook)).to_have_text("Agent: running in another notebook")
    assert enabled(notebook) == [False, False, True]
    page.keyboard.press(JUMP)
    page.wait_for_function("jupyterapp.shell.currentWidget.context.path === 'commands-lab.ipynb'")
    expect(page.locator(".jp-Cell.jp-mod-active:visible")).to_contain_text("Do it, please.")
    assert enabled(notebook) == [True, True, True]
    lab.touch(gate)
    comes_to_its_end(notebook)


def test_where_jupyterlab_keeps_only_what_is_in_sight_the_agent_is_found_after_a_reload(
    page: Page, lab: Lab, wire: WireServer, gate: str
) -> None:
    settings = lab.folder / ".jupyter/lab/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"windowingMode": "full"}))
    try:
        wire.script = [Answer(pieces=calls(gate))]
        notebook = lab.run(page, "windowed.ipynb", *["#\n" * 40] * 6, AGENT)
        expect(status(notebook)).to_have_text("Agent: round 1, running hold")
        page.reload()
        expect(status(notebook)).to_have_text("Agent: round 1, running hold")
        expect(page.get_by_text("Do it, please.")).not_to_be_in_viewport()
        page.keyboard.press(STEER)
        expect(notebook.box).to_be_focused()
        expect(notebook.box).to_be_in_viewport()
    finally:
        settings.unlink()
