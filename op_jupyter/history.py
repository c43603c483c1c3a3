"""What may be replayed to a provider: every call answered, nothing blank.

Pure functions from messages to messages; what one wire format alone demands stays with its provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, count
from typing import assert_never

from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    InputBlock,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

UNANSWERED = "No result: the run ended before this call was answered. It may have had side effects."
NO_OUTPUT = "(no output)"
NO_BEGINNING = "(What was said before is not here.)"


def replayable(messages: list[Message]) -> list[Message]:
    """`messages` as a provider accepts them, whatever happened while they came about.

    Each call is followed by its one result, in the order of the calls, and has an id that no other call of its message
    has; a result without a call, a blank block and a message that is blank altogether are left out.
    """
    replayed: list[Message] = []
    for position, message in enumerate(messages):
        match message:
            case UserMessage():
                content: list[InputBlock] = [block for block in message.content if not _is_blank(block)]
                if content:
                    replayed.append(replace(message, content=content))
            case AssistantMessage():
                if not replayed:
                    replayed.append(UserMessage(NO_BEGINNING))
                blocks = [block for block in message.content if not _is_blank(block)]
                if blocks:
                    safe = replace(message, content=_with_safe_calls(blocks))
                    replayed.append(safe)
                    replayed.extend(_answers(message.tool_calls, safe.tool_calls, messages[position + 1 :]))
            case ToolResultMessage():
                pass  # replayed behind the message that holds its call
            case _:
                assert_never(message)
    return replayed


def _answers(calls: list[ToolCall], replayed: list[ToolCall], later: Iterable[Message]) -> list[ToolResultMessage]:
    """The result of every one of `calls`, for the call that is `replayed`, in order, made up where there is none."""
    results: dict[str, list[ToolResultMessage]] = {}
    for candidate in later:
        if isinstance(candidate, AssistantMessage):
            break
        if isinstance(candidate, ToolResultMessage):
            results.setdefault(candidate.tool_call_id, []).append(candidate)
    answers: list[ToolResultMessage] = []
    for call, safe in zip(calls, replayed, strict=True):
        answer = ToolResultMessage(safe.id, safe.name, [TextContent(UNANSWERED)], is_error=True)
        if same_id := results.get(call.id):
            answer = replace(same_id.pop(0), tool_call_id=safe.id, tool_name=safe.name)
        content = [block for block in answer.content if not _is_blank(block)] or [TextContent(NO_OUTPUT)]
        answers.append(replace(answer, content=content))
    return answers


def _with_safe_calls(blocks: list[Block]) -> list[Block]:
    """`blocks`, where each call has a name that a provider takes, and an id of its own."""
    ids: set[str] = set()
    safe: list[Block] = []
    for block in blocks:
        if isinstance(block, ToolCall):
            made_up = (f"{block.id or 'call'}_{number}" for number in count(2))
            id = next(id for id in chain([block.id], made_up) if id and id not in ids)
            ids.add(id)
            block = replace(block, id=id, name=_safe_name(block.name))
        safe.append(block)
    return safe


def _safe_name(name: str) -> str:
    """`name`, or what stands for it where the model made it up, and a provider would refuse to be sent it."""
    return re.sub("[^a-zA-Z0-9_-]", "_", name)[:64] or "_"


def _is_blank(block: Block) -> bool:
    """Whether a provider would refuse the block as empty; one that carries a signature is not."""
    if block.provider_data:
        return False
    match block:
        case TextContent():
            return not block.text.strip()
        case ThinkingContent():
            return not block.thinking.strip() and not block.redacted
        case ImageContent() | ToolCall() | ServerContent():
            return False
        case _:
            assert_never(block)
