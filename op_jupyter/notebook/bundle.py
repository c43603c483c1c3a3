"""A run as a notebook output: our JSON for the view, static HTML, and plain text.

The data is the same whenever the model says the same; what varies (times, tokens, ids, retries) is the metadata.
"""

from __future__ import annotations

from typing import Any

from op_jupyter.notebook.prices import priced
from op_jupyter.notebook.static_html import to_html
from op_jupyter.notebook.static_text import to_text
from op_jupyter.record import Run

MIME_TYPE = "application/vnd.op-jupyter.run+json"

_RUN_VARIES = ("run_id", "model", "started", "ended")
_STEP_VARIES = ("started", "ended", "time", "cost")


def mime_bundle(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """The data and the metadata of the output that shows `run`, each by MIME type."""
    from pydantic_core import to_jsonable_python

    data, metadata = _split(priced(to_jsonable_python(run, bytes_mode="base64")))
    bundle = {MIME_TYPE: data, "text/html": to_html(run), "text/plain": to_text(run)}
    return bundle, {MIME_TYPE: metadata}


def _split(run: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is the same at every replay, and what varies, in the same places."""
    varying: dict[str, Any] = {key: run.pop(key) for key in _RUN_VARIES}
    # What was said before stands in the cells before.
    del run["history"]
    varying["retries"] = [step for step in run["steps"] if step["kind"] == "retry"]
    run["steps"] = [step for step in run["steps"] if step["kind"] != "retry"]
    varying["steps"] = [_split_step(step) for step in run["steps"]]
    children: dict[str, list[dict[str, Any]]] = run["children"]
    varying["children"] = {call_id: [_split(child)[1] for child in runs] for call_id, runs in children.items()}
    return run, varying


def _split_step(step: dict[str, Any]) -> dict[str, Any]:
    varying: dict[str, Any] = {key: step.pop(key) for key in _STEP_VARIES if key in step}
    if step["kind"] == "assistant":
        varying["usage"] = step["message"].pop("usage")
    if step["kind"] == "call" and step["result"]:
        # A traceback names files, which are others in each kernel.
        varying["details"] = step["result"].pop("details")
    return varying
