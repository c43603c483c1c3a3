"""Keeps keys, and text that no file can hold, out of all that is written: outputs, events, records, cassettes.

Functions from values to values; they look at the environment at each call, since a notebook may set a key at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

T = TypeVar("T")

REDACTED = "[redacted]"

_KEY_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_SECRET_ACCESS_KEY")
_KEY_NAMES = frozenset({"AWS_BEARER_TOKEN_BEDROCK"})
# What is shorter is no key, and replacing it would spoil ordinary words.
_SHORTEST_KEY = 8

_read: tuple[dict[Any, Any], frozenset[str]] = ({}, frozenset())
"""The environment as it was when it was last read, and the keys in it."""


def redact(text: str, *extra: str) -> str:
    """`text` with every key of the environment, and every value in `extra`, replaced by `[redacted]`.

    A key is the value of a variable whose name is or ends like `API_KEY`, `HF_TOKEN` or `AWS_SECRET_ACCESS_KEY`; it is
    found also as JSON or a repr would write it. Values of fewer than 8 characters are left alone.

    Example:
        >>> redact("Incorrect API key provided: my-own-key.", "my-own-key")
        'Incorrect API key provided: [redacted].'
    """
    return _without(text, known_keys(*extra))


def known_keys(*extra: str | None) -> list[str]:
    """The keys of the environment and those in `extra`, each in all its forms, the longest first.

    One may begin with another.
    """
    return longest_first(keys_of_environment() | forms_of_keys(value or "" for value in extra))


def keys_of_environment() -> frozenset[str]:
    """The keys that are in the environment now; cheap enough to be asked at every write of a function."""
    global _read
    # To look each variable up would cost too much, and `os.environ` tells of no change.
    environment = cast("dict[Any, Any]", getattr(os.environ, "_data", os.environ))
    if _read[0] != environment:
        values = [value for name, value in os.environ.items() if _holds_key(name)]
        _read = (environment.copy(), forms_of_keys(values))
    return _read[1]


def forms_of_keys(values: Iterable[str]) -> frozenset[str]:
    """The keys among `values`, as they are and as they stand in JSON or a repr, or in JSON in JSON."""
    keys = {key for value in values if len(key := value.strip()) >= _SHORTEST_KEY}
    for _ in range(2):
        keys |= {form for key in keys for form in _escaped(key)}
    return frozenset(keys)


def longest_first(keys: Iterable[str]) -> list[str]:
    """`keys` in the order in which they have to be looked for."""
    return sorted(keys, key=len, reverse=True)


def beginning_of_key(text: str, keys: Sequence[str]) -> int:
    """From where on `text` may be a key once more text comes after it: up to there it is safe to be told, without keys.

    Example:
        >>> beginning_of_key("the key is sk-12", ["sk-12345"])
        11
    """
    start = len(text)
    for key in keys:
        at = max(0, len(text) - len(key) + 1) - 1
        while (at := text.find(key[0], at + 1, start)) >= 0:
            if key.startswith(text[at:]):
                start = at
    # A whole key that reaches into it must not be cut.
    while across := [
        at for key in keys if (at := text.find(key, max(0, start - len(key) + 1), start + len(key) - 1)) >= 0
    ]:
        start = min(across)
    return start


def writable(value: T, keys: Sequence[str]) -> T:
    """`value`, a tree of dataclasses, lists and dicts, with all its texts fit to be written down.

    Keys are replaced, and so are halves of characters, which no file can hold. What needs no change stays the same.
    """
    changed: Any = value
    if isinstance(value, str):
        changed = whole_characters(_without(value, keys))
    elif isinstance(value, list | tuple):
        items = [writable(item, keys) for item in value]
        if any(new is not old for new, old in zip(items, value, strict=True)):
            changed = type(value)(items)
    elif isinstance(value, dict):
        pairs = {writable(key, keys): writable(item, keys) for key, item in value.items()}
        if any(pairs.get(key, changed) is not item for key, item in value.items()):
            changed = pairs
    elif is_dataclass(value) and not isinstance(value, type):
        olds = {field.name: getattr(value, field.name) for field in fields(value)}
        news = {name: new for name, old in olds.items() if (new := writable(old, keys)) is not old}
        if news:
            changed = replace(value, **news)
    return cast("T", changed)


def whole_characters(text: str) -> str:
    """`text` with two halves of a character made one, and a half that stands alone replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _without(text: str, keys: Sequence[str]) -> str:
    for key in keys:
        if key in text:
            text = text.replace(key, REDACTED)
    return text


def _escaped(key: str) -> list[str]:
    # A repr escapes single quotes only where there are double ones too.
    both_quotes = repr("\"'" + key)[4:-1]
    return [json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], repr(key)[1:-1], both_quotes]


def _holds_key(name: str) -> bool:
    return f"_{name.upper()}".endswith(_KEY_SUFFIXES) or name in _KEY_NAMES
