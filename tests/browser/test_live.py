"""A run is watched and steered while the kernel is busy: a real JupyterLab, a real Chromium, a scripted server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.browser.lab import Notebook, browser, jupyter, need_chromium, write_notebook
from tests.providers.chat_wire import DONE, call_delta, chunk, event
from tests.providers.wire_server import Answer, WireServer

need_chromium()

SETUP = """
%load_ext op_jupyter
import time
from pathlib import Path
from op_jupyter import function
returned = []

@function
def hold(until: str) -> str:
    "Block the main thread until there is a file of this name."
    while not Path(until).exists():
        time.sleep(0.05)
    returned.append(time.time())
    return "done"
"""
PATIENCE = 60_000
"""Milliseconds for what waits for a kernel or an import on a busy machine."""


def says(text: str) -> bytes:
    return event(chunk({"content": text}))


def calls(*files: str) -> list[bytes]:
    deltas: list[dict[str, Any]] = [
        call_delta(index=n, id=f"c{n}", type="function", name="hold", arguments=json.dumps({"until": file}))
        for n, file in enumerate(files)
    ]
    return [*map(event, deltas), event(chunk({}, "tool_calls")), DONE]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def wire() -> Iterator[WireServer]:
    with WireServer().running() as wire:
        yield wire


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, wire: WireServer) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("lab")
    environment = {"OPENAI_BASE_URL": f"{wire.url}/v1", "OPENAI_API_KEY": "no-real-key", "OP_JUPYTER_MODEL": "openai:x"}
    with jupyter(folder, **environment) as url:
        yield folder, url


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def run_all(page: Page, lab: tuple[Path, str], name: str) -> Notebook:
    folder, url = lab
    write_notebook(folder / name, SETUP, "%%agent\nDo it, please.", "1 + 1")
    notebook = Notebook(page, url, name)
    notebook.command("notebook:run-all-cells")
    return notebook


def box(page: Page) -> Locator:
    return page.get_by_label("Message to the agent")


def test_a_run_is_seen_and_steered_while_a_function_blocks_the_kernel(
    page: Page, lab: tuple[Path, str], wire: WireServer
) -> None:
    gate = threading.Event()
    wire.script = [
        Answer(pieces=[says("Let me "), says("see."), *calls("steered", "never")]),
        Answer(pieces=[says("Half a "), gate, says("sentence."), event(chunk({}, "stop")), DONE]),
    ]
    notebook = run_all(page, lab, "steer.ipynb")
    # The text and the card are there while the function still sleeps.
    page.get_by_text("Let me see.").wait_for()
    page.get_by_text("running", exact=True).wait_for()
    box(page).fill("only 2013, please")
    sent = time.time()
    box(page).press("Enter")
    page.get_by_text("queued", exact=True).wait_for(timeout=5000)
    acknowledged = time.time()
    (lab[0] / "steered").touch()
    page.get_by_text("delivered in round 2").wait_for()
    assert page.get_by_text("skipped", exact=True).count() == 1
    # Text streams in as the server sends it.
    page.get_by_text("Half a", exact=True).wait_for()
    gate.set()
    page.get_by_text("Half a sentence.").wait_for()
    assert wire.asked[-1].body["messages"][-1] == {"role": "user", "content": "only 2013, please"}
    assert "Skipped due to queued user message" in str(wire.asked[-1].body["messages"][-2])
    (returned,) = notebook.kernel_value("returned")
    assert sent < acknowledged < returned
    # What is saved is the finished run, without a trace of the live one.
    notebook.command("docmanager:save")
    path = lab[0] / "steer.ipynb"
    deadline = time.monotonic() + 20
    while "Half a sentence." not in path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert '"live"' not in path.read_text() and "widget" not in path.read_text()


def test_stop_frees_a_cell_whose_function_sleeps(page: Page, lab: tuple[Path, str], wire: WireServer) -> None:
    wire.script = [Answer(pieces=calls("never"))]
    notebook = run_all(page, lab, "stop.ipynb")
    page.get_by_text("running", exact=True).wait_for()
    stop = page.get_by_role("button", name="Stop", exact=True)
    stop.wait_for()
    started = time.monotonic()
    stop.click()
    page.get_by_text("RunAborted: The run was stopped.").wait_for()
    assert time.monotonic() - started < 5
    assert notebook.kernel_value("1 + 1") == 2


@pytest.mark.parametrize("saved", [True, False])
def test_a_page_that_is_loaded_again_in_mid_run_shows_the_run_and_steers_it(
    page: Page, lab: tuple[Path, str], wire: WireServer, saved: bool
) -> None:
    gate = threading.Event()
    wire.script = [
        Answer(pieces=[says("Let me see."), *calls(f"reloaded-{saved}")]),
        Answer(pieces=[says("The "), gate, says("end."), event(chunk({}, "stop")), DONE]),
    ]
    notebook = run_all(page, lab, f"reload-{saved}.ipynb")
    page.get_by_text("running", exact=True).wait_for()
    path = lab[0] / f"reload-{saved}.ipynb"
    if saved:
        notebook.command("docmanager:save")
        while "vnd.op-jupyter" not in path.read_text():
            page.wait_for_timeout(100)
    page.reload()
    page.get_by_text("Let me see.").wait_for()
    box(page).fill("still there?")
    box(page).press("Enter")
    page.get_by_text("queued", exact=True).wait_for()
    (lab[0] / f"reloaded-{saved}").touch()
    page.get_by_text("delivered in round 2").wait_for()
    gate.set()
    page.get_by_text("The end.").wait_for()
