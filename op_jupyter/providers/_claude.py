"""What Claude asks of a conversation, over Anthropic's messages and over Bedrock's Converse alike.

Pure functions; neither wire format is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from op_jupyter.messages import AssistantMessage, Message
from op_jupyter.providers._shared import ProviderError
from op_jupyter.providers._wire import as_dict, as_list, to_json


def digest(*values: Any) -> str:
    """What stands for JSON `values`: the same for the same ones."""
    return sha256(to_json(values)).hexdigest()[:16]


def bound(basis: str, before: str, text: str) -> dict[str, str]:
    """What is kept beside thinking that came as `text`, to know whether it can be sent back.

    Newer models refuse what another one has thought, or what was thought under another system prompt or other tools:
    these are the `basis`. They refuse it too where it has changed itself, or what was said `before`.
    """
    return {"basis": basis} | ({"seal": digest(before, text)} if before else {})


def is_bound(own: Mapping[str, Any], basis: str, before: str, text: str) -> bool:
    """Whether the thinking with what is kept in `own` can be sent back as `text`."""
    return own.get("basis") == basis and own.get("seal") in (None, digest(before, text))


def cannot_be_forced() -> ProviderError:
    """The failure that a model is to think and its pick is forced, which does not go together."""
    wish = 'leave tool_choice at "auto", or take thinking out of the options'
    return ProviderError(f"Claude cannot think and be made to pick a function: {wish}", "setup")


def last_turns_marked(turns: Any, mark: Callable[[Any], Any]) -> list[Any]:
    """The `turns` of a body, with the content as `mark` makes it in those after which a cache is looked for.

    From a mark the server looks back over 20 blocks only: so the turn that was the last one before has its mark again.
    """
    found = as_list(turns)
    asked = [position for position, turn in enumerate(found) if as_dict(turn).get("role") == "user"]
    return [
        turn | {"content": mark(turn["content"])} if position in asked[-2:] else turn
        for position, turn in enumerate(found)
    ]


def called_functions(messages: list[Message]) -> list[str]:
    """The names of the functions that were called, each once: a conversation with calls is refused without tools."""
    replies = (message for message in messages if isinstance(message, AssistantMessage))
    return list(dict.fromkeys(call.name for reply in replies for call in reply.tool_calls))
