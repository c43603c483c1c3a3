"""Run the quickstart notebook from top to bottom, and print each round as it happens.

The executed notebook and an HTML page of it go into `build/`. Rounds are seen from outside the kernel, through the
file that OP_JUPYTER_EVENTS names.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"


def tell(event: dict[str, Any]) -> None:
    """Print what one event means to a reader."""
    match event["kind"]:
        case "agent_start":
            print(f"\nasking {event['model']}", flush=True)
        case "turn_start":
            print(f"round {event['round']}", flush=True)
        case "tool_start":
            call = event["call"]
            arguments = ", ".join(f"{name}={json.dumps(value)}" for name, value in call["arguments"].items())
            print(f"  {call['name']}({arguments})", flush=True)
        case "tool_end":
            print(f"    {event['message']['content'][0].get('text', '[image]')}", flush=True)
        case "message_end" if event["message"]["kind"] == "assistant":
            text = "".join(block.get("text", "") for block in event["message"]["content"])
            if text:
                print(f"  {text}", flush=True)


def follow(path: Path, over: threading.Event) -> None:
    """Tell each event that is written to `path`, until it is over and all are told."""
    with path.open() as file:
        while True:
            ended = over.is_set()
            while line := file.readline():
                tell(json.loads(line))
            if ended:
                return
            over.wait(0.05)


def main() -> None:
    """Run a copy, so that the notebook and its cassette stay as they are."""
    BUILD.mkdir(exist_ok=True)
    notebook_path = Path(shutil.copy(HERE / "quickstart.ipynb", BUILD))
    events_path = BUILD / "events.jsonl"
    events_path.write_text("")
    os.environ["OP_JUPYTER_EVENTS"] = str(events_path)
    notebook = nbformat.read(notebook_path, as_version=4)
    over = threading.Event()
    follower = threading.Thread(target=follow, args=(events_path, over))
    follower.start()
    try:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(BUILD)}}).execute()
    finally:
        over.set()
        follower.join()
        nbformat.write(notebook, notebook_path)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    html_path = notebook_path.with_suffix(".html")
    html_path.write_text(page)
    print(f"\nThe executed notebook: {notebook_path}\nAs a page:             {html_path}")


if __name__ == "__main__":
    main()
