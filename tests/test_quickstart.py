"""The quickstart, live: what must hold whatever the model's words are. Replayed, it is a test of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from op_jupyter import RunError
from op_jupyter.providers import resolve
from op_jupyter.providers._model_files import DEFAULT_MODEL

ROOT = Path(__file__).parent.parent
HOLDS = """
calls = [call for message in run.messages if message.kind == "assistant" for call in message.tool_calls]
assert [(call.name, call.arguments) for call in calls] == [("best_product", {"city": "Bergen"})]
assert run.values == {calls[0].id: "tea"}
assert run.rounds == 2 and run.stop_reason == "stop" and "tea" in answer
"""
SERVER = """
import sys, xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.chat_template = sys.argv[1], open(sys.argv[2]).read()
settings.port, settings.n_ctx, settings.n_parallel, settings.verbosity, settings.sampling.temp = 0, 4096, 1, -1, 0
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def the_model_is_there() -> None:
    try:
        resolve("local:")
    except RunError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@contextmanager
def running_llama_server() -> Iterator[str]:
    """The address of a llama.cpp server that runs the embedded model until the end of the block."""
    template = ROOT / "tests" / "fixtures" / "functions.jinja"
    arguments = [sys.executable, "-c", SERVER, str(DEFAULT_MODEL.path), str(template)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


@pytest.fixture
def llama_server() -> Iterator[str]:
    with running_llama_server() as address:
        yield address


def run_live(folder: Path, **environment: str) -> None:
    """Run a copy of the quickstart and let the last cell say what must hold."""
    notebook: dict[str, Any] = json.loads((ROOT / "notebooks" / "quickstart.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        cell["metadata"]["tags"] = ["nbval-ignore-output"]
    notebook["cells"].append({**code[-1], "id": "holds", "source": HOLDS, "outputs": []})
    (folder / "live.ipynb").write_text(json.dumps(notebook))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "live.ipynb"],
        cwd=folder,
        env={**inherited, "OP_JUPYTER_REPLAY": "0", **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and f"{len(code) + 1} passed" in done.stdout, done.stdout
    # What was said has been recorded beside the copy, and not here.
    assert (folder / "cassettes" / "quickstart.json").exists()


def test_the_quickstart_runs_live_on_the_embedded_model(tmp_path: Path) -> None:
    run_live(tmp_path)


def test_the_same_cell_is_answered_through_openai_by_a_llama_server(tmp_path: Path, llama_server: str) -> None:
    run_live(
        tmp_path, OP_JUPYTER_MODEL="openai:qwen", OPENAI_BASE_URL=f"{llama_server}/v1", OPENAI_API_KEY="not-a-real-key"
    )
