"""What may be replayed to a provider: every call answered, nothing blank.

Pure functions from messages to messages; what one wire format alone demands stays with its provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
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


def replayable(messages: list[Message]) -> list[Message]:
    """`messages` as a provider accepts them, whatever happened while they came about.

    Each call is followed by its one result, in the order of the calls; a result without a call, a blank block and a
    message that is blank altogether are left out.
    """
    replayed: list[Message] = []
    for position, message in enumerate(messages):
        match message:
            case UserMessage():
                content: list[InputBlock] = [block for block in message.content if not _is_blank(block)]
                if content:
                    replayed.append(replace(message, content=content))
            case AssistantMessage():
                blocks = [block for block in message.content if not _is_blank(block)]
                if blocks:
                    replayed.append(replace(message, content=[_with_safe_name(block) for block in blocks]))
                    replayed.extend(_answers(message, messages[position + 1 :]))
            case ToolResultMessage():
                pass  # replayed behind the message that holds its call
            case _:
                assert_never(message)
    return replayed


def _answers(message: AssistantMessage, later: Iterable[Message]) -> list[ToolResultMessage]:
    """The result of every call of `message`, in order, made up where there is none."""
    results: dict[str, ToolResultMessage] = {}
    for candidate in later:
        if isinstance(candidate, AssistantMessage):
            break
        if isinstance(candidate, ToolResultMessage):
            results.setdefault(candidate.tool_call_id, candidate)
    answers: list[ToolResultMessage] = []
    for call in message.tool_calls:
        unanswered = ToolResultMessage(call.id, call.name, [TextContent(UNANSWERED)], is_error=True)
        answer = results.get(call.id, unanswered)
        content = [block for block in answer.content if not _is_blank(block)] or [TextContent(NO_OUTPUT)]
        answers.append(replace(answer, tool_name=_safe_name(call.name), content=content))
    return answers


def _with_safe_name(block: Block) -> Block:
    return replace(block, name=_safe_name(block.name)) if isinstance(block, ToolCall) else block


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
