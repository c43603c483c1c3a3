"""What every wire format is read and written with: server-sent events, and JSON of any quality.

Pure functions; nothing here knows a provider.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, cast

_MOST_LEVELS = 100


def sse_data(body: Iterable[bytes]) -> Iterator[str]:
    """The data of each server-sent event in `body`."""
    data: list[bytes] = []
    for line in lines(body):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data).decode("utf-8", "replace")
            data = []


def lines(body: Iterable[bytes]) -> Iterator[bytes]:
    r"""The lines of `body`, without their ends; only `\n`, `\r\n` and `\r` end a line, and what has no end is one."""
    pending = b""
    for piece in chain(body, [b"\n"]):
        found = (pending + piece).splitlines(keepends=True)
        # What ends in \r may go on with \n.
        pending = found.pop() if found and not found[-1].endswith(b"\n") else b""
        for line in found:
            yield line.rstrip(b"\r\n")


def from_json(text: str) -> Any:
    """The value of JSON that a model or a server wrote, which may break a string by a bare newline or half a character.

    Raises:
        ValueError: when it is no JSON.
    """
    import pydantic_core

    try:
        return pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError:
        try:
            # Through both, which also refuses what would be nested too deeply for anyone who writes it.
            return pydantic_core.from_json(to_json(json.loads(text, strict=False, parse_constant=_refuse)))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def to_json(value: Any) -> bytes:
    """`value` as JSON, in UTF-8.

    Raises:
        TypeError: when something in it has no place in JSON.
    """
    import pydantic_core

    try:
        return pydantic_core.to_json(value)
    except ValueError:
        return pydantic_core.to_json(_without_lone_surrogates(value))


def _without_lone_surrogates(value: Any) -> Any:
    """The JSON value `value` with every half of a character, which UTF-8 cannot write, replaced by U+FFFD."""
    utf16 = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(utf16.decode("utf-16-le", "replace"))


def as_dict(value: Any) -> dict[str, Any]:
    """A value of JSON, where it is an object; else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> Sequence[Any]:
    """A value of JSON, where it is an array; else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else []


def as_int(value: Any) -> int:
    """A value of JSON, where it is a whole number; else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def as_str(value: Any) -> str:
    """A value of JSON, where it is a string; else an empty one."""
    return value if isinstance(value, str) else ""


def parse_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The `arguments` and the `raw_arguments` of a `ToolCall` whose arguments were streamed as `text`.

    What is nested more than 100 levels deep counts as no arguments: a record that holds it could not be read again.

    Example:
        >>> parse_arguments('{"a": 1}'), parse_arguments(""), parse_arguments("[1]")
        (({'a': 1}, None), ({}, None), ({}, '[1]'))
    """
    if not text.strip():
        return {}, None
    # Some servers open with an empty object and then send the real one.
    for candidate in (text, text.lstrip().removeprefix("{}")):
        with suppress(ValueError):
            value = from_json(candidate)
            if isinstance(value, dict) and not _is_deep(value):
                return as_dict(value), None
    return {}, text


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MOST_LEVELS + 1):
        level = [part for item in level for part in (as_dict(item).values() or as_list(item))]
    return bool(level)
