"""`openai-responses:`, the responses of OpenAI and, with `base_url`, of any server that speaks them.

The request: `_responses_input` writes the conversation, `_responses_events` reads the reply, `_openai` connects them.
Nothing is left with the server: each request holds the whole conversation, with its own thinking in encrypted form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from op_jupyter.events import StreamEvent
from op_jupyter.providers import Model, Request, ToolSpec
from op_jupyter.providers._openai import models, reply
from op_jupyter.providers._responses_events import PROVIDER, read_events
from op_jupyter.providers._responses_input import input_items
from op_jupyter.providers._shared import stream_with_retries
from op_jupyter.providers._wire import as_dict, as_list, as_str

__all__ = ["model", "models", "request_body", "stream"]

# They do not think, and refuse to be asked for what they have thought.
_THINKS_NOT = re.compile(r"(ft:)?(chatgpt-4|gpt-4|gpt-3)")


def model(name: str) -> Model:
    """The model that OpenAI, or the server at `base_url`, calls `name`."""
    return Model(PROVIDER, name, stream)


def stream(request: Request) -> Iterator[StreamEvent]:
    """Ask the model, and stream its reply."""
    return stream_with_retries(request, lambda: _attempt(request))


def _attempt(request: Request) -> Iterator[StreamEvent]:
    body = request_body(request)
    return reply(request.connection, "/responses", body, lambda data: read_events(data, as_str(body["model"])))


def request_body(request: Request) -> dict[str, Any]:
    """The body that asks for the reply to `request`; its `options` override everything.

    The `tools` among them are offered beside the functions, as those of the server have to be.
    """
    settings: dict[str, Any] = {"model": request.model, "stream": True, "store": False}
    if request.system and request.system.strip():
        settings["instructions"] = request.system
    more = [as_dict(tool) for tool in as_list(request.options.get("tools"))]
    taken = {tool.get("name") for tool in more}
    if tools := [*(_tool(tool) for tool in request.tools if tool.name not in taken), *more]:
        settings["tools"] = tools
    if request.tools:
        settings["tool_choice"] = request.tool_choice
        if request.parallel_tool_calls is not None:
            settings["parallel_tool_calls"] = request.parallel_tool_calls
    settings |= {name: value for name, value in request.options.items() if name != "tools"}
    name = as_str(settings["model"])
    if not _THINKS_NOT.match(name):
        settings = {"include": ["reasoning.encrypted_content"]} | settings
    return {"input": input_items(request.messages, name, is_stored=bool(settings["store"]))} | settings


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,  # else it is taken for one
    }
