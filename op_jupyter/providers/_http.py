"""What the providers share that is of HTTP: time limits, addresses, keys, bodies, failing connections.

No provider is known here, nor how any SDK is called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from op_jupyter.events import StreamEnd, StreamEvent
from op_jupyter.providers import Connection
from op_jupyter.providers._shared import CONNECT_TIMEOUT, ProviderError, drain
from op_jupyter.redact import redact

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

_OF_THE_NETWORK = ("_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
_HEADERS_WITH_KEYS = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "x-amz-security-token")


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

    reason = redact(str(error), *keys_sent(error)) or type(error).__name__
    if isinstance(error, httpx2.UnsupportedProtocol):
        return ProviderError(f"base_url must begin with http:// or https://, not {address}", "setup")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
        return unreachable(address, reason, "SSL_CERT_FILE")
    if isinstance(error, httpx2.TimeoutException):
        message = f"{address} was silent for {seconds:g} s: run again, or set a longer timeout="
        return ProviderError(message, "timeout")
    return ProviderError(f"The connection to {address} broke ({reason}): run again", "connection", retry=True)


def unreachable(address: str, reason: str, certificates: str) -> ProviderError:
    """The failure that there is no way to `address`; `certificates` is the variable that names those to trust."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        hint = f"is something in between? Then name the file of its certificate in {certificates}"
        return ProviderError(f"Cannot trust {address} ({reason}): {hint}", "connection")
    hint = "is the server running, and the address right?"
    if proxy := _proxy_to(address):
        hint = f"is the proxy {proxy} right, and running?"
    return ProviderError(f"Cannot reach {address} ({reason}): {hint}", "connection", retry=True)


@contextmanager
def making_a_client() -> Iterator[None]:
    """What goes wrong in here, where the SDK reads how the network is reached, is said as a `ProviderError`."""
    try:
        if certificates := os.environ.get("SSL_CERT_FILE"):
            os.stat(certificates)  # the SDKs leave half a client behind, which complains on stderr
        yield
    except (ImportError, OSError) as error:
        hint = "see HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE in the environment"
        raise ProviderError(f"The network cannot be reached as it is set up ({error}): {hint}", "setup") from error


def environment_of(*prefixes: str) -> tuple[tuple[str, str], ...]:
    """What in the environment begins with one of `prefixes`, or says how the network is reached.

    A client that was made by it is good for no other.
    """
    names = [name for name in os.environ if name.startswith(prefixes) or name.upper().endswith(_OF_THE_NETWORK)]
    return tuple((name, os.environ.get(name, "")) for name in sorted(names))


# -------------------------------------------------------------------- keys and clients


def key_of(connection: Connection, *variables: str) -> str | None:
    """The key of `connection`, or in the first of the environment's `variables` that has one.

    Raises:
        ProviderError: when it has a character that no header can hold.
    """
    given = [connection.api_key, *map(os.environ.get, variables)]
    key = next((stripped for value in given if value and (stripped := value.strip())), None)
    if key and not (key.isascii() and key.isprintable()):
        raise ProviderError("The key has a character in it that no key has: copy it once more", "auth")
    return key


def given_client(connection: Connection, kinds: type[T] | tuple[type[T], ...], wanted: str) -> T | None:
    """The `client=` of `connection`, if there is one.

    Raises:
        ProviderError: when it is none of `kinds`, which are said as `wanted`.
    """
    if connection.client is None or isinstance(connection.client, kinds):
        return connection.client
    raise ProviderError(f"client= must be {wanted}, not {type(connection.client).__name__}", "setup")


def keys_sent(exchanged: Any) -> list[str]:
    """The keys in the headers of the request that a response, or an error, is of."""
    with suppress(RuntimeError):  # of one that never got as far as a request
        request = getattr(getattr(exchanged, "response", exchanged), "request", None)
        return keys_in(getattr(request, "headers", {}))
    return []


def keys_in(headers: Mapping[str, Any]) -> list[str]:
    """The keys in the `headers` of a request: a server may repeat one, or a part of a signature, in an error."""
    found: list[str] = []
    for name, value in headers.items():
        if name.lower() in _HEADERS_WITH_KEYS:
            text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
            found += [text, *text.split(), *(word for word in re.split(r"[\s,=/]+", text) if len(word) >= 16)]
    return found


def without_keys(events: Iterable[StreamEvent], keys: Callable[[], list[str]]) -> Iterator[StreamEvent]:
    """The same `events`, with none of the `keys` in what they say of a failure.

    Raises:
        ProviderError: as they do, without a key too.
    """
    try:
        for event in events:
            if isinstance(event, StreamEnd) and event.error_message:
                event = replace(event, error_message=redact(event.error_message, *keys()))
            yield event
    except ProviderError as error:
        error.args = (redact(str(error), *keys()),)
        raise


# -------------------------------------------------------------------- a body


@contextmanager
def body_of(response: httpx2.Response, address: Callable[[], str]) -> Iterator[Iterator[bytes]]:
    """The body of `response`, which came from that `address`: read to its closing event in here, drained, and closed.

    Raises:
        ProviderError: when it is a page to look at.
    """
    try:
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/html"):
            raise ProviderError(f"{address()} answered with {kind}, and not with a stream of a reply", "provider")
        body = response.iter_bytes()
        yield body
        drain(body)
    finally:
        response.close()


def _proxy_to(address: str) -> str | None:
    """The proxy in the environment for `address`, without a password in it."""
    parts = urlsplit(address)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy and re.sub(r"//[^/@]*@", "//", proxy)
