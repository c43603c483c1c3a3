"""The way to Bedrock: a client of boto3, a finished body sent through it, and what its failures mean.

No body is written here and no reply is read. boto3 knows accounts, regions, addresses and signatures; serializing and
validating the parameters takes it longer than all the rest, so it is given the body as bytes.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from op_jupyter.providers import Connection
from op_jupyter.providers._http import environment_of, given_client, key_of, keys_in, unreachable
from op_jupyter.providers._shared import CONNECT_TIMEOUT, ProviderError, http_error, listed
from op_jupyter.providers._wire import as_dict, as_str
from op_jupyter.redact import redact

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

ACCOUNT_HINT = (
    "set AWS_PROFILE, AWS_BEARER_TOKEN_BEDROCK or the AWS_… keys, log in with `aws sso login`, or pass api_key= or "
    "client=boto3.Session(…)"
)

# What a message says, or the code before it, and what to do then; the first that fits counts.
_HINTS = {
    "on-demand throughput": "name an inference profile of the model: put us., eu. or global. before its name",
    "model identifier is invalid": "is the name right, and the model in this region?",
    "doesn't support tool use": "ask it without functions (tools=[]), or ask another model",
    "toolChoice": 'leave tool_choice at "auto", or ask another model',
    "tool_choice": 'leave tool_choice at "auto", or ask another model',
    "prompt caching": 'pass options={"cachePoint": None}',
    "cachePoint": 'pass options={"cachePoint": None}',
    "make sure your API Key": "set AWS_BEARER_TOKEN_BEDROCK, or pass api_key=",
    "ExpiredToken": "log in again, with `aws sso login` or new keys, and run again",
    "UnrecognizedClient": ACCOUNT_HINT,
    "Signature": "are the secret key and the clock of this machine right?",
    "AccessDenied": "ask for access to the model in the Bedrock console, or for bedrock:InvokeModelWithResponseStream",
}


# -------------------------------------------------------------------- the client

Service = Literal["bedrock-runtime", "bedrock"]

_making_a_client = threading.Lock()


def client_of(connection: Connection, service: Service = "bedrock-runtime") -> Any:
    """The client for `service` that `connection` means; those of the same settings are shared.

    Raises:
        ProviderError: when there is none, because of what is set or missing on this machine.
    """
    import boto3
    from botocore.client import BaseClient
    from botocore.exceptions import BotoCoreError

    given = connection.client
    if isinstance(given, BaseClient) and given.meta.service_model.service_name == service:
        return given
    session = given_client(connection, boto3.Session, f"a boto3.Session, or a boto3 client for {service}")
    try:
        with _making_a_client:
            if session is not None:
                return _shared_client(service, session, None, (), has_key=False)
            # A notebook may set its account at any time.
            account, has_key = environment_of("AWS_"), key_of(connection) is not None
            return _shared_client(service, boto3.DEFAULT_SESSION, connection.base_url, account, has_key=has_key)
    except (BotoCoreError, ValueError) as error:
        raise _setup_error(error) from error


@functools.lru_cache(maxsize=16)
def _shared_client(
    service: Service, session: Any, base_url: str | None, account: tuple[tuple[str, str], ...], *, has_key: bool
) -> Any:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    session = session or boto3.Session()
    if not has_key and not os.environ.get("AWS_BEARER_TOKEN_BEDROCK") and session.get_credentials() is None:
        raise ProviderError(f"There are no credentials for AWS: {ACCOUNT_HINT}", "auth")
    config = Config(connect_timeout=CONNECT_TIMEOUT, signature_version=UNSIGNED if has_key else None)
    region = session.region_name or os.environ.get("AWS_REGION")
    return session.client(service, region_name=region, endpoint_url=base_url, config=config)


def address_of(client: Any) -> str:
    """The address of `client` as a person may read it: without a password in it."""
    parts = urlsplit(as_str(client.meta.endpoint_url))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


# -------------------------------------------------------------------- one request


@dataclass(slots=True)
class Exchange:
    """A request on its way, for the hooks in the client, with the keys in it and the response as they have seen it."""

    body: bytes | None
    seconds: float
    api_key: str | None
    keys: list[str] = field(default_factory=list[str])
    response: Mapping[str, Any] = field(default_factory=dict[str, Any])


_under_way: ContextVar[Exchange | None] = ContextVar("_under_way", default=None)


def send(client: Any, model: str, body: bytes, connection: Connection) -> Exchange:
    """The exchange in which `body` was sent; the `body` of its response is still to be read.

    Raises:
        ProviderError: when there is none, or it is an error.
    """
    with _exchange(client, "bedrock-runtime.ConverseStream", connection, body) as exchange:
        client.converse_stream(modelId=model)
    return exchange


def models(connection: Connection) -> list[str]:
    """The models and inference profiles that write text, which this account may name in this region.

    Raises:
        RunError: when AWS does not say.
    """

    def ask() -> Iterator[str]:
        client = client_of(connection, "bedrock")
        with _exchange(client, "bedrock.ListFoundationModels", connection):
            offered = client.list_foundation_models(byOutputModality="TEXT", byInferenceType="ON_DEMAND")
            yield from (model["modelId"] for model in offered["modelSummaries"])
        with _exchange(client, "bedrock.ListInferenceProfiles", connection):
            for page in client.get_paginator("list_inference_profiles").paginate():
                yield from (profile["inferenceProfileId"] for profile in page["inferenceProfileSummaries"])

    return listed(connection, ask)


@contextmanager
def _exchange(client: Any, operation: str, connection: Connection, body: bytes | None = None) -> Iterator[Exchange]:
    """A request for `operation` in here is sent with this `body` and key, once; what fails is a `ProviderError`."""
    from botocore.exceptions import BotoCoreError, ClientError

    for event, hook in _HOOKS.items():
        client.meta.events.register_first(f"{event}.{operation}", hook, unique_id=f"op_jupyter {event}.{operation}")
    exchange = Exchange(body, connection.timeout, key_of(connection) if connection.client is None else None)
    token = _under_way.set(exchange)
    try:
        yield exchange
    except ClientError as error:
        raise _response_error(error, client, exchange) from error
    except BotoCoreError as error:
        raise connection_error(error, client, connection.timeout) from error
    finally:
        _under_way.reset(token)


def _before_call(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    if exchange := _under_way.get():
        if exchange.body is not None:
            params["body"] = exchange.body
            params["headers"]["Content-Type"] = "application/json"
        if exchange.api_key is not None:
            params["headers"]["Authorization"] = f"Bearer {exchange.api_key}"
        context["read_timeout"] = exchange.seconds


def _before_send(request: Any, **_: Any) -> None:
    if exchange := _under_way.get():
        exchange.keys += keys_in(request.headers)


def _response_received(response_dict: Mapping[str, Any] | None, **_: Any) -> None:
    if (exchange := _under_way.get()) and response_dict:
        exchange.response = response_dict


def _needs_retry(**_: Any) -> bool | None:
    # The first answer counts; sending again is not the business of the client.
    return False if _under_way.get() else None


_HOOKS = {
    "before-call": _before_call,
    "before-send": _before_send,
    "response-received": _response_received,
    "needs-retry": _needs_retry,
}


# -------------------------------------------------------------------- what went wrong


def _response_error(error: ClientError, client: Any, exchange: Exchange) -> ProviderError:
    said, metadata = as_dict(error.response.get("Error")), as_dict(error.response.get("ResponseMetadata"))
    status, code, message = metadata.get("HTTPStatusCode"), as_str(said.get("Code")), as_str(said.get("Message"))
    if code == str(status):
        code = ""
    if "Signature" in code:
        message = message.partition("\n")[0]  # what follows repeats all that was signed
    # An account may take a request of its own, such as that for a role.
    is_ours = error.operation_name in ("ConverseStream", "ListFoundationModels", "ListInferenceProfiles")
    said_of_it = redact(message, *exchange.keys)
    if hint := next((hint for mark, hint in _HINTS.items() if is_ours and mark in f"{code} {message}"), None):
        said_of_it = f"{said_of_it.rstrip('. ') or code}: {hint}"
    failure = http_error(
        status if isinstance(status, int) else None,
        said_of_it,
        code=code,
        server=address_of(client) if is_ours else f"AWS, asked for {error.operation_name},",
        headers=as_dict(metadata.get("HTTPHeaders")),
        key_hint=ACCOUNT_HINT,
    )
    if "ExpiredToken" in code or failure.kind == "auth":
        failure.kind = "auth"
        _shared_client.cache_clear()  # so that new keys in a file are seen
    if "per day" in message:
        failure.kind, failure.retry = "quota", False
    elif status == 424:
        failure.retry = True  # the model failed
    elif "identifier is invalid" in message:
        failure.kind = "not_found"
    return failure


def connection_error(error: BaseException, client: Any, seconds: float) -> ProviderError:
    """The failure that `error` means, which came while a request was sent or its reply read."""
    from botocore import exceptions
    from botocore.eventstream import ParserError
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    address = address_of(client)
    cause = getattr(error, "kwargs", {}).get("error")
    reason = str(cause or error) or type(error).__name__
    if ".amazonaws." in address:
        reason += f"; is there Bedrock in the region {client.meta.region_name}?"
    no_way = (
        exceptions.EndpointConnectionError,
        exceptions.ConnectTimeoutError,
        exceptions.ProxyConnectionError,
        exceptions.SSLError,
    )
    if isinstance(error, no_way):
        return unreachable(address, reason, "AWS_CA_BUNDLE")
    if isinstance(error, exceptions.ReadTimeoutError | ReadTimeoutError):
        message = f"{address} was silent for {seconds:g} s: run again, or set a longer timeout="
        return ProviderError(message, "timeout")
    if isinstance(error, exceptions.HTTPClientError | exceptions.ConnectionError | HTTPError | ParserError | OSError):
        return ProviderError(f"The connection to {address} broke ({reason}): run again", "connection", retry=True)
    return _setup_error(error)


def _setup_error(error: BaseException) -> ProviderError:
    """The failure that `error` means, which came of the account or the settings, before anything was sent."""
    from botocore import exceptions

    message = str(error)
    if isinstance(error, exceptions.NoRegionError):
        return ProviderError("There is no region for AWS: set AWS_REGION, or pass client=boto3.Session(…)", "setup")
    if message.startswith("Invalid endpoint: "):
        address = message.removeprefix("Invalid endpoint: ")
        return ProviderError(f"base_url must begin with http:// or https://, not {address}", "setup")
    kinds = ("Credential", "Token", "Login", "SSO")
    if any(kind in type(error).__name__ for kind in kinds):
        _shared_client.cache_clear()
        return ProviderError(f"There are no credentials for AWS ({message}): {ACCOUNT_HINT}", "auth")
    return ProviderError(f"AWS is not set up for this: {message}", "setup")
