"""Recorded replies, errors and requests of OpenAI responses: through the real SDK, whole and cut in every way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import openai
import pytest

from op_jupyter.messages import (
    AssistantMessage,
    Block,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Connection, Request, ToolChoice, ToolSpec
from op_jupyter.providers.openai_responses import request_body
from tests.providers.adapter import KEY, Reply
from tests.providers.recordings import WIRE, Recordings, answering, needs_recordings, recorded
from tests.providers.responses_wire import OpenAIResponses, read_by_the_sdk
from tests.providers.wire_server import Answer, WireServer

STREAMS = recorded("openai-responses", "*.sse")
REQUESTS = recorded("requests/openai-responses", "*.json")
EVENT_STREAM = {"content-type": OpenAIResponses.content_type}
ENDS = ("response.completed", "error")

ADAPTER = OpenAIResponses()
pytestmark = needs_recordings


class TestOpenAIResponsesRecordings(Recordings):
    adapter = ADAPTER
    streams = STREAMS

    def check(self, reply: Reply, path: Path) -> None:
        expected = json.loads(path.with_suffix(".expected.json").read_text())
        end, usage = reply.end, expected["usage_raw"] or {}
        thinking = [block.thinking for block in reply.content if isinstance(block, ThinkingContent)]
        calls = [{"name": call.name, "arguments": call.raw_arguments or call.arguments} for call in reply.calls]
        ran = [block.data["type"] for block in reply.content if isinstance(block, ServerContent)]
        assert reply.text == expected["text"]
        assert "".join(thinking) == (expected["thinking"] or "")
        assert calls == expected["tool_calls"]
        assert ran == expected.get("server_items", [])
        assert end.finish == expected["finish"]
        read = usage.get("input_tokens_details", {}).get("cached_tokens", 0)
        assert (end.usage.input + read, end.usage.cache_read) == (usage.get("input_tokens", 0), read)
        assert end.usage.output == usage.get("output_tokens", 0)
        assert end.usage.reasoning == usage.get("output_tokens_details", {}).get("reasoning_tokens", 0)
        if error := expected.get("error"):
            assert (end.stop_reason, end.error_kind) == ("error", "quota")
            assert error["message"] in (end.error_message or "")
        else:
            assert end.stop_reason == ("tool_use" if calls else "stop")
        assert reply.retries == []

    def closing(self, path: Path, wire: bytes) -> int:
        last = next(event for event in events_in(path) if event["type"] in ENDS)["type"]
        return wire.rindex(b"data: {", 0, wire.index(f'"type":"{last}"'.encode()))

    def client(self, pieces: list[bytes], headers: dict[str, str]) -> Any:
        return openai.OpenAI(api_key=KEY, http_client=answering(pieces, headers))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_recorded_reply_goes_back_as_it_came(server: WireServer, path: Path) -> None:
    server.script = [Answer(pieces=[path.read_bytes()], headers=EVENT_STREAM)]
    reply = ADAPTER.ask(Connection(api_key=KEY, base_url=server.url))
    message = AssistantMessage(reply.content, provider_data=reply.end.provider_data)
    results = [ToolResultMessage(call.id, call.name, [TextContent("done")]) for call in reply.calls]
    history: list[Message] = [UserMessage("Hi"), message, *results]
    sent = request_body(Request("gpt-test", None, history, []))["input"]
    done = [event for event in events_in(path) if event["type"] == "response.output_item.done"]
    items = [event["item"] for event in sorted(done, key=lambda event: event["output_index"])]
    # A summary of thinking of which nothing else came stays here.
    known = [item for item in items if item["type"] != "reasoning" or item.get("encrypted_content") or item["content"]]
    assert [comparable(item) for item in sent[1 : 1 + len(known)]] == [comparable(item) for item in known]
    answers = [f"{item['type']}_output" for item in known if item["type"] in ("function_call", "custom_tool_call")]
    assert [item["type"] for item in sent[1 + len(known) :]] == answers


def events_in(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a recording."""
    for line in path.read_bytes().split(b"\n"):
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


def comparable(item: dict[str, Any]) -> dict[str, Any]:
    """What has to go back of an item, where several ways of writing mean the same."""
    kept = {name: value for name, value in item.items() if value not in (None, []) and name != "status"}
    if item["type"] == "message":
        names = {"type", "text", "annotations"}
        kept["content"] = [{name: part[name] for name in part.keys() & names} for part in item["content"]]
    if item["type"] == "function_call":
        kept["arguments"] = json.loads(item["arguments"])
    return kept


@pytest.mark.parametrize(
    ("name", "status", "kind", "said"),
    [
        ("openai-401-bad-key", 401, "auth", "OPENAI_API_KEY"),
        ("openai-responses-400-reasoning-without-item", 400, "provider", "without its required following item"),
        ("deepseek-responses-400-no-tool-output", 400, "provider", "No tool output found for tool call call-a."),
        ("openrouter-429-upstream", 429, "rate_limit", "temporarily rate-limited upstream"),
    ],
)
def test_a_recorded_error_is_one_line_with_its_kind(
    server: WireServer, name: str, status: int, kind: str, said: str
) -> None:
    body = (WIRE / "http-errors" / f"{name}.json").read_bytes()
    server.script = [Answer(status=status, pieces=[body], headers={"content-type": "application/json"})]
    end = ADAPTER.ask(Connection(api_key=KEY, base_url=server.url, max_retries=0)).end
    assert end.error_kind == kind
    assert (end.error_message or "").startswith(f"{server.url} answered {status}")
    assert said in (end.error_message or "")


# -------------------------------------------------------------------- requests


def spoken(recorded: dict[str, Any]) -> Request:
    """The request that a recorded body would come from here."""
    tools = recorded.get("tools", [])
    functions = [
        ToolSpec(tool["name"], tool["description"] or "", tool["parameters"]) for tool in tools if is_function(tool)
    ]
    choice: Any = recorded.get("tool_choice", "auto")
    options = {name: value for name, value in recorded.items() if name not in ("model", "input", "instructions")}
    options["tools"] = [tool for tool in tools if not is_function(tool)]
    del options["stream"]
    options.setdefault("include", [])
    options.setdefault("store", True)
    options.pop("tool_choice", None)
    if isinstance(choice, dict) and choice["type"] != "function":
        options["tool_choice"] = choice
        choice = "required"
    messages = list(messages_of(recorded["input"], recorded["model"]))
    return Request(
        recorded["model"],
        recorded.get("instructions"),
        messages,
        functions,
        cast("ToolChoice", choice),
        options=options,
    )


def is_function(tool: dict[str, Any]) -> bool:
    return tool["type"] == "function" and "defer_loading" not in tool


def messages_of(items: list[dict[str, Any]], model: str) -> Iterator[Message]:
    own = {"openai-responses": {"model": model}}
    said: list[Block] = []
    for item in items:
        if item.get("type") in ("function_call_output", None) and item.get("role") != "assistant":
            if said:
                yield AssistantMessage(said, provider_data=own)
                said = []
            if "role" in item:
                yield UserMessage(text_of(item["content"]))
            else:
                yield ToolResultMessage(item["call_id"], "", [TextContent(item["output"])])
        else:
            said.append(block_of(item))
    assert not said


def text_of(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def block_of(item: dict[str, Any]) -> Block:
    match item.get("type", "message"):
        case "message":
            id_and_phase = {name: item[name] for name in ("id", "phase") if name in item}
            return TextContent(text_of(item["content"]), {"openai-responses": id_and_phase})
        case "reasoning":
            return ThinkingContent("", True, {"openai-responses": item})
        case "function_call":
            known = ("type", "call_id", "name", "arguments")
            own = {name: value for name, value in item.items() if name not in known}
            arguments = json.loads(item["arguments"])
            return ToolCall(item["call_id"], item["name"], arguments, None, {"openai-responses": own})
        case kind:
            return ServerContent(kind, item, {"openai-responses": {"type": kind}})


def plain(recorded: dict[str, Any]) -> dict[str, Any]:
    """A recorded body as it would be written here, where several ways of writing mean the same."""
    body: dict[str, Any] = {"include": [], "store": True, "tool_choice": "auto"} | recorded | {"stream": True}
    if not body.get("instructions"):
        body.pop("instructions", None)
    body["tools"] = [
        tool | {"strict": False, "description": tool["description"] or ""} if is_function(tool) else tool
        for tool in sorted(body["tools"], key=lambda tool: not is_function(tool))
    ]
    body["input"] = [plain_item(item) for item in body["input"] if item.get("content", "said")]
    return body


def plain_item(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type") == "function_call":
        return item | {"arguments": json.dumps(json.loads(item["arguments"]), separators=(",", ":"))}
    if item.get("role") == "user":
        return {"role": "user", "content": [{"type": "input_text", "text": text_of(item["content"])}]}
    return item


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_a_recorded_request_is_one_that_would_be_sent(path: Path) -> None:
    recorded = json.loads(path.read_text())
    if recorded["input"][0].get("role") == "system":
        recorded["instructions"] = text_of(recorded["input"].pop(0)["content"])
    assert request_body(spoken(recorded)) == plain(recorded)


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_what_is_sent_is_of_the_sdk_s_own_types(path: Path) -> None:
    recorded = json.loads(path.read_text())
    if recorded["input"][0].get("role") == "system":
        recorded["instructions"] = text_of(recorded["input"].pop(0)["content"])
    body = request_body(spoken(recorded))
    assert read_by_the_sdk(body) == body
