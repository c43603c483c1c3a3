"""Keeps keys, and text that no file can hold, out of all that is written: outputs, events, records, cassettes.

Functions from values to values; they read the environment at each call, since a notebook may set a key at any time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

T = TypeVar("T")

REDACTED = "[redacted]"

_KEY_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_SECRET_ACCESS_KEY")
_KEY_NAMES = frozenset({"AWS_BEARER_TOKEN_BEDROCK"})
# What is shorter is no key, and replacing it would spoil ordinary words.
_SHORTEST_KEY = 8


def redact(text: str, *extra: str) -> str:
    """`text` with every key of the environment, and every value in `extra`, replaced by `[redacted]`.

    A key is the value of a variable whose name ends like `OPENAI_API_KEY`, `HF_TOKEN` or `AWS_SECRET_ACCESS_KEY`.
    Values of fewer than 8 characters are left alone.

    Example:
        >>> redact("Incorrect API key provided: my-own-key.", "my-own-key")
        'Incorrect API key provided: [redacted].'
    """
    return _without(text, known_keys(*extra))


def known_keys(*extra: str | None) -> list[str]:
    """The keys of the environment and those in `extra`, the longest first: one may begin with another."""
    values = [*(value or "" for value in extra), *(os.environ[name] for name in os.environ if _holds_key(name))]
    keys = {key for value in values if len(key := value.strip()) >= _SHORTEST_KEY}
    return sorted(keys, key=len, reverse=True)


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


def _holds_key(name: str) -> bool:
    return name.upper().endswith(_KEY_SUFFIXES) or name in _KEY_NAMES
