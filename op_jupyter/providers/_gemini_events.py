"""The reply of a server that speaks Gemini: from its chunks to our events.

A pure function over the JSON texts that hold the chunks; no network here.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEvent
from op_jupyter.messages import (
    Block,
    ImageContent,
    ServerContent,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from op_jupyter.providers._gemini_arguments import arguments_of
from op_jupyter.providers._messages import kept
from op_jupyter.providers._replies import broke_off, closing, event_in
from op_jupyter.providers._shared import ProviderError, http_error
from op_jupyter.providers._wire import as_dict, as_int, as_list, as_str, to_json

PROVIDER = "gemini"

# What is said of a whole reply, and is no part of it.
METADATA = ("groundingMetadata", "urlContextMetadata", "citationMetadata")

# What is said of a part, beside what it holds.
_ABOUT_A_PART = ("thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution")

_CUT = ("MAX_TOKENS", "CONTINUATION")
_FILTERED = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
    "MODEL_ARMOR",
)
# What the same model may do better the next time.
_MALFORMED = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL")
_FAILED = ("LANGUAGE", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE")


def read_events(data: Iterable[str]) -> Iterator[StreamEvent]:
    """The events of a reply that comes as `data`, JSON texts of one chunk or of a list of them.

    Raises:
        ProviderError: when it fails before any output, in a way that may pass.
    """
    reply = _Reply()
    failure: ProviderError | None = None
    try:
        for text in data:
            yield from reply.add(text)
            if reply.is_complete:
                break
        failure = reply.failure()
    except ProviderError as error:
        failure = error
    if failure and failure.retry and not reply.count:
        raise failure
    yield from reply.end(failure)


@dataclass(slots=True)
class _Said:
    """A text or a thought that still grows. `signed` holds the start, the end and the signature of each signed part."""

    index: int
    is_thought: bool
    pieces: list[str] = field(default_factory=list[str])
    length: int = 0
    signed: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])

    def block(self) -> Block:
        text, extras = "".join(self.pieces), {"signed": [list(part) for part in self.signed]} if self.signed else {}
        if self.is_thought:
            return ThinkingContent(text, provider_data=kept(PROVIDER, extras))
        return TextContent(text, kept(PROVIDER, extras))


@dataclass(slots=True)
class _Call:
    """A call that may still grow: by `partial` arguments, each with its place."""

    index: int
    id: str
    name: str
    arguments: Any = None
    partial: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    extras: dict[str, Any] = field(default_factory=dict[str, Any])

    def block(self) -> Block:
        try:
            arguments, raw = arguments_of(self.arguments, self.partial), None
        except ValueError:
            arguments, raw = {}, to_json(self.partial or self.arguments).decode()
        return ToolCall(self.id, self.name, arguments, raw, kept(PROVIDER, self.extras))


class _Reply:
    """What has come of a reply."""

    def __init__(self) -> None:
        self.count = 0
        self.calls = 0
        self.open: _Said | _Call | None = None
        self.metadata: dict[str, Any] = {}
        self.usage: dict[str, Any] = {}
        self.finish: str | None = None
        self.why = ""
        self.blocked = ""
        self.is_complete = False

    def add(self, text: str) -> Iterator[StreamEvent]:
        value = event_in(text)
        for item in as_list(value) or [value]:
            chunk = as_dict(item)
            yield from self._chunk(as_dict(chunk.get("response")) or chunk)

    def _chunk(self, chunk: dict[str, Any]) -> Iterator[StreamEvent]:
        if error := as_dict(chunk.get("error")):
            raise http_error(as_int(error.get("code")) or None, as_str(error.get("message")), code=error_code(error))
        usage = as_dict(chunk.get("usageMetadata"))
        self.usage |= {name: value for name, value in usage.items() if value is not None}
        feedback = as_dict(chunk.get("promptFeedback"))
        if blocked := as_str(feedback.get("blockReason")):
            self.blocked, self.why = blocked, as_str(feedback.get("blockReasonMessage"))
        for candidate in map(as_dict, as_list(chunk.get("candidates"))):
            if as_int(candidate.get("index")) == 0:
                yield from self._candidate(candidate)
        # The last chunk has both; where the count comes later, it is waited for.
        self.is_complete = bool((self.finish or self.blocked) and usage)

    def _candidate(self, candidate: dict[str, Any]) -> Iterator[StreamEvent]:
        for part in as_list(as_dict(candidate.get("content")).get("parts")):
            yield from self._part(as_dict(part))
        self.metadata |= {name: found for name in METADATA if (found := as_dict(candidate.get(name)))}
        if finish := as_str(candidate.get("finishReason")):
            ratings = map(as_dict, as_list(candidate.get("safetyRatings")))
            blocked = [as_str(rating.get("category")) for rating in ratings if rating.get("blocked")]
            self.finish, self.why = finish, as_str(candidate.get("finishMessage")) or ", ".join(blocked)

    def _part(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        kinds = [name for name in ("functionCall", "text", *part) if name in part and name not in _ABOUT_A_PART]
        kind = kinds[0] if kinds else "text"
        extras = {name: value for name, value in part.items() if name in _ABOUT_A_PART}
        match kind:
            case "text":
                yield from self._say(as_str(part.get("text")), extras)
            case "functionCall":
                yield from self._call(as_dict(part[kind]), extras)
            case _:
                yield from self._whole(_block(kind, part[kind], extras))

    def _say(self, text: str, extras: dict[str, Any]) -> Iterator[StreamEvent]:
        signature, is_thought = as_str(extras.get("thoughtSignature")), extras.get("thought") is True
        if not (text or signature):
            return
        said = self.open
        if not isinstance(said, _Said) or said.is_thought != is_thought:
            yield from self._close()
            said = self.open = _Said(self._position(), is_thought)
            yield BlockStart(said.index, said.block())
        if signature:
            said.signed.append((said.length, said.length + len(text), signature))
        if text:
            said.pieces.append(text)
            said.length += len(text)
            yield BlockDelta(said.index, text)

    def _call(self, said: dict[str, Any], extras: dict[str, Any]) -> Iterator[StreamEvent]:
        if name := as_str(said.get("name")):
            yield from self._close()
            self.open = _Call(self._position(), as_str(said.get("id")), name)
            self.calls += 1
            yield BlockStart(self.open.index, ToolCall(self.open.id, name))
        call = self.open
        if not isinstance(call, _Call):
            return  # the end of one that has ended
        if said.get("args") is not None:
            call.arguments = said["args"]
        call.partial += map(as_dict, as_list(said.get("partialArgs")))
        call.extras |= extras
        if not said.get("willContinue"):
            yield from self._close()

    def _whole(self, block: Block) -> Iterator[StreamEvent]:
        yield from self._close()
        index = self._position()
        yield BlockStart(index, block)
        yield BlockEnd(index, block)

    def _close(self) -> Iterator[StreamEvent]:
        if self.open is not None:
            yield BlockEnd(self.open.index, self.open.block())
        self.open = None

    def _position(self) -> int:
        self.count += 1
        return self.count - 1

    def end(self, failure: ProviderError | None) -> Iterator[StreamEvent]:
        yield from self._close()
        for name, found in self.metadata.items():
            yield from self._whole(ServerContent(name, found, kept(PROVIDER, {"type": name})))
        yield closing(
            failure,
            self._stop_reason(),
            finish=self.finish,
            usage=_usage(self.usage),
        )

    def failure(self) -> ProviderError | None:
        """What its end says went wrong, when all of it has come."""
        if self.blocked:
            return ProviderError(f"The prompt was blocked ({self.blocked}){self._reason('say it otherwise')}", "filter")
        if self.finish is None:
            return broke_off()
        if self.finish in _FILTERED:
            wish = "say it otherwise, or change safety_settings"
            return ProviderError(f"The reply was blocked ({self.finish}){self._reason(wish)}", "filter")
        if self.finish in _FAILED or self.finish in _MALFORMED:
            message = f"The model failed ({self.finish}){self._reason('run again')}"
            return ProviderError(message, "provider", retry=self.finish in _MALFORMED)
        return None

    def _reason(self, wish: str) -> str:
        return f": {self.why or wish}"

    def _stop_reason(self) -> StopReason:
        if self.finish in _CUT:
            return "length"
        return "tool_use" if self.calls else "stop"


def _block(kind: str, value: Any, extras: dict[str, Any]) -> Block:
    """A part that comes whole: an image, or something that the server ran."""
    blob = as_dict(value)
    mime_type = as_str(blob.get("mimeType"))
    if kind == "inlineData" and mime_type.startswith("image/"):
        try:
            return ImageContent(b64decode(as_str(blob.get("data"))), mime_type, kept(PROVIDER, extras))
        except ValueError:
            pass  # shown as it came
    return ServerContent(as_str(blob.get("toolType")) or kind, value, kept(PROVIDER, {"type": kind} | extras))


def error_code(error: dict[str, Any]) -> str:
    """The server's word for an error object; what is used up for a whole day is told from what is for a minute."""
    status = as_str(error.get("status"))
    limits = [as_dict(one) for detail in _details(error) for one in as_list(detail.get("violations"))]
    if any("PerDay" in as_str(limit.get("quotaId")) for limit in limits):
        return f"{status} (quota of the day)"
    return status


def retry_delay(error: dict[str, Any]) -> dict[str, str]:
    """The header that says the same as the error object about when to try again."""
    delays = [as_str(detail.get("retryDelay")).removesuffix("s") for detail in _details(error)]
    return next(({"retry-after": delay} for delay in delays if delay), {})


def is_refused_key(error: dict[str, Any]) -> bool:
    """Whether it is the key that the error object is about, which has the status of a bad request."""
    reasons = [as_str(detail.get("reason")) for detail in _details(error)]
    return any(reason.startswith("API_KEY_") for reason in reasons) or "API key" in as_str(error.get("message"))


def _details(error: dict[str, Any]) -> list[dict[str, Any]]:
    return [as_dict(detail) for detail in as_list(error.get("details"))]


def _usage(usage: dict[str, Any]) -> Usage:
    cached, thoughts = as_int(usage.get("cachedContentTokenCount")), as_int(usage.get("thoughtsTokenCount"))
    # The prompt includes what was cached, but not what tools of the server found; the candidates no thoughts.
    read = as_int(usage.get("promptTokenCount")) + as_int(usage.get("toolUsePromptTokenCount"))
    return Usage(
        input=max(read - cached, 0),
        output=as_int(usage.get("candidatesTokenCount")) + thoughts,
        cache_read=cached,
        reasoning=thoughts,
    )
