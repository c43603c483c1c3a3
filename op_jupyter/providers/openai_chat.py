"""`openai:`, the chat completions of OpenAI and, with `base_url`, of any server that speaks them.

From messages to a request body, and to the raw stream of the reply; `_chat_chunks` makes events of that. The SDK is
given a finished body by `_openai`: keys, addresses and Azure it does well, but its own typing takes most of a round.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, assert_never

from op_jupyter.events import StreamEvent
from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    InputBlock,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Model, Request, ToolSpec
from op_jupyter.providers._chat_chunks import PROVIDER, read_chunks
from op_jupyter.providers._messages import call_id, join_text, own_of
from op_jupyter.providers._openai import models, reply
from op_jupyter.providers._shared import stream_with_retries
from op_jupyter.providers._wire import as_dict, as_list, as_str, to_json

__all__ = ["model", "models", "request_body", "stream"]

ALLOWED_ID = re.compile(".{1,40}", re.DOTALL)


def model(name: str) -> Model:
    """The model that OpenAI, or the server at `base_url`, calls `name`."""
    return Model(PROVIDER, name, stream)


def stream(request: Request) -> Iterator[StreamEvent]:
    """Ask the model, and stream its reply."""
    return stream_with_retries(
        request, lambda: reply(request.connection, "/chat/completions", request_body(request), read_chunks)
    )


# -------------------------------------------------------------------- the request


def request_body(request: Request) -> dict[str, Any]:
    """The body that asks for the reply to `request`; its `options` override everything.

    The `tools` among them are offered beside the functions, as those of the server have to be.
    """
    body: dict[str, Any] = {
        "model": request.model,
        "messages": list(_messages(request)),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    more = [as_dict(tool) for tool in as_list(request.options.get("tools"))]
    taken = {as_dict(tool.get("function")).get("name") for tool in more}
    if tools := [*(_tool(tool) for tool in request.tools if tool.name not in taken), *more]:
        body["tools"] = tools
    if request.tools:
        choice = request.tool_choice
        named = choice if isinstance(choice, str) else {"type": "function", "function": {"name": choice["name"]}}
        body["tool_choice"] = named
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    return body | {name: value for name, value in request.options.items() if name != "tools"}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _messages(request: Request) -> Iterator[dict[str, Any]]:
    if request.system and request.system.strip():
        yield {"role": "system", "content": request.system}
    latest_prompt = max(
        (i for i, message in enumerate(request.messages) if isinstance(message, UserMessage)), default=-1
    )
    field = _field_of_reasoning(request)
    images: list[dict[str, Any]] = []
    for position, message in enumerate(request.messages):
        if images and not isinstance(message, ToolResultMessage):
            yield {"role": "user", "content": images}
            images = []
        match message:
            case UserMessage():
                yield {"role": "user", "content": _content(message.content)}
            case AssistantMessage():
                known = field if message.model == request.model else None
                yield from _assistant(message, known, with_extras=position > latest_prompt)
            case ToolResultMessage():
                shown = [_part(block) for block in message.content if isinstance(block, ImageContent)]
                text = join_text(message.content) or ("The image follows." if shown else "")
                yield {"role": "tool", "tool_call_id": call_id(message.tool_call_id, ALLOWED_ID), "content": text}
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


def _field_of_reasoning(request: Request) -> str | None:
    """The field in which the model of `request` has told its reasoning in this conversation."""
    for message in request.messages:
        if isinstance(message, AssistantMessage) and message.model == request.model:
            for block in message.content:
                if isinstance(block, ThinkingContent) and (field := own_of(block, PROVIDER).get("field")):
                    return as_str(field)
    return None


def _assistant(message: AssistantMessage, field: str | None, *, with_extras: bool) -> Iterator[dict[str, Any]]:
    """The message, if there is anything in it that this wire format can say.

    The extras are what some servers need back while they call functions: reasoning, and signatures of other models
    behind them. After the next prompt they are no longer needed, and the next server may refuse them; but a model that
    has told its reasoning in `field` wants it beside each of its calls for good, where there was none as a blank.
    """
    text, calls = message.text, message.tool_calls
    if not text.strip() and not calls:
        return
    said: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
    if calls:
        said["tool_calls"] = [_call(call, with_extras) for call in calls]
    if calls and field:
        said[field] = ""
    for thought in message.content:
        if not isinstance(thought, ThinkingContent):
            continue
        name = own_of(thought, PROVIDER).get("field")
        if name and (with_extras or name in said):
            said[name] = said.get(name, "") + thought.thinking
    if with_extras:
        said |= own_of(message, PROVIDER)
    yield said


def _call(call: ToolCall, with_extras: bool) -> dict[str, Any]:
    function = {"name": call.name, "arguments": to_json(call.arguments).decode()}
    said = {"id": call_id(call.id, ALLOWED_ID), "type": "function", "function": function}
    return said | (own_of(call, PROVIDER) if with_extras else {})
