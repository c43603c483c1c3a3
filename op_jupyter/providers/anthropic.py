"""`anthropic:`, the messages of Anthropic: from its own API, Bedrock, Vertex, or any server that speaks them.

The request and the connection: `_anthropic_messages` writes the conversation, `_anthropic_events` reads the reply. The
SDK is given a finished body, since it knows keys, addresses and signatures, but not every setting as an argument.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from op_jupyter.events import StreamEvent
from op_jupyter.providers import Connection, Model, Request, ToolSpec, _sdk
from op_jupyter.providers._anthropic_events import PROVIDER, error_words, read_events
from op_jupyter.providers._anthropic_messages import container, turns
from op_jupyter.providers._claude import called_functions, cannot_be_forced, digest, last_turns_marked
from op_jupyter.providers._http import environment_of, given_client, key_of, making_a_client
from op_jupyter.providers._shared import ProviderError, listed, stream_with_retries
from op_jupyter.providers._wire import as_dict, as_list, as_str

if TYPE_CHECKING:
    from anthropic import Anthropic, AnthropicBedrock, AnthropicBedrockMantle, AnthropicVertex

    Client: TypeAlias = Anthropic | AnthropicBedrock | AnthropicBedrockMantle | AnthropicVertex

SDK = _sdk.Sdk("anthropic", "set ANTHROPIC_API_KEY, or pass api_key=", "/v1/messages is added to it", error_words)
CONTEXT_TOKENS = 200_000  # of the smallest since Claude 3
MAX_TOKENS = 32_000  # one has to be said; every model since Claude 4 can write as much


def model(name: str) -> Model:
    """The model that Anthropic, or the server at `base_url`, calls `name`."""
    return Model(PROVIDER, name, stream, CONTEXT_TOKENS)


def stream(request: Request) -> Iterator[StreamEvent]:
    """Ask the model, and stream its reply."""
    return stream_with_retries(request, lambda: _attempt(request))


def _attempt(request: Request) -> Iterator[StreamEvent]:
    client = _client(request.connection)
    body, before = _asked(request)
    betas = ",".join(map(str, as_list(request.options.get("betas"))))
    return _sdk.reply(
        SDK,
        client,
        "/v1/messages",
        body,
        request.connection,
        lambda data: read_events(data, basis(request), before),
        headers={"anthropic-beta": betas} if betas else {},
        decoders={"application/vnd.amazon.eventstream": functools.partial(_frames, client)},
    )


def _frames(client: Client, raw: Iterator[bytes]) -> Iterator[str]:
    """The data of the frames that Bedrock sends, which the SDK shows nowhere else before it types what is in them."""
    return (event.data for event in client._make_sse_decoder().iter_bytes(raw))


# -------------------------------------------------------------------- the request


def request_body(request: Request) -> dict[str, Any]:
    """The body that asks for the reply to `request`; its `options` override everything.

    The `tools` among them are offered beside the functions, as those of the server have to be; their `betas` become a
    header. What is sent is marked to be cached, unless they say something of `cache_control`: None is for no cache.

    Raises:
        ProviderError: when a model is to think and its pick is forced, which does not go together.
    """
    return _asked(request)[0]


def _asked(request: Request) -> tuple[dict[str, Any], str]:
    """The body, and what stands for its messages where thinking is bound to them."""
    settings, bound_to = _settings(request), basis(request)
    messages, before = turns(request.messages, bound_to)
    body = {"messages": messages} | settings
    has_budget = as_dict(body.get("thinking")).get("type") == "enabled"
    if has_budget and as_dict(body.get("tool_choice")).get("type") in ("any", "tool"):
        raise cannot_be_forced()
    if "cache_control" not in body:
        body = _marked_for_cache(body)
    sent = {name: value for name, value in body.items() if name != "cache_control" or value is not None}
    return sent, before if _is_claude(settings) else ""


def basis(request: Request) -> str:
    """What stands for all that thinking is bound to, but for the messages before it.

    Other models than Claude have nothing but their name for it.
    """
    settings = _settings(request)
    return digest(*map(settings.get, ("model", "system", "tools") if _is_claude(settings) else ("model",)))


def _is_claude(settings: dict[str, Any]) -> bool:
    return "claude" in as_str(settings["model"])


def _settings(request: Request) -> dict[str, Any]:
    """The body without the messages."""
    settings: dict[str, Any] = {"model": request.model, "max_tokens": MAX_TOKENS, "stream": True}
    if request.system and request.system.strip():
        settings["system"] = [{"type": "text", "text": request.system}]
    more = [as_dict(tool) for tool in as_list(request.options.get("tools"))]
    taken = {tool.get("name") for tool in more}
    if tools := [*(_tool(tool) for tool in request.tools if tool.name not in taken), *more]:
        settings["tools"] = tools
    if request.tools:
        settings["tool_choice"] = _tool_choice(request)
    elif not tools and (called := called_functions(request.messages)):
        # A conversation with calls in it is refused without tools.
        settings["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in called]
        settings["tool_choice"] = {"type": "none"}
    if any("type" in tool for tool in more) and (place := container(request.messages)):
        settings["container"] = place
    return settings | {name: value for name, value in request.options.items() if name not in ("tools", "betas")}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _tool_choice(request: Request) -> dict[str, Any]:
    choice = request.tool_choice
    kinds = {"auto": "auto", "required": "any", "none": "none"}
    said: dict[str, Any] = (
        {"type": kinds[choice]} if isinstance(choice, str) else {"type": "tool", "name": choice["name"]}
    )
    if request.parallel_tool_calls is False and choice != "none":
        said["disable_parallel_tool_use"] = True
    return said


def _marked_for_cache(body: dict[str, Any]) -> dict[str, Any]:
    """`body`, so that what it has in common with the next one is cached, and what the one before had is found.

    A mark on the system prompt covers the tools too.
    """
    marked: dict[str, Any] = {"messages": last_turns_marked(body["messages"], _marked)}
    for name in ("system", "tools"):
        if body.get(name):
            return body | marked | {name: _marked(body[name])}
    return body | marked


def _marked(blocks: Any) -> Any:
    *others, last = as_list(blocks) or [None]
    # A text is no list of blocks, and a tool that is loaded later takes no mark.
    if not isinstance(last, dict) or as_dict(last).get("defer_loading"):
        return blocks
    return [*others, {"cache_control": {"type": "ephemeral"}} | as_dict(last)]


# -------------------------------------------------------------------- the connection


def _client(connection: Connection) -> Client:
    import anthropic

    kinds: tuple[type[Client], ...] = (
        anthropic.Anthropic,
        anthropic.AnthropicBedrock,
        anthropic.AnthropicBedrockMantle,
        anthropic.AnthropicVertex,
    )
    wanted = "an anthropic.Anthropic, AnthropicBedrock or AnthropicVertex object"
    if client := given_client(connection, kinds, wanted):
        return client
    base_url = connection.base_url or os.environ.get("ANTHROPIC_BASE_URL")
    api_key = key_of(connection, "ANTHROPIC_API_KEY")
    token = None if api_key else os.environ.get("ANTHROPIC_AUTH_TOKEN")
    # A server of one's own needs no key, but the SDK does.
    return _shared_client(
        api_key or (None if token or not base_url else "none"), token, base_url, environment_of("ANTHROPIC_")
    )


@functools.lru_cache(maxsize=16)
def _shared_client(api_key: str | None, auth_token: str | None, base_url: str | None, environment: object) -> Anthropic:
    import anthropic

    missing = f"There is no key for anthropic: {SDK.key_hint}"
    try:
        with making_a_client():
            client = anthropic.Anthropic(api_key=api_key, auth_token=auth_token, base_url=base_url)
    except anthropic.CredentialsError as error:
        raise ProviderError(f"{missing} ({error})", "auth") from error
    if not (client.api_key or client.auth_token or client.credentials):
        raise ProviderError(missing, "auth")
    return client


def models(connection: Connection) -> list[str]:
    """The models that Anthropic, or the server at `base_url`, offers.

    Raises:
        RunError: when it does not say.
    """

    def ask() -> list[str]:
        import anthropic

        client = _client(connection)
        if not isinstance(client, anthropic.Anthropic):
            raise ProviderError(f"{type(client).__name__} cannot say which models there are", "setup")
        return _sdk.offered(SDK, client, connection)

    return listed(connection, ask)
