"""Recorded replies, errors and requests of Anthropic: through the real SDK, whole and cut in every way."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import anthropic
import pytest
from pydantic import TypeAdapter

from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    InputBlock,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Connection, Request, ToolChoice, ToolSpec
from op_jupyter.providers.anthropic import basis, request_body
from tests.providers.adapter import KEY, Reply
from tests.providers.anthropic_wire import Anthropic
from tests.providers.recordings import WIRE, Recordings, answering, needs_recordings, read_to_end, recorded
from tests.providers.wire_server import Answer, WireServer

BEDROCK = recorded("bedrock", "invoke-anthropic-*.bin")
REQUESTS = recorded("requests/anthropic", "*.json")
SIMPLE = {"name", "description", "input_schema"}  # what a tool has that is a function here

ADAPTER = Anthropic()
pytestmark = needs_recordings


class TestAnthropicRecordings(Recordings):
    adapter = ADAPTER
    streams = recorded("anthropic", "*.sse")

    def check(self, reply: Reply, path: Path) -> None:
        expected = json.loads(path.with_suffix(".expected.json").read_text())
        end, usage = reply.end, expected["usage_raw"]
        thinking = [block.thinking for block in reply.content if isinstance(block, ThinkingContent)]
        server_calls = [
            {"name": block.name, "arguments": block.data["input"]}
            for block in reply.content
            if isinstance(block, ServerContent) and "input" in block.data
        ]
        assert reply.text == expected["text"]
        assert "".join(thinking) == (expected["thinking"] or "")
        assert [{"name": call.name, "arguments": call.arguments} for call in reply.calls] == expected["tool_calls"]
        assert all(call.raw_arguments is None and call.id for call in reply.calls)
        assert server_calls == expected.get("server_tool_calls", [])
        assert end.finish == expected["finish"]
        assert (end.usage.input, end.usage.output) == (expected["usage"]["input"], expected["usage"]["output"])
        assert end.usage.cache_read == usage.get("cache_read_input_tokens", 0)
        assert end.usage.reasoning == usage.get("output_tokens_details", {}).get("thinking_tokens", 0)
        kinds = {"end_turn": "stop", "tool_use": "tool_use", "refusal": "error"}
        assert end.stop_reason == kinds[expected["finish"]]
        assert reply.retries == []

    def closing(self, path: Path, wire: bytes) -> int:
        return wire.rindex(b"event: message_stop")

    def client(self, pieces: list[bytes], headers: dict[str, str]) -> Any:
        return anthropic.Anthropic(api_key=KEY, http_client=answering(pieces, headers))


@pytest.mark.parametrize("path", BEDROCK, ids=lambda path: path.stem)
def test_a_recorded_reply_of_bedrock_is_read_through_its_client(server: WireServer, path: Path) -> None:
    pytest.importorskip("botocore", reason="needs op_jupyter[bedrock]")
    wire = path.read_bytes()
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    with anthropic.AnthropicBedrock(api_key=KEY, aws_region="eu-north-1", base_url=server.url) as client:
        for cut in [0, *sorted(random.Random(path.stem).sample(range(1, len(wire)), 20))]:
            server.script = [Answer(pieces=[piece for piece in (wire[:cut], wire[cut:]) if piece], headers=headers)]
            TestAnthropicRecordings().check(ADAPTER.ask(Connection(client=client)), path)
        server.script = [Answer(pieces=[wire[: len(wire) // 2]], headers=headers, then="cut")]
        broken = ADAPTER.ask(Connection(client=client, max_retries=0)).end
    assert (broken.stop_reason, broken.error_kind) == ("error", "connection")
    asked = server.asked[-1]
    assert asked.path == "/model/claude-test/invoke-with-response-stream"
    assert asked.body.keys() & {"model", "stream"} == set()
    assert "anthropic_version" in asked.body


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [("anthropic-400-invalid-request", 400, "provider"), ("anthropic-404-not-found", 404, "not_found")],
)
def test_a_recorded_error_is_one_line_with_its_kind(server: WireServer, name: str, status: int, kind: str) -> None:
    body = (WIRE / "http-errors" / f"{name}.json").read_bytes()
    server.script = [Answer(status=status, pieces=[body], headers={"content-type": "application/json"})]
    end = ADAPTER.ask(Connection(api_key=KEY, base_url=server.url)).end
    assert end.error_kind == kind
    error = json.loads(body)["error"]
    assert end.error_message == f"{server.url} answered {status} {error['type']}: {error['message']}"


# -------------------------------------------------------------------- requests


def spoken(recorded: dict[str, Any]) -> Request:
    """The request that a recorded body would come from here."""
    tools = recorded.get("tools", [])
    functions = [
        ToolSpec(tool["name"], tool["description"], tool["input_schema"]) for tool in tools if tool.keys() <= SIMPLE
    ]
    choices: dict[str, ToolChoice] = {"auto": "auto", "any": "required", "none": "none"}
    said = recorded.get("tool_choice", {"type": "auto"})
    choice = choices.get(said["type"]) or {"type": "function", "name": said["name"]}
    known = {"model", "messages", "system", "tools", "tool_choice"}
    options = {name: value for name, value in recorded.items() if name not in known} | {"cache_control": None}
    options["tools"] = [tool for tool in tools if not tool.keys() <= SIMPLE]
    system = "".join(block["text"] for block in blocks_of(recorded.get("system", "")))
    request = Request(recorded["model"], system, [], functions, choice, options=options)
    bound_to = basis(request)
    request.messages.extend(replayable([one for turn in recorded["messages"] for one in messages_of(turn, bound_to)]))
    return request


def blocks_of(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def messages_of(turn: dict[str, Any], bound_to: str) -> Iterator[Message]:
    if turn["role"] == "assistant":
        yield AssistantMessage([block_of(block, bound_to) for block in turn["content"]], provider="anthropic")
        return
    for block in turn["content"]:
        content = cast(list[InputBlock], [TextContent(part["text"]) for part in blocks_of(block.get("content", ""))])
        match block["type"]:
            case "tool_result":
                yield ToolResultMessage(block["tool_use_id"], "", content, is_error=block.get("is_error", False))
            case "text":
                yield UserMessage(block["text"])
            case kind:
                raise AssertionError(kind)


def block_of(block: dict[str, Any], bound_to: str) -> Block:
    match block["type"]:
        case "text":
            return TextContent(block["text"])
        case "thinking":
            own = {"signature": block["signature"], "basis": bound_to}
            return ThinkingContent(block["thinking"], provider_data={"anthropic": own})
        case "tool_use":
            return ToolCall(block["id"], block["name"], block["input"])
        case kind:
            return ServerContent(kind, block, {"anthropic": {"type": kind}})


def plain(recorded: dict[str, Any]) -> dict[str, Any]:
    """A recorded body as it would be written here, where several ways of writing mean the same."""
    body: dict[str, Any] = json.loads(json.dumps(recorded), object_hook=_plain_block)
    body["stream"] = recorded["stream"]
    if tools := body.get("tools"):
        tools.sort(key=lambda tool: not tool.keys() <= SIMPLE)
        body["tool_choice"] = recorded.get("tool_choice", {"type": "auto"})
        if not tools[0].keys() <= SIMPLE:
            del body["tool_choice"]  # said of functions only
    if system := recorded.get("system"):
        body["system"] = [{"type": "text", "text": block["text"]} for block in blocks_of(system)]
    for turn in body["messages"]:
        turn["content"] = [block for block in turn["content"] if block.get("text", "said").strip()]
    return body


def _plain_block(value: dict[str, Any]) -> dict[str, Any]:
    left_out = {"cache_control"} | ({"is_error"} if value.get("is_error") is False else set())
    kept = {name: item for name, item in value.items() if name not in left_out}
    if kept.get("type") == "tool_result":
        kept["content"] = "".join(part["text"] for part in blocks_of(kept["content"]))
    return kept


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_a_recorded_request_is_one_that_would_be_sent(path: Path) -> None:
    recorded = json.loads(path.read_text())
    if any(turn["role"] == "system" for turn in recorded["messages"]):
        pytest.skip("system prompts in mid-conversation are not sent here")
    assert request_body(spoken(recorded)) == plain(recorded)


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_what_is_sent_is_of_the_sdk_s_own_types(path: Path) -> None:
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    types = TypeAdapter(MessageCreateParamsStreaming)
    recorded = json.loads(path.read_text())
    recorded["messages"] = [turn for turn in recorded["messages"] if turn["role"] != "system"]
    request = spoken(recorded)
    for name in ("cache_control", "temperature", "stream"):
        request.options.pop(name, None)
    body = request_body(request)
    assert read_to_end(types.validate_python(body)) == body
