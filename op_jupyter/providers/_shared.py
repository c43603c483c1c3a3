"""What every provider needs, whatever its wire format: retries, leaving a request, kinds of errors.

Nothing here knows a provider or its SDK, and no provider repeats what stands here.
"""

from __future__ import annotations

import inspect
import math
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import count
from types import CodeType, FrameType
from typing import cast

from op_jupyter.errors import ErrorKind, RunError
from op_jupyter.events import StreamEnd, StreamEvent, StreamRetry
from op_jupyter.providers import Connection, Request
from op_jupyter.redact import redact

LONGEST_WAIT = 30.0
CONNECT_TIMEOUT = 10.0

# -------------------------------------------------------------------- failures


class ProviderError(Exception):
    """A request that failed: what becomes a retry, or the closing event.

    Attributes:
        kind: the kind of the `RunError` it comes to.
        retry: whether the same request may succeed when it is sent again.
        retry_after: the seconds that the server asks to wait, when it says so.
    """

    def __init__(self, message: str, kind: ErrorKind, *, retry: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.retry = retry
        self.retry_after = retry_after


_KINDS: dict[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    429: "rate_limit",
}
_CONTEXT_MARKS = (
    "context_length",
    "context_size",
    "context length",
    "context limit",
    "context size",
    "context window",
    "input is too long",
    "input token count",
    "input tokens exceed",
    "prompt is too long",
)


def http_error(
    status: int | None,
    message: str,
    *,
    code: str = "",
    server: str = "The server",
    headers: Mapping[str, str] | None = None,
    key_hint: str = "",
) -> ProviderError:
    """The failure that an error response stands for, or an error event in a stream, which may bear no status.

    `code` is the provider's own word for it, `server` the address that answered, `key_hint` how to give another key.
    """
    kind = _kind(status, code, message)
    words = [str(word) for word in (status, code) if word]
    said = f"{server} answered {' '.join(words) or 'an error'}"
    if status == HTTPStatus.UNAUTHORIZED:
        # What it says of a key that it refuses may hold parts of the key.
        return ProviderError(f"{said}: the key was refused{key_hint and ', '}{key_hint}", kind)
    if not message.strip() or message.lstrip().startswith("<"):
        message = next((known.phrase for known in HTTPStatus if known == status), "no reason given")
    may_pass = "invalid" not in code if status is None else status in (408, 409, 429) or status >= 500
    retry = may_pass and kind not in ("quota", "filter", "context")
    return ProviderError(f"{said}: {message}", kind, retry=retry, retry_after=_retry_after(headers or {}))


def _kind(status: int | None, code: str, message: str) -> ErrorKind:
    code = code.lower()
    if "quota" in code or "billing" in code:
        return "quota"
    if "content_filter" in code or "content_policy" in code:
        return "filter"
    if status in (None, 400, 413, 422) and any(mark in f"{code} {message}".lower() for mark in _CONTEXT_MARKS):
        return "context"
    if status is None:
        return "rate_limit" if "rate_limit" in code else "provider"
    return _KINDS.get(status, "provider")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks to wait; `None` when it asks nothing that makes sense."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def one_line(text: str, limit: int = 400) -> str:
    """`text` without line breaks, and cut where it is very long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"


# -------------------------------------------------------------------- one request, sent until it is answered


def stream_with_retries(request: Request, attempt: Callable[[], Iterator[StreamEvent]]) -> Iterator[StreamEvent]:
    """The events of `attempt`, which is called again when it fails before its first event in a way that may pass.

    `attempt` may raise at any time; what is not sent again becomes the closing event. `request.on_abandon` gets what
    ends all of it at once: a wait between two attempts, and any network call that is under way.
    """
    abandoned, over = threading.Event(), threading.Event()
    reader = threading.get_ident()

    def abandon() -> None:
        abandoned.set()
        threading.Thread(target=_release, args=(reader, over), name="op_jupyter release", daemon=True).start()

    request.on_abandon.append(abandon)
    try:
        for number in count(1):
            started = False
            try:
                for event in attempt():
                    started = True
                    yield _finished(event, request) if isinstance(event, StreamEnd) else event
                return
            except ProviderError as error:
                failure = error
            except Exception as error:
                failure = ProviderError(f"{type(error).__name__}: {error}", "provider")
            if abandoned.is_set():
                return
            delay = _delay(failure, number)
            too_long = failure.retry and delay > LONGEST_WAIT
            if started or too_long or not failure.retry or number > request.connection.max_retries:
                wish = f" (it asks to wait {delay:,.0f} s: run again then)" if too_long else ""
                end = StreamEnd("error", error_message=f"{failure}{wish}", error_kind=failure.kind)
                yield _finished(end, request)
                return
            yield StreamRetry(number, delay, _clean(str(failure), request.connection))
            if abandoned.wait(delay):
                return
    finally:
        over.set()


def listed(connection: Connection, ask: Callable[[], Iterable[str]]) -> list[str]:
    """The names of models that `ask` gives, in order.

    Raises:
        RunError: of the kind of whatever it raises, in one line without keys.
    """
    try:
        return sorted(ask())
    except ProviderError as error:
        raise RunError(_clean(str(error), connection), kind=error.kind) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # an SDK does not look at what it reads
        reason = _clean(f"{type(error).__name__}: {error}", connection)
        message = f"The server did not answer with a list of models ({reason}): is base_url right?"
        raise RunError(message, kind="provider") from None
    except Exception as error:
        raise RunError(_clean(f"{type(error).__name__}: {error}", connection), kind="provider") from None


def _delay(failure: ProviderError, number: int) -> float:
    if failure.retry_after is not None:
        return failure.retry_after
    return min(LONGEST_WAIT, 0.5 * 2.0 ** min(number - 1, 10)) * random.uniform(0.75, 1)


def _finished(end: StreamEnd, request: Request) -> StreamEnd:
    message = end.error_message and _clean(end.error_message, request.connection)
    return replace(end, error_message=message)


def _clean(text: str, connection: Connection) -> str:
    return one_line(redact(text, connection.api_key or ""))


# -------------------------------------------------------------------- leaving a blocked call


def drain(body: Iterator[bytes]) -> None:
    """Read what is left of `body` behind the closing event, so that its connection can be used again.

    It blocks where the server sends no end: whoever has had the closing event leaves the request then.
    """
    with suppress(Exception):
        for _ in body:
            pass


def _release(thread: int, over: threading.Event) -> None:
    """End the network calls of `thread` in its request, until that is over.

    More than once, since it may be between two calls. The socket is found on the thread's stack: before the headers
    have come no SDK hands it out, its connection pool holds those of other requests too, and closing a client from
    another thread wakes nobody.
    """
    while not over.is_set():
        # Documented, and the only way to see what another thread waits for.
        stack = sys._current_frames().get(thread)
        if stack is None:
            return
        waiting_on = _socket_in_use(stack, stream_with_retries.__code__)
        if waiting_on is not None:
            with suppress(OSError):
                # Not the override in SSLSocket, which takes the TLS state from under the reader.
                socket.socket.shutdown(waiting_on, socket.SHUT_RDWR)
        over.wait(0.01)


def _socket_in_use(frame: FrameType | None, within: CodeType) -> socket.socket | None:
    """The socket of the innermost call that has one, when that call is made somewhere inside of `within`."""
    found: socket.socket | None = None
    while frame is not None and frame.f_code is not within:
        if found is None:
            owner = frame.f_locals.get("self")
            # Nothing here may run code of these objects, which are in the middle of something.
            for candidate in (owner, inspect.getattr_static(owner, "_sock", None), frame.f_locals.get("sock")):
                if issubclass(type(candidate), socket.socket):
                    found = cast("socket.socket", candidate)
        frame = frame.f_back
    return found if frame is not None else None
