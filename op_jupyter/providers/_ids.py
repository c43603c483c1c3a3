"""The ids of calls, which one provider gives and another has to take.

A pure function; the loop sees to it that each call has an id of its own.
"""

from __future__ import annotations

import re
from hashlib import sha256


def call_id(given: str, longest: int = 64) -> str:
    """`given`, or what stands for it where it is longer than `longest` or has characters that a provider may refuse.

    It comes out the same for the call and for its result, and different for different ids.

    Example:
        >>> call_id("toolu_01"), call_id("functions.add:0")
        ('toolu_01', 'call_2aab2b9e6b10fe772400632ac9927cd9')
    """
    if len(given) <= longest and re.fullmatch("[a-zA-Z0-9_-]+", given):
        return given
    return f"call_{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
