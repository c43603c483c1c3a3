"""The record of a run as the JSON of its views: with what each reply cost, and no number that JavaScript would change.

Where it is sent to, or kept, is decided elsewhere.
"""

from __future__ import annotations

from typing import Any, cast

from op_jupyter.notebook.prices import price, priced
from op_jupyter.record import Run, Step

_EXACT = 2**53
"""Beyond this JavaScript has no whole numbers: a person would be asked about another one than the function gets."""


def run_as_json(run: Run) -> dict[str, Any]:
    """The whole run, with those nested in it."""
    return priced(as_json(run))


def step_as_json(run: Run, step: Step) -> dict[str, Any]:
    """A step of `run`."""
    return price(run.model, as_json(step))


def as_json(value: Any) -> Any:
    """A part of the record; a whole number that is too large is a text of its digits."""
    from pydantic_core import to_jsonable_python

    return _exact(to_jsonable_python(value, bytes_mode="base64"))


def _exact(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _exact(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return str(value) if type(value) is int and abs(value) > _EXACT else value
