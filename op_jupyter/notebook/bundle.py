"""A run as a notebook output: our JSON for the view, static HTML, and plain text.

The data is the same whenever the model says the same; what varies (times, tokens, ids, retries) is the metadata.
"""

from __future__ import annotations

from typing import Any

from op_jupyter.notebook.as_json import run_as_json
from op_jupyter.notebook.fitting import fitted
from op_jupyter.notebook.static_html import to_html
from op_jupyter.notebook.static_text import WIDTH, to_text
from op_jupyter.record import Run

MIME_TYPE = "application/vnd.op-jupyter.run+json"
MOST = 4_500_000
"""So many bytes of a notebook's file a run takes at the most."""
_AIM = 4_000_000

_RUN_VARIES = ("run_id", "model", "started", "ended")
_STEP_VARIES = ("started", "ended", "time", "cost")

Bundle = tuple[dict[str, Any], dict[str, Any]]


def mime_bundle(run: Run, width: int = WIDTH) -> Bundle:
    """The data and the metadata of the output that shows `run`, each by MIME type.

    `width` is that of the plain text, in columns. Of a run that would fill the notebook's file, less is kept.
    """
    room = _AIM
    while True:
        bundle = _bundle(fitted(run, room), width)
        size = _size_in_file(bundle)
        if size <= MOST:
            return bundle
        # Its text has more marks in it than others have, and makes more HTML.
        room = room * _AIM // max(size, 2 * _AIM)


def _bundle(run: Run, width: int) -> Bundle:
    data, metadata = _split(run_as_json(run))
    bundle = {MIME_TYPE: data, "text/html": to_html(run), "text/plain": to_text(run, width)}
    return bundle, {MIME_TYPE: metadata}


def _size_in_file(bundle: Bundle) -> int:
    """How many bytes a notebook's file has more for this output: it is indented, and texts are in lines."""
    from pydantic_core import to_json

    data, metadata = bundle
    texts = {kind: text.splitlines(True) if isinstance(text, str) else text for kind, text in data.items()}
    return len(to_json({"cells": [{"outputs": [{"data": texts, "metadata": metadata}]}]}, indent=1))


def _split(run: dict[str, Any]) -> Bundle:
    """What is the same at every replay, and what varies, in the same places; retries with the places they had."""
    varying: dict[str, Any] = {key: run.pop(key) for key in _RUN_VARIES}
    # What was said before stands in the cells before.
    del run["history"]
    steps: list[dict[str, Any]] = run["steps"]
    varying["retries"] = [{"index": index, **step} for index, step in enumerate(steps) if step["kind"] == "retry"]
    run["steps"] = [step for step in steps if step["kind"] != "retry"]
    varying["steps"] = [_split_step(step) for step in run["steps"]]
    children: dict[str, list[dict[str, Any]]] = run["children"]
    varying["children"] = {call_id: [_split(child)[1] for child in runs] for call_id, runs in children.items()}
    for message in [*run["queued"], *run["undelivered"]]:
        _drop_provider_data(message)
    return run, varying


def _split_step(step: dict[str, Any]) -> dict[str, Any]:
    varying: dict[str, Any] = {key: step.pop(key) for key in _STEP_VARIES if key in step}
    for part in ("message", "call", "result"):
        if step.get(part):
            _drop_provider_data(step[part])
    if step["kind"] == "assistant":
        varying["usage"] = step["message"].pop("usage")
    if step["kind"] == "call" and step["result"]:
        # A traceback names files, which are others in each kernel.
        varying["details"] = step["result"].pop("details")
    return varying


def _drop_provider_data(part: dict[str, Any]) -> None:
    """What only the provider reads is for the next request, which the kernel makes from the record."""
    del part["provider_data"]
    for block in part.get("content", []):
        del block["provider_data"]
