"""What every wire format needs of messages: ids of calls that it takes, what a provider left at a part, texts.

Pure functions; nothing here knows a provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from op_jupyter.messages import Block, InputBlock, Message, TextContent
from op_jupyter.providers._wire import as_dict

_ALLOWED_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


def call_id(given: str, allowed: re.Pattern[str] = _ALLOWED_ID) -> str:
    """The id of a call as it was `given`, or what stands for one that is not `allowed`.

    It comes out the same for the call and for its result, and different for different ids.

    Example:
        >>> call_id("toolu_01"), call_id("functions.add:0")
        ('toolu_01', 'call_2aab2b9e6b10fe772400632ac9927cd9')
    """
    if allowed.fullmatch(given):
        return given
    return f"call_{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def own_of(part: Message | Block, provider: str) -> dict[str, Any]:
    """What `provider` left at `part`, to have it back."""
    return as_dict((part.provider_data or {}).get(provider))


def kept(provider: str, extras: dict[str, Any]) -> dict[str, Any] | None:
    """The `provider_data` by which `provider` gets its `extras` back."""
    return {provider: extras} if extras else None


def join_text(blocks: Iterable[InputBlock]) -> str:
    """The texts among `blocks`, as paragraphs."""
    return "\n\n".join(block.text for block in blocks if isinstance(block, TextContent))
