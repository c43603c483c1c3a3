"""`openai:`, the chat completions of OpenAI and, with `base_url`, of any server that speaks them.

From messages to a request body, and to the raw stream of the reply; `_chat_chunks` makes events of that. The SDK is
given a finished body: keys, addresses and Azure it does well, but its own typing of both takes most of a round.
"""

from __future__ import annotations

import functools
import json
import os
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, assert_never, cast

from op_jupyter.events import StreamEvent
from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    InputBlock,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Connection, Model, Request, ToolSpec
from op_jupyter.providers._chat_chunks import DONE, PROVIDER, error_words, read_chunks
from op_jupyter.providers._shared import (
    CONNECT_TIMEOUT,
    ProviderError,
    as_dict,
    as_str,
    drain,
    http_error,
    join_text,
    sse_data,
    stream_with_retries,
    to_json,
)

if TYPE_CHECKING:
    import httpx2
    import openai
    from openai import OpenAI

KEY_HINT = "set OPENAI_API_KEY, or pass api_key="
MOST_OF_AN_ID = 40


def model(name: str) -> Model:
    """The model that OpenAI, or the server at `base_url`, calls `name`."""
    return Model(PROVIDER, name, stream)


def stream(request: Request) -> Iterator[StreamEvent]:
    """Ask the model, and stream its reply."""
    return stream_with_retries(request, lambda: _attempt(request))


def _attempt(request: Request) -> Iterator[StreamEvent]:
    client = _client(request.connection)
    response = _send(client, request)
    try:
        kind = response.headers.get("content-type", "")
        if kind.startswith(("text/html", "application/json")):
            raise ProviderError(f"{client.base_url} answered with {kind}, and not with a stream of a reply", "provider")
        yield from read_chunks(_data(response, client, request.connection.timeout))
    finally:
        response.close()


# -------------------------------------------------------------------- the request


def request_body(request: Request) -> dict[str, Any]:
    """The body that asks for the reply to `request`; its `options` override everything."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": list(_messages(request)),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        choice = request.tool_choice
        named = choice if isinstance(choice, str) else {"type": "function", "function": {"name": choice["name"]}}
        body["tool_choice"] = named
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    return body | request.options


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _messages(request: Request) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}
    latest_prompt = max(
        (i for i, message in enumerate(request.messages) if isinstance(message, UserMessage)), default=-1
    )
    images: list[dict[str, Any]] = []
    for position, message in enumerate(request.messages):
        if images and not isinstance(message, ToolResultMessage):
            yield {"role": "user", "content": images}
            images = []
        match message:
            case UserMessage():
                yield {"role": "user", "content": _content(message.content)}
            case AssistantMessage():
                yield from _assistant(message, with_extras=position > latest_prompt)
            case ToolResultMessage():
                shown = [_part(block) for block in message.content if isinstance(block, ImageContent)]
                text = join_text(message.content) or ("The image follows." if shown else "")
                yield {"role": "tool", "tool_call_id": _call_id(message.tool_call_id), "content": text}
                if shown:
                    images += [{"type": "text", "text": f"What {message.tool_name} returned:"}, *shown]
            case _:
                assert_never(message)
    if images:
        yield {"role": "user", "content": images}


def _content(blocks: list[InputBlock]) -> str | list[dict[str, Any]]:
    if any(isinstance(block, ImageContent) for block in blocks):
        return [_part(block) for block in blocks]
    return join_text(blocks)


def _part(block: InputBlock) -> dict[str, Any]:
    match block:
        case TextContent():
            return {"type": "text", "text": block.text}
        case ImageContent():
            url = f"data:{block.mime_type};base64,{b64encode(block.data).decode()}"
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            assert_never(block)


def _assistant(message: AssistantMessage, with_extras: bool) -> Iterator[dict[str, Any]]:
    """The message, if there is anything in it that this wire format can say.

    The extras are what some servers need back while they call functions: reasoning, and signatures of other models
    behind them. After the next prompt they are no longer needed, and the next server may refuse them.
    """
    text, calls = message.text, message.tool_calls
    if not text.strip() and not calls:
        return
    said: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
    if calls:
        said["tool_calls"] = [_call(call, with_extras) for call in calls]
    if with_extras:
        for block in message.content:
            if isinstance(block, ThinkingContent) and (extra := _own(block).get("field")):
                said[extra] = said.get(extra, "") + block.thinking
        said |= _own(message)
    yield said


def _call(call: ToolCall, with_extras: bool) -> dict[str, Any]:
    function = {"name": call.name, "arguments": to_json(call.arguments).decode()}
    said = {"id": _call_id(call.id), "type": "function", "function": function}
    return said | (_own(call) if with_extras else {})


def _call_id(given: str) -> str:
    """The id of a call, in the call and in its result; what stands for it where another provider gave a long one."""
    if 0 < len(given) <= MOST_OF_AN_ID:
        return given
    return f"call_{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _own(part: Message | ThinkingContent | ToolCall) -> dict[str, Any]:
    """What this provider left at `part`, to have it back."""
    return as_dict((part.provider_data or {}).get(PROVIDER))


# -------------------------------------------------------------------- the connection


def _client(connection: Connection) -> OpenAI:
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
    return _shared_client(api_key, base_url)


@functools.lru_cache(maxsize=16)
def _shared_client(api_key: str, base_url: str | None) -> OpenAI:
    import openai

    return openai.OpenAI(api_key=api_key, base_url=base_url)


def _send(client: OpenAI, request: Request) -> httpx2.Response:
    """The response, of which only the headers are there yet.

    Raises:
        ProviderError: when there is none, or it is an error.
    """
    import httpx2
    import openai

    content = to_json(request_body(request))
    # AzureOpenAI and its kind look into the body; without that, the bytes are the quicker way.
    looks_into_body = request.connection.client is not None
    seconds = request.connection.timeout
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))
    try:
        response: object = client.post(
            "/chat/completions",
            cast_to=httpx2.Response,
            body=json.loads(content) if looks_into_body else None,
            content=None if looks_into_body else content,
            options={"timeout": timeout, "max_retries": 0},
            stream=True,
            stream_cls=openai.Stream[object],
        )
    except openai.APIStatusError as error:
        raise _status_error(error, client) from error
    except openai.APIConnectionError as error:
        raise _connection_error(error.__cause__ or error, client, seconds) from error
    except httpx2.RequestError as error:  # in the body of an error
        raise _connection_error(error, client, seconds) from error
    return cast("httpx2.Response", response)  # no Stream, with this `cast_to`


def _data(response: httpx2.Response, client: OpenAI, seconds: float) -> Iterator[str]:
    """The data of each event of `response`.

    Raises:
        ProviderError: when the connection breaks.
    """
    body = response.iter_bytes()
    try:
        for data in sse_data(body):
            if data.startswith(DONE):
                drain(body)
            yield data
    except Exception as error:
        raise _connection_error(error, client, seconds) from error


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


def _connection_error(error: BaseException, client: OpenAI, seconds: float) -> ProviderError:
    import httpx2

    address, reason = _address(client), str(error) or type(error).__name__
    if isinstance(error, httpx2.UnsupportedProtocol):
        return ProviderError(f"base_url must begin with http:// or https://, not {address}", "setup")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        message = f"Cannot reach {address} ({reason}): is the server running, and the address right?"
        return ProviderError(message, "connection", retry=True)
    if isinstance(error, httpx2.TimeoutException):
        message = f"{address} was silent for {seconds:g} s: run again, or set a longer timeout="
        return ProviderError(message, "timeout")
    return ProviderError(f"The connection to {address} broke ({reason}): run again", "connection", retry=True)


def _address(client: OpenAI) -> str:
    """Where the client asks, without a password in it."""
    return str(client.base_url.copy_with(userinfo=b"", query=None)).rstrip("/")
