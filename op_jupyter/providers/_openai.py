"""What both wire formats of OpenAI share: its SDK's client, the way a body is sent and a reply comes back, its errors.

Nothing here knows what stands in a body or in a reply.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from op_jupyter.events import StreamEvent
from op_jupyter.providers import Connection
from op_jupyter.providers._http import address_of, connection_error, making_a_client, network_settings, time_limits
from op_jupyter.providers._shared import ProviderError, drain, http_error, listed
from op_jupyter.providers._wire import as_dict, as_str, sse_data, to_json

if TYPE_CHECKING:
    import httpx2
    import openai
    from openai import OpenAI

KEY_HINT = "set OPENAI_API_KEY, or pass api_key="


def reply(
    connection: Connection,
    path: str,
    body: dict[str, Any],
    read: Callable[[Iterable[str]], Iterator[StreamEvent]],
) -> Iterator[StreamEvent]:
    """What `read` makes of the data of the events that come back for `body`, posted to `path`.

    Raises:
        ProviderError: when there is no such reply.
    """
    client = _client(connection)
    response = _send(client, path, body, connection)
    try:
        kind = response.headers.get("content-type", "")
        if kind.startswith(("text/html", "application/json")):
            message = f"{_address(client)} answered with {kind}, and not with a stream of a reply"
            raise ProviderError(message, "provider")
        raw = response.iter_bytes()
        yield from read(_data(raw, client, connection.timeout))
        drain(raw)
    finally:
        response.close()


def error_words(error: dict[str, Any]) -> tuple[str, str]:
    """The code and the message of an error object. A number as code repeats the status; the type says more."""
    words = [word for key in ("code", "type") if (word := as_str(error.get(key))) and not word.isdigit()]
    behind = as_str(as_dict(error.get("metadata")).get("raw"))  # what a router was told by the server behind it
    return next(iter(words), ""), ": ".join(filter(None, [as_str(error.get("message")), behind]))


# -------------------------------------------------------------------- the connection


def _client(connection: Connection) -> OpenAI:
    """The SDK's client that reaches it, shared by all with the same key and address.

    Raises:
        ProviderError: when it is of another kind, or there is no key.
    """
    import openai

    if connection.client is not None:
        if not isinstance(connection.client, openai.OpenAI):
            kind = type(connection.client).__name__
            raise ProviderError(f"client= must be an openai.OpenAI or openai.AzureOpenAI object, not {kind}", "setup")
        return connection.client
    base_url = connection.base_url or os.environ.get("OPENAI_BASE_URL")
    # A server of one's own needs no key, but the SDK does.
    api_key = connection.api_key or os.environ.get("OPENAI_API_KEY") or ("none" if base_url else None)
    if api_key is None:
        raise ProviderError(f"There is no key for openai: {KEY_HINT}", "auth")
    return _shared_client(api_key, base_url, network_settings())


@functools.lru_cache(maxsize=16)
def _shared_client(api_key: str, base_url: str | None, network: object) -> OpenAI:
    import openai

    with making_a_client():
        return openai.OpenAI(api_key=api_key, base_url=base_url)


def models(connection: Connection) -> list[str]:
    """The models that the server offers.

    Raises:
        RunError: when it does not say.
    """

    def ask() -> list[str]:
        client = _client(connection)
        with _failures(client, connection.timeout):
            once = client.with_options(max_retries=0, timeout=time_limits(connection.timeout))
            return [model.id for model in once.models.list()]

    return listed(connection, ask)


def _send(client: OpenAI, path: str, body: dict[str, Any], connection: Connection) -> httpx2.Response:
    """The response, of which only the headers are there yet.

    Raises:
        ProviderError: when there is none, or it is an error.
    """
    import httpx2
    import openai

    content = to_json(body)
    # AzureOpenAI and its kind look into the body; without that, the bytes are the quicker way.
    looks_into_body = connection.client is not None
    with _failures(client, connection.timeout):
        response: object = client.post(
            path,
            cast_to=httpx2.Response,
            body=json.loads(content) if looks_into_body else None,
            content=None if looks_into_body else content,
            options={"timeout": time_limits(connection.timeout), "max_retries": 0},
            stream=True,
            stream_cls=openai.Stream[object],
        )
    return cast("httpx2.Response", response)  # no Stream, with this `cast_to`


@contextmanager
def _failures(client: OpenAI, seconds: float) -> Iterator[None]:
    """Whatever the SDK raises, as a `ProviderError`."""
    import httpx2
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        raise _status_error(error, client) from error
    except openai.APIConnectionError as error:
        raise connection_error(error.__cause__ or error, _address(client), seconds) from error
    except httpx2.RequestError as error:  # in the body of an error
        raise connection_error(error, _address(client), seconds) from error


def _data(raw: Iterator[bytes], client: OpenAI, seconds: float) -> Iterator[str]:
    """The data of each event in `raw`.

    Raises:
        ProviderError: when the connection breaks.
    """
    try:
        yield from sse_data(raw)
    except Exception as error:
        raise connection_error(error, _address(client), seconds) from error


def _status_error(error: openai.APIStatusError, client: OpenAI) -> ProviderError:
    code, message = error_words(as_dict(error.body))
    if not message:
        message = as_str(error.body)
        if error.status_code == HTTPStatus.NOT_FOUND:
            message = f"{message or 'Not Found'} (is base_url right? Most end in /v1)"
    return http_error(
        error.status_code,
        message,
        code=code,
        server=_address(client),
        headers=error.response.headers,
        key_hint=KEY_HINT,
    )


def _address(client: OpenAI) -> str:
    return address_of(client.base_url)
