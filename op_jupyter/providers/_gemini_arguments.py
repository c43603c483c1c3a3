"""The arguments of a call that Gemini streams value by value, each with the JSON path of its place.

A pure function; what else a reply holds is not known here.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any, cast

from op_jupyter.providers._wire import as_str

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")


def arguments_of(whole: Any, partial: list[dict[str, Any]]) -> dict[str, Any]:
    """The arguments that came as `whole` (nothing, or an object) and grew by `partial`, in the order they came.

    A string may come in several pieces.

    Raises:
        ValueError: when it comes to no object.

    Example:
        >>> arguments_of(None, [{"jsonPath": "$.of[0].name", "stringValue": "a"}])
        {'of': [{'name': 'a'}]}
    """
    root: list[Any] = [{} if whole is None else deepcopy(whole)]
    continued: str | None = None
    for argument in partial:
        path = as_str(argument.get("jsonPath"))
        place, key = _place(root, path)
        value = _value(argument)
        if path == continued and isinstance(value, str):
            place[key] += value
        elif isinstance(place, list) and key == len(place):
            place.append(value)
        else:
            place[key] = value
        continued = path if isinstance(value, str) and argument.get("willContinue") else None
    if not isinstance(root[0], dict):
        raise ValueError("the arguments are no object")
    return cast("dict[str, Any]", root[0])


def _value(argument: dict[str, Any]) -> Any:
    for name in ("stringValue", "numberValue", "boolValue"):
        if name in argument:
            return argument[name]
    return None


def _place(root: list[Any], path: str) -> tuple[Any, str | int]:
    """Where the value at `path` stands: the object or the array, which is made as needed, and the key in it."""
    place, key = cast("Any", root), cast("str | int", 0)
    for step in _steps(path):
        empty: Any = [] if isinstance(step, int) else {}
        if isinstance(place, list):
            if key == len(place):
                place.append(empty)
            place = place[cast("int", key)]
        else:
            place = place.setdefault(key, empty)
        key = step
        if not isinstance(place, type(empty)) or (isinstance(key, int) and key > len(place)):
            raise ValueError(f"there is no place {path}")
    return place, key


def _steps(path: str) -> list[str | int]:
    if not path.startswith("$"):
        raise ValueError(f"{path} is no path")
    found: list[str | int] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path} is no path")
        name, index, *quoted = step.groups()
        found.append(int(index) if index else name or re.sub(r"\\(.)", r"\1", quoted[0] or quoted[1] or ""))
        position = step.end()
    return found
