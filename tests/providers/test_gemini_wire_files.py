"""Recorded replies, errors and requests of Gemini: through the real SDK, whole and cut in every way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from google import genai
from pydantic import BaseModel, ConfigDict

from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Connection, Request, ToolChoice, ToolSpec
from op_jupyter.providers._gemini_events import METADATA
from op_jupyter.providers.gemini import request_body
from tests.providers.adapter import KEY, Reply
from tests.providers.gemini_wire import Gemini
from tests.providers.recordings import WIRE, Recordings, answering, needs_recordings, recorded
from tests.providers.wire_server import Answer, WireServer

STREAMS = recorded("gemini", "*")
REQUESTS = recorded("requests/gemini", "*.json")
MODEL = "gemini-2.5-test"  # before Gemini 3, nothing is signed that was not
CONTENT_TYPES = {".sse": "text/event-stream", ".json": "application/json; charset=UTF-8"}

ADAPTER = Gemini()
pytestmark = needs_recordings


class TestGeminiRecordings(Recordings):
    adapter = ADAPTER
    streams = STREAMS

    def check(self, reply: Reply, path: Path) -> None:
        expected = json.loads(path.with_suffix(".expected.json").read_text())
        end, usage = reply.end, expected["usage_raw"]
        thinking = [block.thinking for block in reply.content if isinstance(block, ThinkingContent)]
        assert reply.text == expected["text"]
        assert "".join(thinking) == (expected["thinking"] or "")
        assert [{"name": call.name, "arguments": call.arguments} for call in reply.calls] == expected["tool_calls"]
        assert all(call.raw_arguments is None for call in reply.calls)
        assert end.finish == expected["finish"]
        thoughts = usage.get("thoughtsTokenCount", 0)
        assert end.usage.output == (expected["usage"]["output"] or 0) + thoughts
        assert end.usage.input == (expected["usage"]["input"] or 0) + usage.get("toolUsePromptTokenCount", 0)
        assert end.usage.reasoning == thoughts
        assert end.usage.total == usage.get("totalTokenCount", 0)
        if end.finish == "STOP":
            assert end.stop_reason == ("tool_use" if reply.calls else "stop")
        else:
            assert (end.stop_reason, end.error_kind) == ("error", "filter")
            assert str(end.finish or expected["block_reason"]) in (end.error_message or "")
        assert reply.retries == []

    def closing(self, path: Path, wire: bytes) -> int:
        return max(wire.rfind(b"data:"), 30)

    def client(self, pieces: list[bytes], headers: dict[str, str]) -> Any:
        return genai.Client(api_key=KEY, http_options=genai.types.HttpOptions(httpx_client=answering(pieces, headers)))

    def headers(self, path: Path) -> dict[str, str]:
        return {"content-type": CONTENT_TYPES[path.suffix]}


def chunks_of(path: Path) -> list[dict[str, Any]]:
    wire = path.read_text()
    if path.suffix == ".json":
        return cast("list[dict[str, Any]]", json.loads(wire))
    return [json.loads(line.removeprefix("data: ")) for line in wire.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_recorded_reply_is_sent_back_as_it_came(path: Path) -> None:
    """All parts, and each signature on its own; only what was streamed in pieces is put together."""
    recorded = [
        part
        for chunk in chunks_of(path)
        for candidate in chunk.get("candidates", [])
        for part in candidate.get("content", {}).get("parts", [])
        if part != {"text": ""}
    ]
    content = replay(path)
    if any("willContinue" in part.get("functionCall", {}) for part in recorded):
        signatures = [[part.get("thoughtSignature") for part in parts] for parts in (content, recorded)]
        assert [*filter(None, signatures[0])] == [*filter(None, signatures[1])]
        return
    for part in content:
        part.get("functionCall", {}).pop("id", None)  # none of these has one
    assert content == joined(recorded)


def read_in_memory(path: Path) -> Reply:
    """What a recorded reply is read as."""
    of = TestGeminiRecordings()
    return ADAPTER.ask(Connection(client=of.client([of.wire(path)], of.headers(path))))


def replay(path: Path) -> list[dict[str, Any]]:
    """The parts that are sent back of a recorded reply."""
    reply = read_in_memory(path)
    message = AssistantMessage(reply.content, provider="gemini", model=MODEL)
    body = request_body(Request(MODEL, None, replayable([UserMessage("Hi"), message]), []))
    parts = [content["parts"] for content in body["contents"] if content["role"] == "model"]
    return parts[0] if parts else []


def joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`parts`, with texts that bear no signature put together."""
    found: list[dict[str, Any]] = []
    for part in parts:
        unsigned = found and part.keys() | found[-1].keys() <= {"text", "thought"}
        if unsigned and part.get("thought") == found[-1].get("thought"):
            found[-1]["text"] += part["text"]
        else:
            found.append(dict(part))
    return found


def test_what_is_said_of_a_reply_is_shown_and_not_sent_back() -> None:
    path = next(path for path in STREAMS if path.stem == "web-search-grounding-escapes")
    *_, shown = read_in_memory(path).content
    assert isinstance(shown, ServerContent) and shown.name in METADATA
    assert shown.data["webSearchQueries"] == ["weather in San Francisco today"]
    assert all("text" in part for part in replay(path))


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [("extra-gemini-400-temperature", 400, "provider"), ("gemini-404-model", 404, "not_found")],
)
def test_a_recorded_error_is_one_line_with_its_kind(server: WireServer, name: str, status: int, kind: str) -> None:
    body = (WIRE / "http-errors" / f"{name}.json").read_bytes()
    server.script = [Answer(status=status, pieces=[body], headers={"content-type": "application/json"})]
    end = ADAPTER.ask(Connection(api_key=KEY, base_url=server.url)).end
    assert end.error_kind == kind
    error = json.loads(body)["error"]
    assert end.error_message == f"{server.url} answered {status} {error['status']}: {error['message']}"


# -------------------------------------------------------------------- requests


def spoken(recorded: dict[str, Any]) -> Request:
    """The request that a recorded body would come from here."""
    functions = [
        ToolSpec(function["name"], function["description"], function["schema"])
        for tool in recorded.get("tools", [])
        for function in tool.get("functionDeclarations", [])
    ]
    others = [tool for tool in recorded.get("tools", []) if "functionDeclarations" not in tool]
    config = dict(recorded.get("toolConfig", {}))
    calling = config.pop("functionCallingConfig", {"mode": "AUTO"})
    choice = cast("ToolChoice", {"AUTO": "auto", "ANY": "required", "NONE": "none"}.get(calling["mode"], "auto"))
    if calling not in ({"mode": "AUTO"}, {"mode": "ANY"}, {"mode": "NONE"}):
        config["functionCallingConfig"] = calling
    if len(calling.get("allowedFunctionNames", [])) == 1:
        choice = {"type": "function", "name": calling["allowedFunctionNames"][0]}
        del config["functionCallingConfig"]
    options = {"generationConfig": recorded.get("generationConfig", {}), "toolConfig": config, "tools": others}
    system = "".join(part["text"] for part in recorded.get("systemInstruction", {}).get("parts", []))
    messages = [message for content in recorded["contents"] for message in messages_of(content)]
    return Request(MODEL, system, messages, functions, choice, options=options)


def messages_of(content: dict[str, Any]) -> Iterator[Message]:
    if content["role"] == "model":
        yield AssistantMessage([*map(block_of, content["parts"])], provider="gemini", model=MODEL)
        return
    for part in content["parts"]:
        if response := part.get("functionResponse"):
            said = TextContent(response["response"]["output"])
            yield ToolResultMessage(response["id"], response["name"], [said])
        else:
            yield UserMessage(part["text"])


def block_of(part: dict[str, Any]) -> Block:
    signed = {"gemini": {"thoughtSignature": part["thoughtSignature"]}} if "thoughtSignature" in part else None
    call = part["functionCall"]
    return ToolCall(call["id"], call["name"], call["args"], provider_data=signed)


def plain(recorded: dict[str, Any]) -> dict[str, Any]:
    """A recorded body as it would be written here, where several ways of writing mean the same."""
    body = json.loads(json.dumps(recorded))
    for content in body["contents"]:
        for part in content["parts"]:
            if response := part.get("functionResponse"):
                (value,) = response["response"].values() if len(response["response"]) == 1 else ("",)
                response["response"] = {"output": value if isinstance(value, str) else json.dumps(value)}
    for tool in body.get("tools", []):
        for function in tool.get("functionDeclarations", []):
            schemas = [function.pop(name) for name in list(function) if name.startswith("parameters")]
            function["schema"] = schemas[0]
    body.get("tools", []).sort(key=lambda tool: "functionDeclarations" not in tool)
    body.get("systemInstruction", {}).pop("role", None)
    if "tools" in body:
        body["toolConfig"] = {"functionCallingConfig": {"mode": "AUTO"}} | body.get("toolConfig", {})
    if not body.get("generationConfig"):
        body.pop("generationConfig", None)
    return cast("dict[str, Any]", body)


def sent(recorded: dict[str, Any], *, on_vertex: bool) -> dict[str, Any]:
    """What would be sent in place of a recorded body, with one name for every kind of schema."""
    body = request_body(spoken(plain(recorded)), on_vertex=on_vertex)
    for tool in body["tools"]:
        for function in tool.get("functionDeclarations", []):
            function["schema"] = function.pop("parametersJsonSchema")
    return body


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_a_recorded_request_is_one_that_would_be_sent(path: Path) -> None:
    recorded = json.loads(path.read_text())
    body, expected = sent(recorded, on_vertex="vertex" in path.stem), plain(recorded)
    for one in (body, expected):
        # What follows one another from the same side is put together here.
        one["contents"] = [(content["role"], part) for content in one["contents"] for part in content["parts"]]
    assert body == expected


class Body(BaseModel):
    """A body in the types of the SDK, none of which takes a field that it does not know."""

    model_config = ConfigDict(extra="forbid")

    contents: list[genai.types.Content]
    systemInstruction: genai.types.Content | None = None
    tools: list[genai.types.Tool] | None = None
    toolConfig: genai.types.ToolConfig | None = None
    generationConfig: genai.types.GenerationConfig | None = None


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_what_is_sent_is_of_the_sdk_s_own_types(path: Path) -> None:
    body = request_body(spoken(plain(json.loads(path.read_text()))))
    Body.model_validate(body)


@pytest.mark.parametrize(("name", "count"), [("gemini-2.5-test", 4), ("gemini-3-test", 3)])
def test_images_and_what_the_server_ran_are_of_the_sdk_s_own_types(name: str, count: int) -> None:
    png = ImageContent(b"\x89PNG", "image/png")
    code = ServerContent("executableCode", {"code": "1", "language": "PYTHON"}, {"gemini": {"type": "executableCode"}})
    messages: list[Message] = [
        UserMessage([TextContent("Hi"), png]),
        AssistantMessage([code, png, ToolCall("c1", "plot", {})], provider="gemini", model=name),
        ToolResultMessage("c1", "plot", [png]),
    ]
    assert len(Body.model_validate(request_body(Request(name, "Be brief.", messages, []))).contents) == count
