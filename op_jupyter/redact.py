"""Keeps keys out of everything that is written: outputs, events, records, errors, cassettes.

One function from text to text; it reads the environment at each call, since a notebook may set a key at any time.
"""

from __future__ import annotations

import os

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
    candidates = [*extra, *(os.environ.get(name, "") for name in os.environ if _holds_key(name))]
    keys = {key for value in candidates if len(key := value.strip()) >= _SHORTEST_KEY and key in text}
    # The longest first: one key may begin with another.
    for key in sorted(keys, key=len, reverse=True):
        text = text.replace(key, REDACTED)
    return text


def _holds_key(name: str) -> bool:
    return name.upper().endswith(_KEY_SUFFIXES) or name in _KEY_NAMES
