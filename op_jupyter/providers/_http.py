"""What the providers share that is of HTTP: time limits, addresses, what the environment says, failing connections.

No provider is known here, nor any SDK.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

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


def network_settings() -> tuple[tuple[str, str], ...]:
    """What in the environment says how the network is reached: a client that was made by it is good for no other."""
    wanted = re.compile(r"(?i)(\w+_proxy|ssl_cert_(file|dir)|aws_ca_bundle|requests_ca_bundle)")
    return tuple(sorted((name, value) for name, value in os.environ.items() if wanted.fullmatch(name)))


def _proxy_to(address: str) -> str | None:
    """The proxy in the environment for `address`, without a password in it."""
    parts = urlsplit(address)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy and re.sub(r"//[^/@]*@", "//", proxy)
