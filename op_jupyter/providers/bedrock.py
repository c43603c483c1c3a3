"""`bedrock:`, any model on AWS Bedrock: its ConverseStream, over boto3.

The body of a request: `_bedrock_messages` writes the conversation, `_bedrock_connection` sends it, `_bedrock_events`
reads the reply. What Claude says over Bedrock's older InvokeModel is read by `anthropic:` with its own client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from op_jupyter.events import StreamEvent
from op_jupyter.providers import Model, Request, ToolSpec
from op_jupyter.providers._bedrock_connection import address_of, client_of, connection_error, models, send
from op_jupyter.providers._bedrock_events import PROVIDER, read_events
from op_jupyter.providers._bedrock_messages import turns
from op_jupyter.providers._claude import called_functions, cannot_be_forced, digest, last_turns_marked
from op_jupyter.providers._http import without_keys
from op_jupyter.providers._shared import ProviderError, drain, stream_with_retries
from op_jupyter.providers._wire import as_dict, as_list, as_str, to_json

__all__ = ["model", "models", "request_body", "stream"]

# Of the options: what Converse calls otherwise, and what it takes beside the conversation.
INFERENCE = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop_sequences": "stopSequences",
}
TOP_LEVEL = frozenset(
    {
        "additionalModelRequestFields",
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "inferenceConfig",
        "messages",
        "outputConfig",
        "performanceConfig",
        "projectIdentifier",
        "promptVariables",
        "requestMetadata",
        "serviceTier",
        "system",
        "toolConfig",
    }
)
_OURS = ("cachePoint", "tools")
_TOO_OLD_FOR_CACHE = r"claude-(v\d|instant|3-(opus|sonnet|haiku)|3-5-sonnet-20240620)"


def model(name: str) -> Model:
    """The model, inference profile or ARN that Bedrock calls `name`."""
    return Model(PROVIDER, name, stream, 200_000 if "claude" in name else 128_000)


def stream(request: Request) -> Iterator[StreamEvent]:
    """Ask the model, and stream its reply."""
    return stream_with_retries(request, lambda: _attempt(request))


def _attempt(request: Request) -> Iterator[StreamEvent]:
    client = client_of(request.connection)
    asked, before = _asked(request)
    exchange = send(client, request.model, to_json(asked), request.connection)
    headers, raw = exchange.response["headers"], exchange.response["body"]
    try:
        kind = as_str(headers.get("content-type"))
        if not kind.startswith("application/vnd.amazon.eventstream"):
            message = f"{address_of(client)} answered with {kind or 'no type'}, and not with a stream of a reply"
            raise ProviderError(message, "provider")
        body = raw.stream()
        messages = _messages(body, client, request.connection.timeout)
        events = read_events(messages, basis(request), before)
        yield from without_keys(events, lambda: exchange.keys)
        drain(body)
    finally:
        raw.close()


def _messages(body: Iterator[bytes], client: Any, seconds: float) -> Iterator[tuple[Mapping[str, Any], bytes]]:
    """The headers and the payload of each message in `body`.

    Raises:
        ProviderError: when the connection breaks.
    """
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    try:
        for piece in body:
            buffer.add_data(piece)
            for message in buffer:
                yield message.headers, message.payload
    except Exception as error:
        raise connection_error(error, client, seconds) from error


# -------------------------------------------------------------------- the request


def request_body(request: Request) -> dict[str, Any]:
    """The body that asks for the reply to `request`; its `options` override everything.

    Of these `temperature`, `max_tokens`, `top_p` and `stop_sequences` go into `inferenceConfig`, spelled as it spells
    them. What Converse takes at the top level goes there as it is. `tools` are offered beside the functions, as those
    of the server have to be. Anything else is the model's own, and goes into
    `additionalModelRequestFields`. Claude and Nova are told what to cache: `cachePoint` is the mark to use, for other
    models too, and None is for no cache.

    Raises:
        ProviderError: when a model is to think and its pick is forced, which does not go together.
    """
    return _asked(request)[0]


def _asked(request: Request) -> tuple[dict[str, Any], str]:
    """The body, and what stands for its messages."""
    name = request.model
    settings = _settings(request)
    # The name of an ARN does not say what model it is: what fits all is sent.
    messages, before = turns(request.messages, basis(request), _is_claude_or_nova(name))
    body = {"messages": messages} | settings
    thinking = as_dict(as_dict(body.get("additionalModelRequestFields")).get("thinking"))
    forced = as_dict(as_dict(body.get("toolConfig")).get("toolChoice")).keys() & {"any", "tool"}
    if thinking.get("type") == "enabled" and forced:
        raise cannot_be_forced()
    caches = _is_claude_or_nova(name) and not re.search(_TOO_OLD_FOR_CACHE, name)
    mark = request.options.get("cachePoint", {"type": "default"} if caches else None)
    marked = body if mark is None else _marked_for_cache(body, {"cachePoint": mark}, tools="claude" in name)
    return marked, before


def basis(request: Request) -> str:
    """What stands for all that reasoning is bound to, but for the messages before it."""
    settings = _settings(request)
    return digest(request.model, settings.get("system"), as_dict(settings.get("toolConfig")).get("tools"))


def _is_claude_or_nova(name: str) -> bool:
    return "claude" in name or "nova" in name


def _settings(request: Request) -> dict[str, Any]:
    """The body without the messages."""
    settings: dict[str, Any] = {}
    if request.system and request.system.strip():
        settings["system"] = [{"text": request.system}]
    if tools := _tool_config(request):
        settings["toolConfig"] = tools
    inference: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for name, value in request.options.items():
        spelled = INFERENCE.get(name, name)
        if spelled in INFERENCE.values():
            inference[spelled] = value
        elif name in TOP_LEVEL:
            settings[name] = value
        elif name not in _OURS:
            fields[name] = value
    for name, values in (("inferenceConfig", inference), ("additionalModelRequestFields", fields)):
        if values:
            settings[name] = as_dict(settings.get(name)) | values
    return settings


def _tool_config(request: Request) -> dict[str, Any]:
    more = [as_dict(tool) for tool in as_list(request.options.get("tools"))]
    taken = {as_dict(tool.get("toolSpec")).get("name") for tool in more}
    functions = [_tool(tool) for tool in request.tools if tool.name not in taken]
    called = called_functions(request.messages)
    if request.tool_choice == "none" and not called:
        functions = []
    if not functions and not more:
        # A conversation with calls in it is refused without tools.
        functions = [_tool(ToolSpec(name, "", {"type": "object"})) for name in called]
    tools = [*functions, *more]
    if not tools:
        return {}
    chooses = request.tools and request.tool_choice != "none"
    return {"tools": tools} | ({"toolChoice": _tool_choice(request)} if chooses else {})


def _tool(tool: ToolSpec) -> dict[str, Any]:
    description = {"description": tool.description} if tool.description.strip() else {}
    return {"toolSpec": {"name": tool.name} | description | {"inputSchema": {"json": tool.parameters}}}


def _tool_choice(request: Request) -> dict[str, Any]:
    match request.tool_choice:
        case "auto" | "none":  # there is no such choice: the loop runs no call
            return {"auto": {}}
        case "required":
            return {"any": {}}
        case named:
            return {"tool": {"name": named["name"]}}


def _marked_for_cache(body: dict[str, Any], mark: dict[str, Any], *, tools: bool) -> dict[str, Any]:
    """`body`, so that what it has in common with the next one is cached, and what the one before had is found.

    A mark on the system prompt covers the tools too, which Nova does not let be marked.
    """
    messages = last_turns_marked(body["messages"], lambda content: _marked(content, mark))
    marked: dict[str, Any] = {"messages": messages}
    config = as_dict(body.get("toolConfig"))
    if body.get("system"):
        marked["system"] = _marked(body["system"], mark)
    elif tools and config.get("tools"):
        marked["toolConfig"] = config | {"tools": _marked(config["tools"], mark)}
    return body | marked


def _marked(blocks: Any, mark: dict[str, Any]) -> Any:
    found = as_list(blocks)
    return [*found, mark] if found and "cachePoint" not in as_dict(found[-1]) else blocks
