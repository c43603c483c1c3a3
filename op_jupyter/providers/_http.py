"""What the providers share whose SDK speaks HTTP through `httpx2`: time limits, addresses, failing connections.

No provider is known here, nor any SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from op_jupyter.providers._shared import CONNECT_TIMEOUT, ProviderError

if TYPE_CHECKING:
    import httpx2


def time_limits(seconds: float) -> httpx2.Timeout:
    """Limits by which `seconds` of silence are too many, and those of connecting fewer."""
    import httpx2

    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))


def address_of(url: httpx2.URL) -> str:
    """`url` as a person may read it: without a password in it."""
    return str(url.copy_with(userinfo=b"", query=None)).rstrip("/")


def connection_error(error: BaseException, address: str, seconds: float) -> ProviderError:
    """The failure that `error` means, which came while a request to `address` was sent or its reply read."""
    import httpx2

    reason = str(error) or type(error).__name__
    if isinstance(error, httpx2.UnsupportedProtocol):
        return ProviderError(f"base_url must begin with http:// or https://, not {address}", "setup")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        message = f"Cannot reach {address} ({reason}): is the server running, and the address right?"
        return ProviderError(message, "connection", retry=True)
    if isinstance(error, httpx2.TimeoutException):
        message = f"{address} was silent for {seconds:g} s: run again, or set a longer timeout="
        return ProviderError(message, "timeout")
    return ProviderError(f"The connection to {address} broke ({reason}): run again", "connection", retry=True)
