"""Data of a type: asked for in words and checked here, and by the own mode of each provider through `options`."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from tests.providers.adapter import Call
from tests.providers.adapters import ADAPTERS
from tests.providers.wire_server import WireServer

SCHEMA = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
# The option that turns on the provider's own mode, where it stands in the body, and what is there.
OWN_MODE: dict[str, tuple[dict[str, Any], list[str], Any]] = {
    "openai": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "sales", "schema": SCHEMA}}},
        ["response_format", "json_schema", "schema"],
        SCHEMA,
    ),
    "openai-responses": (
        {"text": {"format": {"type": "json_schema", "name": "sales", "schema": SCHEMA}}},
        ["text", "format", "schema"],
        SCHEMA,
    ),
    "anthropic": (
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        ["output_config", "format", "schema"],
        SCHEMA,
    ),
    "gemini": (
        {"response_mime_type": "application/json", "response_json_schema": SCHEMA},
        ["generationConfig", "responseJsonSchema"],
        SCHEMA,
    ),
    "bedrock": (
        {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{}"}}}}},
        ["outputConfig", "textFormat", "structure", "jsonSchema", "schema"],
        "{}",
    ),
}


def plot() -> str:
    """Plot."""
    return "plotted"


@pytest.mark.usefixtures("no_account")
@pytest.mark.parametrize("name", ADAPTERS)
def test_a_type_is_asked_for_beside_functions_and_the_mode_of_the_provider_passes_through(
    name: str, server: WireServer
) -> None:
    adapter = ADAPTERS[name]
    options, place, there = OWN_MODE[name]
    server.script = [
        adapter.answer(Call("c1", "plot", ["{}"])),
        adapter.answer("It is 3."),
        adapter.answer('{"total": 3}'),
    ]
    assert adapter.runtime(server.url).exec("Sum up.", tools=[plot], response_format=SCHEMA, options=options) == {
        "total": 3
    }
    for asked in server.asked:
        assert reduce(lambda part, key: part[key], place, asked.body) == there
        assert '\\"total\\"' in str(asked.body).replace('"', '\\"'), "not asked for in words"
