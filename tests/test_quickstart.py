"""The quickstart, live: what must hold whatever the model's words are. Replayed, it is a test of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from op_jupyter import RunError
from op_jupyter.providers import resolve

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "quickstart.ipynb"
HOLDS = """
calls = [call for message in run.messages if message.kind == "assistant" for call in message.tool_calls]
assert [(call.name, call.arguments) for call in calls] == [("best_product", {"city": "Bergen"})]
assert run.values == {calls[0].id: "tea"}
assert run.rounds == 2 and run.stop_reason == "stop" and "tea" in answer
"""


def test_the_quickstart_runs_live_on_the_embedded_model(tmp_path: Path) -> None:
    try:
        resolve("local:")
    except RunError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        cell["metadata"]["tags"] = ["nbval-ignore-output"]
    notebook["cells"].append({**code[-1], "id": "holds", "source": HOLDS, "outputs": []})
    (tmp_path / "live.ipynb").write_text(json.dumps(notebook))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "live.ipynb"],
        cwd=tmp_path,
        env={**environment, "OP_JUPYTER_REPLAY": "0", "OP_JUPYTER_MODEL": "local:"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and f"{len(code) + 1} passed" in done.stdout, done.stdout
    # what was said has been recorded beside the copy, and not here
    assert (tmp_path / "cassettes" / "quickstart.json").exists()
