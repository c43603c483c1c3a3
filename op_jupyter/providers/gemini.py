"""`gemini:`, the models of Google: from the Gemini API, Vertex AI, or any server that speaks like them.

The request and the connection: `_gemini_messages` writes the conversation, `_gemini_events` reads the reply. The SDK
is given a finished body, since it knows keys and addresses, but types everything it sends and reads.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from op_jupyter.events import StreamEvent
from op_jupyter.providers import Connection, Model, Request, ToolSpec
from op_jupyter.providers._gemini_events import PROVIDER, error_code, is_refused_key, read_events, retry_delay
from op_jupyter.providers._gemini_messages import contents
from op_jupyter.providers._http import (
    address_of,
    body_of,
    connection_error,
    environment_of,
    given_client,
    key_of,
    keys_sent,
    making_a_client,
    time_limits,
    without_keys,
)
from op_jupyter.providers._shared import ProviderError, http_error, listed, stream_with_retries
from op_jupyter.providers._wire import as_dict, as_list, as_str, lines, sse_data, to_json
from op_jupyter.redact import redact

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client
    from google.genai._api_client import HttpRequest
    from google.genai.errors import APIError

KEY_HINT = "set GEMINI_API_KEY, or pass api_key="
CONTEXT_TOKENS = 1_048_576  # of all that write text, since Gemini 1.5 Flash

# The fields that a body has itself; all others are those of its generationConfig.
_FIELDS = (
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
    "serviceTier",
    "store",
    "modelArmorConfig",
    "outputConfig",
    "continuationToken",
)

# By these the SDK finds out whether it is to talk to Vertex AI.
_VERTEX = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")


def model(name: str) -> Model:
    """The model that Google, or the server at `base_url`, calls `name`."""
    return Model(PROVIDER, name, stream, CONTEXT_TOKENS)


def stream(request: Request) -> Iterator[StreamEvent]:
    """Ask the model, and stream its reply."""
    return stream_with_retries(request, lambda: _attempt(request))


def _attempt(request: Request) -> Iterator[StreamEvent]:
    client = _client(request.connection)
    response = _send(client, request)
    kind, address = response.headers.get("content-type", ""), functools.partial(_address, client)
    with body_of(response, address) as body:
        events = read_events(_data(body, address, kind, request.connection.timeout))
        yield from without_keys(events, lambda: keys_sent(response))


# -------------------------------------------------------------------- the request


def request_body(request: Request, *, on_vertex: bool = False) -> dict[str, Any]:
    """The body that asks for the reply to `request`; its `options` override everything.

    Their names may be written as in JSON or as in Python. One that the body has itself (`safety_settings`,
    `cached_content`, `tool_config`, …) is set there, every other one (`temperature`, `thinking_config`, …) in its
    `generationConfig`. The `tools` among them are offered beside the functions, as those of the server have to be.
    """
    options = _in_camel_case(request.options)
    more = [as_dict(tool) for tool in as_list(options.pop("tools", None))]
    declared = [list(map(as_dict, as_list(_in_camel_case(tool).get("functionDeclarations")))) for tool in more]
    taken = {function.get("name") for functions in declared for function in functions}
    config: dict[str, Any] = {}
    if request.tools:
        config["functionCallingConfig"] = _function_calling(request)
        if not all(declared) and not on_vertex:
            # Without it, functions beside tools of the server are refused; Vertex AI does not know it.
            config["includeServerSideToolInvocations"] = True
    config |= _in_camel_case(as_dict(options.pop("toolConfig", None)))
    loose = {name: options.pop(name) for name in list(options) if name not in _FIELDS}
    generation = as_dict(options.pop("generationConfig", None)) | loose
    functions = [_function(tool) for tool in request.tools if tool.name not in taken]
    system = {"parts": [{"text": request.system}]} if request.system and request.system.strip() else {}
    body = {
        "contents": contents(request.messages, request.model),
        "systemInstruction": system,
        "tools": [*([{"functionDeclarations": functions}] if functions else []), *more],
        "toolConfig": config,
        "generationConfig": generation,
    }
    return {name: value for name, value in body.items() if value} | options


def _in_camel_case(settings: dict[str, Any]) -> dict[str, Any]:
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in settings.items()}


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}


def _function_calling(request: Request) -> dict[str, Any]:
    choice = request.tool_choice
    if not isinstance(choice, str):
        return {"mode": "ANY", "allowedFunctionNames": [choice["name"]]}
    return {"mode": {"auto": "AUTO", "required": "ANY", "none": "NONE"}[choice]}


# -------------------------------------------------------------------- the connection


def _client(connection: Connection) -> Client:
    from google import genai

    if client := given_client(connection, genai.Client, "a google.genai.Client object"):
        return client
    return _shared_client(key_of(connection), connection.base_url, environment_of("GOOGLE_", "GEMINI_"))


@functools.lru_cache(maxsize=16)
def _shared_client(api_key: str | None, base_url: str | None, environment: tuple[tuple[str, str], ...]) -> Client:
    """A client with these settings, and those of the SDK in the `environment`."""
    import google.auth.exceptions
    from google import genai

    said = dict(environment)
    wanted = next((value for name in _VERTEX if (value := said.get(name))), "")
    is_vertex = not api_key and wanted.lower() in ("true", "1")
    has_key = api_key or said.get("GOOGLE_API_KEY") or said.get("GEMINI_API_KEY")
    if (base_url or said.get("GOOGLE_GEMINI_BASE_URL")) and not has_key and not is_vertex:
        api_key = "none"  # a server of one's own needs no key, but the SDK does
    options = genai.types.HttpOptions(base_url=base_url)
    try:
        with making_a_client():
            return genai.Client(api_key=api_key, vertexai=is_vertex, http_options=options)
    except (ValueError, google.auth.exceptions.GoogleAuthError) as error:
        raise ProviderError(f"There is no key for gemini: {KEY_HINT} ({error})", "auth") from error


def models(connection: Connection) -> list[str]:
    """The models that Google, or the server at `base_url`, offers.

    Raises:
        RunError: when it does not say.
    """

    def ask() -> Iterator[str]:
        from google.genai import types

        client = _client(connection)
        limit = types.HttpOptions(timeout=int(connection.timeout * 1000))
        with _failures(client, connection.timeout):
            for found in client.models.list(config=types.ListModelsConfig(http_options=limit)):
                if found.name and "generateContent" in (found.supported_actions or ["generateContent"]):
                    yield found.name.rpartition("/")[2]

    return listed(connection, ask)


def _send(client: Client, request: Request) -> httpx2.Response:
    """The response, of which only the headers are there yet.

    Raises:
        ProviderError: when there is none, or it is an error.
    """
    prepared = _prepared(client, request)
    with _failures(client, request.connection.timeout):
        # The SDK has no public call that takes a finished body, or that gives the bytes of a stream.
        return cast("httpx2.Response", client._api_client._request_once(prepared, stream=True).response_stream)


@contextmanager
def _failures(client: Client, seconds: float) -> Iterator[None]:
    """Whatever the SDK raises, as a `ProviderError`."""
    import google.auth.exceptions
    import httpx2
    from google.genai import errors

    address = _address(client)
    try:
        yield
    except errors.APIError as error:
        raise _status_error(error, address) from error
    except UnicodeDecodeError as error:
        raise ProviderError(f"{address} answered with an error that is no text", "provider", retry=True) from error
    except httpx2.RequestError as error:
        raise connection_error(error, address, seconds) from error
    except google.auth.exceptions.TransportError as error:
        raise ProviderError(f"Google's sign-in cannot be reached ({error})", "connection", retry=True) from error
    except google.auth.exceptions.GoogleAuthError as error:
        message = f"Google Cloud gave no access ({error}): run gcloud auth application-default login"
        raise ProviderError(message, "auth") from error


def _prepared(client: Client, request: Request) -> HttpRequest:
    """The request as the SDK sends it: to the right address, with the key.

    Raises:
        ProviderError: when there is no such address, or the key is not for it.
    """
    from google.genai import _transformers

    api = client._api_client
    try:
        path = f"{_transformers.t_model(api, request.model)}:streamGenerateContent?alt=sse"
        prepared = api._build_request("post", path, request_body(request, on_vertex=bool(api.vertexai)))
    except ValueError as error:
        raise ProviderError(f"{request.model} cannot be asked: {error}", "setup") from error
    content = to_json(prepared.data)
    # With an account in place of a key, the SDK writes the JSON itself.
    prepared.data = json.loads(content) if api.vertexai and not api.api_key else content
    # As plain numbers, which the clients of httpx and of httpx2 both take.
    prepared.timeout = cast("float", tuple(time_limits(request.connection.timeout).as_dict().values()))
    return prepared


def _data(body: Iterator[bytes], address: Callable[[], str], kind: str, seconds: float) -> Iterator[str]:
    """The JSON texts in `body`, whose content type is `kind`: events, or one list of all the chunks.

    Raises:
        ProviderError: when the connection breaks.
    """
    try:
        if kind.startswith("application/json"):
            yield b"".join(body).decode("utf-8", "replace")
        else:
            yield from _events(body)
    except Exception as error:
        raise connection_error(error, address(), seconds) from error


def _events(body: Iterator[bytes]) -> Iterator[str]:
    """The data of the events in `body`, and of an error that is none: in mid-stream one may come as it is."""
    error: list[bytes] = []

    def of_events() -> Iterator[bytes]:
        for line in lines(body):
            if error or line.lstrip().startswith((b"{", b"[")):
                error.append(line)
            else:
                yield line + b"\n"

    yield from sse_data(of_events())
    if error:
        yield b"\n".join(error).decode("utf-8", "replace")


def _status_error(error: APIError, address: str) -> ProviderError:
    body = as_dict(error.details)
    said = as_dict(body.get("error")) or body
    message = redact(as_str(said.get("message")), *keys_sent(error))
    if error.code == HTTPStatus.BAD_REQUEST and is_refused_key(said):
        return ProviderError(f"{address} answered 400: the key was refused, {KEY_HINT}", "auth")
    if error.code == HTTPStatus.NOT_FOUND and "error" not in body:
        message = f"{message or 'Not Found'} (is base_url right? /v1/models/… is added to it)"
    headers = getattr(error.response, "headers", {})
    return http_error(
        error.code,
        message,
        code=error_code(said) if "error" in body else "",
        server=address,
        headers=retry_delay(said) | {name.lower(): value for name, value in headers.items()},
        key_hint=KEY_HINT,
    )


def _address(client: Client) -> str:
    import httpx2

    return address_of(httpx2.URL(client._api_client._http_options.base_url or ""))
