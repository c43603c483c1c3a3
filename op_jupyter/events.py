"""What happens in a run: the events a provider streams, and the `AgentEvent…` that the loop emits.

Plain values only, JSON-safe and told apart by their `kind`; what an `AgentEvent…` means is said in `record.fold` alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, assert_never

from op_jupyter.errors import ErrorKind
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    Message,
    ServerContent,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)

# ---------------------------------------------------------------- what a provider streams


@dataclass(frozen=True, slots=True)
class BlockStart:
    """The block at position `index` of the message has begun; `block` is what is known of it so far."""

    index: int
    block: Block
    kind: Literal["block_start"] = "block_start"


@dataclass(frozen=True, slots=True)
class BlockDelta:
    """More of the block at `index`: its text, its thinking, or the JSON text of its arguments."""

    index: int
    text: str
    kind: Literal["block_delta"] = "block_delta"


@dataclass(frozen=True, slots=True)
class BlockEnd:
    """The block at `index` is complete; `block` is the whole of it and replaces what the deltas told."""

    index: int
    block: Block
    kind: Literal["block_end"] = "block_end"


@dataclass(frozen=True, slots=True)
class StreamRetry:
    """The request failed before any output, and is sent again after `delay` seconds. `attempt` counts from 1."""

    attempt: int
    delay: float
    reason: str
    kind: Literal["stream_retry"] = "stream_retry"


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The closing event: said exactly once, last. With `stop_reason="error"` it has a message and its kind.

    `provider` and `model` are said where they are others than the request was sent to.
    """

    stop_reason: StopReason
    finish: str | None = None
    usage: Usage = Usage()
    error_message: str | None = None
    error_kind: ErrorKind | None = None
    provider: str | None = None
    model: str | None = None
    provider_data: dict[str, Any] | None = None
    kind: Literal["stream_end"] = "stream_end"


BlockEvent = BlockStart | BlockDelta | BlockEnd
StreamEvent = BlockEvent | StreamRetry | StreamEnd


def apply_update(content: list[Block], update: BlockEvent) -> None:
    """Let the `content` of a message grow by `update`, in place."""
    match update:
        case BlockStart():
            content.insert(update.index, update.block)
        case BlockDelta():
            content[update.index] = _grown(content[update.index], update.text)
        case BlockEnd():
            content[update.index] = update.block
        case _:
            assert_never(update)


def _grown(block: Block, text: str) -> Block:
    match block:
        case TextContent():
            return replace(block, text=block.text + text)
        case ThinkingContent():
            return replace(block, thinking=block.thinking + text)
        case ToolCall():
            return replace(block, raw_arguments=(block.raw_arguments or "") + text)
        case ImageContent() | ServerContent():
            return block
        case _:
            assert_never(block)


def stream_of(message: AssistantMessage, error_kind: ErrorKind | None = None) -> Iterator[StreamEvent]:
    """The events by which a provider would have streamed `message`, its text and thinking in words."""
    for index, block in enumerate(message.content):
        match block:
            case TextContent():
                yield BlockStart(index, replace(block, text=""))
                for word in re.findall(r"\s*\S+\s*", block.text):
                    yield BlockDelta(index, word)
            case ThinkingContent():
                yield BlockStart(index, replace(block, thinking=""))
                for word in re.findall(r"\s*\S+\s*", block.thinking):
                    yield BlockDelta(index, word)
            case ToolCall():
                yield BlockStart(index, ToolCall(block.id, block.name))
            case ImageContent() | ServerContent():
                yield BlockStart(index, block)
            case _:
                assert_never(block)
        yield BlockEnd(index, block)
    yield StreamEnd(
        message.stop_reason,
        finish=message.finish,
        usage=message.usage,
        error_message=message.error_message,
        error_kind=error_kind,
        provider=message.provider,
        model=message.model,
        provider_data=message.provider_data,
    )


def message_of(content: list[Block], end: StreamEnd, provider: str, model: str) -> AssistantMessage:
    """The message that a stream of this `content` and closing event came to, asked of `model` at `provider`."""
    return AssistantMessage(
        content,
        stop_reason=end.stop_reason,
        finish=end.finish,
        error_message=end.error_message,
        usage=end.usage,
        provider=provider if end.provider is None else end.provider,
        model=model if end.model is None else end.model,
        provider_data=end.provider_data,
    )


# ---------------------------------------------------------------- what the loop emits


RunStopReason = StopReason | Literal["max_iterations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _AgentEvent:
    """`parent_call_id` is the call a nested run happens under; `time` is in seconds since the epoch."""

    run_id: str
    parent_call_id: str | None = None
    time: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventAgentStart(_AgentEvent):
    """A run begins. `parent_run_id` names the run that a nested one belongs to; `history` is what was said before."""

    parent_run_id: str | None = None
    model: str = ""
    tools: list[str] = field(default_factory=list)
    history: list[Message] = field(default_factory=list)
    kind: Literal["agent_start"] = "agent_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventAgentEnd(_AgentEvent):
    """The run is over. `undelivered` steering messages have had their own events before."""

    stop_reason: RunStopReason
    error: str | None = None
    error_kind: ErrorKind | None = None
    kind: Literal["agent_end"] = "agent_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventTurnStart(_AgentEvent):
    """Round `round` begins; rounds count from 1 over the whole `exec`."""

    round: int
    kind: Literal["turn_start"] = "turn_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventTurnEnd(_AgentEvent):
    """Round `round` is over, its calls all answered."""

    round: int
    kind: Literal["turn_end"] = "turn_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventMessageStart(_AgentEvent):
    """A message begins: the model's, of which only the speaker is known yet, or a person's, which is whole."""

    message: UserMessage | AssistantMessage
    kind: Literal["message_start"] = "message_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventMessageUpdate(_AgentEvent):
    """The reply grows by `update`."""

    update: BlockEvent
    kind: Literal["message_update"] = "message_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventMessageEnd(_AgentEvent):
    """A message is complete, and now stands in the conversation."""

    message: UserMessage | AssistantMessage
    kind: Literal["message_end"] = "message_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventToolStart(_AgentEvent):
    """The turn of `call` has come: it is looked up, its arguments are validated, and its function runs."""

    call: ToolCall
    kind: Literal["tool_start"] = "tool_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventToolUpdate(_AgentEvent):
    """The running function wrote something: `output` is a notebook output (nbformat's `stream`, `display_data`)."""

    call_id: str
    output: dict[str, Any]
    kind: Literal["tool_update"] = "tool_update"


ToolOutcome = Literal["ok", "error", "skipped", "not_run", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventToolEnd(_AgentEvent):
    """`call` is answered by `message`; `outcome` says how that came about."""

    call: ToolCall
    message: ToolResultMessage
    outcome: ToolOutcome
    kind: Literal["tool_end"] = "tool_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventRetry(_AgentEvent):
    """The provider failed before any output; the request is sent again after `delay` seconds."""

    attempt: int
    delay: float
    reason: str
    kind: Literal["retry"] = "retry"


Approval = Literal["approved", "always", "denied", "earlier"]
"""`"always"`: this call, and later ones of its function in the same run; `"earlier"`: one of the latter, not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventApproval(_AgentEvent):
    """A person is asked whether `call` may run, or has answered, or had answered for all calls of its function."""

    call: ToolCall
    state: Literal["asked"] | Approval
    kind: Literal["approval"] = "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEventSteering(_AgentEvent):
    """A message typed into the running loop was queued, went into a request, or came too late for one."""

    message: UserMessage
    state: Literal["queued", "delivered", "undelivered"]
    kind: Literal["steering"] = "steering"


AgentEvent = (
    AgentEventAgentStart
    | AgentEventAgentEnd
    | AgentEventTurnStart
    | AgentEventTurnEnd
    | AgentEventMessageStart
    | AgentEventMessageUpdate
    | AgentEventMessageEnd
    | AgentEventToolStart
    | AgentEventToolUpdate
    | AgentEventToolEnd
    | AgentEventRetry
    | AgentEventApproval
    | AgentEventSteering
)


def growth(event: AgentEvent) -> tuple[str, str] | None:
    """What text grows by `event`, and by what: a block of the reply, or what a call writes into one stream."""
    match event:
        case AgentEventMessageUpdate(update=BlockDelta(index=index, text=text)):
            return f"block {index}", text
        case AgentEventToolUpdate(output={"output_type": "stream", "name": name, "text": text}):
            return f"{name} of {event.call_id}", text
        case _:
            return None


def with_growth(event: AgentEvent, text: str) -> AgentEvent:
    """`event`, of which there is a `growth`, with this text."""
    match event:
        case AgentEventMessageUpdate(update=BlockDelta() as delta):
            return replace(event, update=replace(delta, text=text))
        case AgentEventToolUpdate():
            return replace(event, output={**event.output, "text": text})
        case _:
            raise ValueError(f"No text grows by an event of kind {event.kind!r}")
