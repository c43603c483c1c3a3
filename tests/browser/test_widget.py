"""A front end without our extension shows the run in a widget: a JupyterLab where the extension is disabled."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import asks
from tests.browser.lab import STOP, Lab, calls, jupyter, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()


@pytest.fixture(scope="module")
def plain_lab(tmp_path_factory: pytest.TempPathFactory, server: WireServer) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("plain")
    disable = [sys.executable, "-m", "jupyter", "labextension", "disable", "--level=user", "op_jupyter"]
    subprocess.run(disable, env={**os.environ, "JUPYTER_CONFIG_DIR": str(folder / ".jupyter")}, check=True)
    with jupyter(folder, **asks(server)) as url:
        yield Lab(folder, url)


def test_a_run_is_seen_steered_and_stopped_in_the_widget(page: Page, plain_lab: Lab, wire: WireServer) -> None:
    gate = threading.Event()
    wire.script = [
        Answer(pieces=[says("Let me see."), *calls("steered", "never")]),
        Answer(pieces=[says("Half a "), gate, says("sentence."), *STOP]),
    ]
    notebook = plain_lab.run(page, "widget.ipynb")
    notebook.text("running").wait_for()
    assert not page.evaluate("window.jupyterapp.hasPlugin('op_jupyter:mime')")
    notebook.steer("only 2013, please")
    notebook.text("queued").wait_for()
    plain_lab.touch("steered")
    notebook.text("delivered in round 2").wait_for()
    notebook.text("Half a").wait_for()
    gate.set()
    notebook.text("Half a sentence.").wait_for()
    # The finished run is HTML, and nothing of the widget is left.
    saved = notebook.saved("Half a sentence.")
    assert "widget" not in saved and '"live"' not in saved
    assert notebook.kernel_value("len(__import__('ipywidgets').Widget.widgets)") == 0
    # Once more, and stopped.
    wire.script = [Answer(pieces=calls("never"))]
    notebook.run_cell(1)
    notebook.text("running").wait_for()
    notebook.stop.click()
    page.get_by_text("RunAborted: The run was stopped.").wait_for()
    assert notebook.kernel_value("1 + 1") == 2
