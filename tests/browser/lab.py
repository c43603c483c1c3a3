"""A real JupyterLab or Notebook 7 in a real browser, a notebook in it, and the wire of its scripted model.

What is asserted is the business of the tests.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.providers.chat_wire import DONE, call_delta, chunk, event

CHROMIUM = shutil.which("chromium")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PATIENCE = 60_000
"""Milliseconds for what waits for a kernel or an import on a busy machine."""

App = Literal["lab", "notebook"]


def need_chromium() -> None:
    """Skip the tests of a module where there is no Chromium, but never in CI."""
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("there is no Chromium: apt-get install chromium", allow_module_level=True)


@contextmanager
def browser() -> Generator[Browser]:
    """The Debian Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        expect.set_options(timeout=60_000)
        yield chromium
        chromium.close()


@contextmanager
def jupyter(folder: Path, **environment: str) -> Generator[str]:
    """The address of a Jupyter server whose notebooks are in `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "ServerApp.port": port,
        "ServerApp.token": "",
        "ServerApp.disable_check_xsrf": True,
        "ServerApp.root_dir": folder,
        "LabApp.expose_app_in_browser": True,
        "JupyterNotebookApp.expose_app_in_browser": True,
    }
    arguments = [f"--{name}={value}" for name, value in settings.items()]
    home = folder / ".jupyter"
    with subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(home),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTERLAB_SETTINGS_DIR": str(home / "lab"),
            **environment,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    urlopen(f"{url}/api/status", timeout=5).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline and server.poll() is None, "the Jupyter server does not start"
                    time.sleep(0.1)
            _running.append(url)
            yield url
            _running.remove(url)
        finally:
            server.terminate()


_running: list[str] = []
"""The addresses of the servers that run."""


def end_kernels() -> None:
    """End the kernels of all servers."""
    for url in _running:
        with urlopen(f"{url}/api/kernels") as response:
            kernels = json.load(response)
        for kernel in kernels:
            # It may end by itself meanwhile.
            with suppress(HTTPError):
                urlopen(Request(f"{url}/api/kernels/{kernel['id']}", method="DELETE")).close()


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
AGENT = "%%agent\nDo it, please."


def says(text: str) -> bytes:
    """What the server sends when the model goes on with `text`."""
    return event(chunk({"content": text}))


STOP = [event(chunk({}, "stop")), DONE]
"""The end of a reply."""


def calls(*files: str, function: str = "hold") -> list[bytes]:
    """The end of a reply that calls `hold`, or another function like it, once for each file."""
    deltas: list[dict[str, Any]] = [
        call_delta(index=n, id=f"c{n}", type="function", name=function, arguments=json.dumps({"until": file}))
        for n, file in enumerate(files)
    ]
    return [*map(event, deltas), event(chunk({}, "tool_calls")), DONE]


def export(notebook: Path, theme: str = "light") -> Path:
    """The HTML export of a notebook, beside it."""
    from nbconvert import HTMLExporter  # takes a second to import

    page, _ = HTMLExporter(theme=theme).from_filename(str(notebook))  # type: ignore[no-untyped-call]
    exported = notebook.with_suffix(".html")
    exported.write_text(page)
    return exported


def read(page: Page, selector: str) -> str:
    """What a person reads there who opens everything that can be opened."""
    closed = page.locator(f"{selector} details:not([open]) > summary")
    while closed.count():
        closed.first.click()
    return page.locator(selector).inner_text()


@dataclass(frozen=True)
class Lab:
    """A running Jupyter server, and the folder with its notebooks."""

    folder: Path
    url: str

    def write(self, name: str, *cells: str, kernel: str = "python3") -> None:
        """A notebook with these code cells, not run yet."""
        code: list[dict[str, Any]] = [
            {"cell_type": "code", "id": f"c{n}", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
            for n, cell in enumerate(cells)
        ]
        metadata = {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}}
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": code}
        (self.folder / name).write_text(json.dumps(notebook))

    def run(self, page: Page, name: str, *cells: str, app: App = "lab", kernel: str = "python3") -> Notebook:
        """A new notebook, all of whose cells are running; by default an agent cell and one after it."""
        self.write(name, SETUP, *(cells or (AGENT, "1 + 1")), kernel=kernel)
        notebook = Notebook(page, self, name, app)
        notebook.wait_for_kernel()
        notebook.command("notebook:run-all-cells")
        return notebook

    def touch(self, name: str) -> None:
        """Let the functions go on that hold until there is a file `name`."""
        (self.folder / name).touch()


class Notebook:
    """A notebook that is open in a page, in JupyterLab or in Notebook 7."""

    def __init__(self, page: Page, lab: Lab, name: str, app: App = "lab") -> None:
        self.page = page
        self.path = lab.folder / name
        page.goto(f"{lab.url}/lab/tree/{name}?reset" if app == "lab" else f"{lab.url}/notebooks/{name}")
        page.wait_for_selector(".jp-Notebook .jp-Cell:visible", timeout=60_000)

    def wait_for_kernel(self) -> None:
        """Wait until its kernel has started and is free."""
        self.page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.info")

    @property
    def box(self) -> Locator:
        """The steer box."""
        return self.page.get_by_label("Message to the agent")

    @property
    def stop(self) -> Locator:
        """The button that ends the run."""
        return self.page.get_by_role("button", name="Stop", exact=True)

    def cell(self, index: int) -> Locator:
        """A cell, counted from the one that sets the notebook up, which is 0."""
        return self.page.locator(".jp-Cell:visible").nth(index)

    def errors(self, index: int) -> Locator:
        """The errors that a cell shows."""
        return self.cell(index).locator("[data-mime-type='application/vnd.jupyter.stderr']")

    def run_cell(self, index: int) -> None:
        """Click into a cell and press Shift+Enter."""
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")

    def text(self, text: str) -> Locator:
        """What reads exactly so."""
        return self.page.get_by_text(text, exact=True)

    def steer(self, text: str) -> None:
        """Send a message into the run."""
        self.box.fill(text)
        self.box.press("Enter")

    def command(self, name: str) -> None:
        """Run a command of the application, without waiting for its end."""
        self.page.evaluate("name => void window.jupyterapp.commands.execute(name)", name)

    def saved(self, *wanted: str) -> str:
        """The file of the notebook, saved once it holds all that is `wanted`."""
        deadline = time.monotonic() + 20
        while True:
            self.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
            text = self.path.read_text()
            if all(one in text for one in wanted):
                return text
            assert time.monotonic() < deadline, f"{wanted} is not in the file"
            self.page.wait_for_timeout(100)

    def kernel_value(self, expression: str) -> Any:
        """The value of a Python expression, asked of the kernel when it is free."""
        found = self.page.evaluate(
            """async (code) => {
                const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                const future = kernel.requestExecute({code: '', silent: true, user_expressions: {value: code}});
                const reply = await future.done;
                return reply.content.user_expressions.value.data['text/plain'];
            }""",
            expression,
        )
        return ast.literal_eval(found)
