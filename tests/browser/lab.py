"""A real JupyterLab or Notebook in a real browser, and a notebook in it; what is asserted is the business of tests."""

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
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def need_chromium() -> None:
    """Skip the tests of a module where there is no Chromium, but never in CI."""
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("there is no Chromium: apt-get install chromium", allow_module_level=True)


@contextmanager
def browser() -> Generator[Browser]:
    """The Debian Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
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
            yield url
        finally:
            server.terminate()


def write_notebook(path: Path, *cells: str) -> None:
    """A notebook with these code cells, not run yet."""
    code: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"c{n}", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for n, source in enumerate(cells)
    ]
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": KERNEL, "cells": code}))


class Notebook:
    """A notebook that is open in a page."""

    def __init__(self, page: Page, url: str, name: str) -> None:
        self.page = page
        page.goto(f"{url}/lab/tree/{name}?reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell:visible", timeout=60_000)
        page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.info")

    def command(self, name: str) -> None:
        """Run a command of the application, without waiting for its end."""
        self.page.evaluate("name => void window.jupyterapp.commands.execute(name)", name)

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
