"""A notebook with agent cells is a test: `pytest --nbval` compares every form of the output, and passes twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from op_jupyter import Runtime
from op_jupyter.notebook.bundle import MIME_TYPE
from op_jupyter.providers.replay import Recorder
from op_jupyter.testing import call, scripted

CELLS = [
    "%load_ext op_jupyter\nfrom op_jupyter import function",
    '@function\ndef add(a: int, b: int) -> int:\n    "Add two numbers."\n    return a + b',
    "%%agent --record c.json\n1 + 2?",
    "_agent.upper()",
]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def cell(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that was run, beside its cassette."""
    monkeypatch.setenv("OP_JUPYTER_REPLAY", "1")

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    recorder = Recorder()
    runtime = Runtime(model=recorder.wrap(scripted([["I add.", call("add", a=1, b=2)], "It is **3**."])))
    runtime.exec("1 + 2?", tools=[add])
    recorder.save(tmp_path / "c.json")
    path = tmp_path / "sums.ipynb"
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": KERNEL, "cells": list(map(cell, CELLS))})
    )
    run_by(path, "nbconvert", "--to", "notebook", "--execute", "--inplace")
    monkeypatch.delenv("OP_JUPYTER_REPLAY")
    return path


def nbval(path: Path) -> subprocess.CompletedProcess[str]:
    return run_by(path, "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-c", os.devnull)


def run_by(path: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments, str(path)],
        cwd=path.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_it_passes_twice_and_neither_the_notebook_nor_the_cassette_changes(notebook: Path) -> None:
    files = [notebook, notebook.parent / "c.json"]
    before = [file.read_bytes() for file in files]
    for _ in range(2):
        done = nbval(notebook)
        assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout
    assert [file.read_bytes() for file in files] == before


@pytest.mark.parametrize("form", [MIME_TYPE, "text/html", "text/plain"])
def test_every_form_of_the_output_is_compared(notebook: Path, form: str) -> None:
    nb = json.loads(notebook.read_text())
    data = nb["cells"][2]["outputs"][0]["data"]
    data[form] = {"other": 1} if form == MIME_TYPE else "something else"
    notebook.write_text(json.dumps(nb))
    done = nbval(notebook)
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout


def test_a_function_that_gives_something_else_fails_with_the_difference(notebook: Path) -> None:
    nb = json.loads(notebook.read_text())
    nb["cells"][1]["source"] = CELLS[1].replace("a + b", "a * b")
    notebook.write_text(json.dumps(nb))
    done = nbval(notebook)
    assert done.returncode == 1
    assert 'content[0].text was "3", and is now "2"' in done.stdout, done.stdout
