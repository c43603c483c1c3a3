"""What the person, the model and the tools say: blocks, messages and token usage.

Plain values only, told apart by their `kind`; nothing here calls a model, runs a tool or draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

StopReason = Literal["stop", "length", "tool_use", "error", "aborted"]


@dataclass(frozen=True, slots=True)
class TextContent:
    """Text, as Markdown when a model wrote it."""

    text: str
    provider_data: dict[str, Any] | None = None
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ThinkingContent:
    """A model's reasoning; `redacted` when the provider sent it only in encrypted form, in `provider_data`."""

    thinking: str
    redacted: bool = False
    provider_data: dict[str, Any] | None = None
    kind: Literal["thinking"] = "thinking"


@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image: the bytes of a file of type `mime_type` (`image/png`, `image/jpeg`, …)."""

    data: bytes
    mime_type: str
    provider_data: dict[str, Any] | None = None
    kind: Literal["image"] = "image"

    __pydantic_config__: ClassVar[dict[str, str]] = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's pick of a function.

    `raw_arguments` holds what the model wrote when that is not a JSON object; `arguments` is then `{}`.
    """

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    raw_arguments: str | None = None
    provider_data: dict[str, Any] | None = None
    kind: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class ServerContent:
    """Something that the provider ran itself (web search, code execution, MCP): shown, replayed, never run here."""

    name: str
    data: Any
    provider_data: dict[str, Any] | None = None
    kind: Literal["server"] = "server"


Block = TextContent | ThinkingContent | ImageContent | ToolCall | ServerContent
InputBlock = TextContent | ImageContent


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response, or of a run: `input` excludes what was read from a cache, `output` includes reasoning."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """All tokens that were read or written."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person says: the prompt, a steering message, or a follow-up. A `str` as content is wrapped."""

    content: list[InputBlock]
    source: Literal["user", "steering", "follow_up"] = "user"
    provider_data: dict[str, Any] | None = None
    kind: Literal["user"] = "user"

    def __init__(
        self,
        content: str | list[InputBlock],
        source: Literal["user", "steering", "follow_up"] = "user",
        provider_data: dict[str, Any] | None = None,
        kind: Literal["user"] = "user",
    ) -> None:
        blocks = [TextContent(content)] if isinstance(content, str) else content
        for name, value in (("content", blocks), ("source", source), ("provider_data", provider_data), ("kind", kind)):
            object.__setattr__(self, name, value)

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One reply of a model: its blocks in the order they came, and how it ended.

    `finish` is the provider's own word for the end; `stop_reason` is ours.
    """

    content: list[Block]
    stop_reason: StopReason = "stop"
    finish: str | None = None
    error_message: str | None = None
    usage: Usage = Usage()
    provider: str = ""
    model: str = ""
    provider_data: dict[str, Any] | None = None
    kind: Literal["assistant"] = "assistant"

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The functions that the model picked, in order."""
        return [block for block in self.content if isinstance(block, ToolCall)]


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The one answer to one `ToolCall`."""

    tool_call_id: str
    tool_name: str
    content: list[InputBlock]
    is_error: bool = False
    details: dict[str, Any] | None = None
    provider_data: dict[str, Any] | None = None
    kind: Literal["tool_result"] = "tool_result"

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


Message = UserMessage | AssistantMessage | ToolResultMessage
