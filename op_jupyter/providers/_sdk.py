"""What the SDKs of OpenAI and of Anthropic have in common: how a body is sent and a reply comes back, and what fails.

Nothing here knows what stands in a body or in a reply, nor how a client is made.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from op_jupyter.events import StreamEvent
from op_jupyter.providers import Connection
from op_jupyter.providers._http import address_of, body_of, connection_error, keys_sent, time_limits, without_keys
from op_jupyter.providers._shared import ProviderError, http_error
from op_jupyter.providers._wire import as_dict, as_str, from_json, sse_data, to_json
from op_jupyter.redact import redact

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Sdk:
    """An SDK by the name of its module, and what is said to whoever uses it.

    `error_words` finds the code and the message in an error object.
    """

    name: str
    key_hint: str
    address_hint: str
    error_words: Callable[[dict[str, Any]], tuple[str, str]]


def reply(
    sdk: Sdk,
    client: Any,
    path: str,
    body: dict[str, Any],
    connection: Connection,
    read: Callable[[Iterable[str]], Iterator[StreamEvent]],
    *,
    headers: Mapping[str, str] | None = None,
    decoders: Mapping[str, Callable[[Iterator[bytes]], Iterator[str]]] | None = None,
) -> Iterator[StreamEvent]:
    """What `read` makes of the data of the events that come back for `body`, posted to `path`.

    `decoders` find the data where the content type is none of server-sent events.

    Raises:
        ProviderError: when there is no such reply.
    """
    response = _send(sdk, client, path, to_json(body), connection, headers or {})
    address = functools.partial(address_of, client.base_url)  # which takes its time
    kind = response.headers.get("content-type", "")

    def data() -> Iterator[str]:
        try:
            if not kind.startswith("application/json"):
                yield from (decoders or {}).get(kind, sse_data)(raw)
                return
            whole = b"".join(islice(raw, 100))
        except Exception as error:
            raise connection_error(error, address(), connection.timeout) from error
        raise _in_place_of_a_stream(sdk, kind, whole, address())

    with body_of(response, address) as raw:
        yield from without_keys(read(data()), lambda: keys_sent(response))


def offered(sdk: Sdk, client: Any, connection: Connection) -> list[str]:
    """The models that the server offers.

    Raises:
        ProviderError: when it does not say.
    """
    with _failures(sdk, client, connection.timeout):
        once = client.with_options(max_retries=0, timeout=time_limits(connection.timeout))
        return [model.id for model in once.models.list()]


def _send(
    sdk: Sdk, client: Any, path: str, content: bytes, connection: Connection, headers: Mapping[str, str]
) -> httpx2.Response:
    """The response, of which only the headers are there yet.

    Raises:
        ProviderError: when there is none, or it is an error.
    """
    import httpx2

    # Those for Azure, Bedrock and Vertex look into the body; without that, the bytes are the quicker way.
    looks_into_body = connection.client is not None
    with _failures(sdk, client, connection.timeout):
        response: object = client.post(
            path,
            cast_to=httpx2.Response,
            body=json.loads(content) if looks_into_body else None,
            content=None if looks_into_body else content,
            options={"timeout": time_limits(connection.timeout), "max_retries": 0, "headers": headers},
            stream=True,
            stream_cls=import_module(sdk.name).Stream[object],
        )
    return cast("httpx2.Response", response)  # no Stream, with this `cast_to`


# -------------------------------------------------------------------- what fails


@contextmanager
def _failures(sdk: Sdk, client: Any, seconds: float) -> Iterator[None]:
    """Whatever the SDK raises, as a `ProviderError`."""
    import httpx2

    module = import_module(sdk.name)
    address = functools.partial(address_of, client.base_url)
    try:
        yield
    except module.APIStatusError as error:
        raise _status_error(sdk, error, address()) from error
    except module.APIConnectionError as error:
        raise connection_error(error.__cause__ or error, address(), seconds) from error
    except httpx2.RequestError as error:  # in the body of an error
        raise connection_error(error, address(), seconds) from error


def _status_error(sdk: Sdk, error: Any, address: str) -> ProviderError:
    body = as_dict(error.body)
    code, message = sdk.error_words(as_dict(body.get("error")) or body)
    if not message:
        message = as_str(error.body)
        if error.status_code == HTTPStatus.NOT_FOUND:
            message = f"{message or 'Not Found'} (is base_url right? {sdk.address_hint})"
    return http_error(
        error.status_code,
        redact(message, *keys_sent(error)),
        code=code,
        server=address,
        headers=error.response.headers,
        key_hint=sdk.key_hint,
    )


def _in_place_of_a_stream(sdk: Sdk, kind: str, body: bytes, address: str) -> ProviderError:
    """The failure that `body` tells of, which is of the content type `kind` and came with the status of a reply."""
    said: dict[str, Any] = {}
    with suppress(ValueError):
        said = as_dict(from_json(body.decode("utf-8", "replace")))
    error = as_dict(said.get("error")) or {"message": said.get("error")}
    code, message = sdk.error_words(error)
    if not (code or message):
        return ProviderError(f"{address} answered with {kind}, and not with a stream of a reply", "provider")
    number = str(error.get("code"))
    status = int(number) if number.isdigit() else None
    return http_error(status, message, code=code, server=address, key_hint=sdk.key_hint)
