"""How every reader of a reply takes an event, and how it closes: broken off, failed, or as the model ended it.

Pure functions; nothing here knows a provider.
"""

from __future__ import annotations

from typing import Any

from op_jupyter.events import StreamEnd
from op_jupyter.messages import StopReason, Usage
from op_jupyter.providers._shared import ProviderError
from op_jupyter.providers._wire import from_json


def event_in(text: str) -> Any:
    """The JSON value of one event.

    Raises:
        ProviderError: when it is none.
    """
    try:
        return from_json(text)
    except ValueError as error:
        raise ProviderError(f"The server sent what is no JSON: {text[:80]}", "provider") from error


def broke_off() -> ProviderError:
    """The failure that a reply ends without its closing event."""
    message = "The reply broke off: the stream ended before its closing event. Run again"
    return ProviderError(message, "connection", retry=True)


def closing(
    failure: ProviderError | None,
    stop_reason: StopReason,
    *,
    finish: str | None,
    usage: Usage,
    provider_data: dict[str, Any] | None = None,
) -> StreamEnd:
    """The closing event of a reply that stopped for `stop_reason`, or by a `failure`."""
    return StreamEnd(
        "error" if failure else stop_reason,
        finish=finish,
        usage=usage,
        error_message=str(failure) if failure else None,
        error_kind=failure.kind if failure else None,
        provider_data=provider_data,
    )
