"""Recorded replies, errors and requests of Bedrock's Converse: through boto3, whole and cut in every way.

The recordings whose names begin with `invoke-` are of InvokeModelWithResponseStream, another API, which holds events of
Anthropic in frames of Bedrock: they are read by `anthropic:` with its `AnthropicBedrock` client, and tested there.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
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
from op_jupyter.providers.bedrock import basis, request_body
from tests.providers.adapter import Reply
from tests.providers.bedrock_wire import (
    EVENT_STREAM,
    UNCACHED,
    Bedrock,
    account,
    event,
    messages_in,
    reply_of,
    with_bytes,
)
from tests.providers.recordings import WIRE, Recordings, needs_recordings, recorded
from tests.providers.wire_server import Answer, WireServer

pytest.importorskip("boto3", reason="needs op_jupyter[bedrock]")

INVOKE = recorded("bedrock", "invoke-*.bin")
STREAMS = sorted({*recorded("bedrock", "*.bin"), *recorded("bedrock", "*.jsonl")} - {*INVOKE})
REQUESTS = recorded("requests/bedrock", "*.json")

ADAPTER = Bedrock()
pytestmark = [needs_recordings, pytest.mark.usefixtures("no_account")]


class TestBedrockRecordings(Recordings):
    adapter = ADAPTER
    streams = STREAMS

    def check(self, reply: Reply, path: Path) -> None:
        expected = json.loads(path.with_suffix(".expected.json").read_text())
        thinking = [block for block in reply.content if isinstance(block, ThinkingContent)]
        assert reply.text == expected["text"]
        assert "".join(block.thinking for block in thinking) == (expected["thinking"] or "")
        assert [{"name": call.name, "arguments": call.arguments} for call in reply.calls] == expected["tool_calls"]
        assert all(call.raw_arguments is None and call.id for call in reply.calls)
        assert reply.end.finish == expected["finish"]
        assert reply.end.stop_reason == {"end_turn": "stop", "tool_use": "tool_use"}[expected["finish"]]
        tokens = expected["usage"]
        assert (reply.end.usage.input, reply.end.usage.output) == (tokens["input"], tokens["output"])
        assert all(block.text for block in reply.content if isinstance(block, TextContent))
        assert reply.retries == []

    def closing(self, path: Path, wire: bytes) -> int:
        return wire.index(b"messageStop")

    def wire(self, path: Path) -> bytes:
        return bytes_of(path)

    def client(self, pieces: list[bytes], headers: dict[str, str]) -> Any:
        from botocore.awsrequest import AWSResponse

        def in_memory(request: Any, **_: Any) -> Any:
            return AWSResponse(request.url, 200, headers, Raw(pieces))

        client = account().client("bedrock-runtime")
        client.meta.events.register("before-send.bedrock-runtime.ConverseStream", in_memory)
        return client


def bytes_of(path: Path) -> bytes:
    """What the server has sent; of some recordings only what was in the frames is kept."""
    if path.suffix == ".bin":
        return path.read_bytes()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return b"".join(event(kind, payload) for one in events for kind, payload in one.items())


class Raw:
    """A body in memory."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def stream(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def client(server: WireServer) -> Any:
    return account().client("bedrock-runtime", endpoint_url=server.url)


def test_recorded_reasoning_that_is_encrypted_goes_back_to_the_byte() -> None:
    path = WIRE / "bedrock" / "claude-redacted-reasoning.bin"
    payloads = [json.loads(payload) for _, payload in messages_in(path.read_bytes())]
    deltas = [payload["delta"]["reasoningContent"] for payload in payloads if "reasoningContent" in str(payload)]
    request = Request("m", None, [UserMessage("Hi")], [])
    reply = reply_of(path.read_bytes(), basis=basis(request))
    request.messages.append(AssistantMessage(reply.content, provider="bedrock"))
    sent = request_body(request)["messages"][1]["content"]
    assert sent == [*({"reasoningContent": delta} for delta in deltas), {"text": reply.text}]
    assert len(deltas) == 2


@pytest.mark.parametrize("path", INVOKE, ids=lambda path: path.stem)
def test_a_reply_of_the_other_api_is_an_error_and_not_an_empty_answer(path: Path) -> None:
    wire = path.read_bytes()
    with pytest.raises(Exception, match="broke off"):
        reply_of(wire)


@pytest.mark.parametrize(
    ("name", "code", "kind", "hint"),
    [
        ("bedrock-400-bad-model", "", "not_found", ": is the name right, and the model in this region?"),
        ("bedrock-400-malformed-toolresult", "ValidationException", "provider", ""),
    ],
)
def test_a_recorded_error_is_one_line_with_its_kind(
    server: WireServer, client: Any, name: str, code: str, kind: str, hint: str
) -> None:
    body = (WIRE / "http-errors" / f"{name}.json").read_bytes()
    headers = {"content-type": "application/json"} | ({"x-amzn-errortype": f"{code}:http://x/"} if code else {})
    server.script = [Answer(status=400, pieces=[body], headers=headers)]
    end = ADAPTER.ask(Connection(client=client)).end
    message = json.loads(body)["message"]
    said = message.rstrip(".") + hint if hint else message
    assert end.error_kind == kind
    assert end.error_message == f"{server.url} answered 400{code and ' '}{code}: {said}"


# -------------------------------------------------------------------- requests


def spoken(path: Path) -> Request:
    """The request that a recorded body would come from here."""
    recorded = plain(json.loads(path.read_text()))
    config = recorded.get("toolConfig", {})
    functions, more = list[ToolSpec](), list[dict[str, Any]]()
    for tool in config.get("tools", []):
        spec = tool.get("toolSpec", {})
        if spec and "strict" not in spec:
            functions.append(ToolSpec(spec["name"], spec.get("description", ""), spec["inputSchema"]["json"]))
        else:
            more.append(tool)
    kinds: dict[str, ToolChoice] = {"auto": "auto", "any": "required"}
    ((kind, details),) = config.get("toolChoice", {"auto": {}}).items()
    choice = kinds.get(kind) or {"type": "function", "name": details["name"]}
    known = ("messages", "system", "toolConfig")
    options = {name: value for name, value in recorded.items() if name not in known} | UNCACHED | {"tools": more}
    system = "".join(block["text"] for block in recorded.get("system", []))
    name = "us.anthropic.claude-test" if "reasoning" in path.stem else "us.amazon.nova-test"
    request = Request(name, system, [], functions, choice, options=options)
    bound_to = basis(request)
    messages = [message for turn in recorded["messages"] for message in messages_of(turn, bound_to)]
    request.messages.extend(replayable(messages))
    return request


def messages_of(turn: dict[str, Any], bound_to: str) -> Iterator[Message]:
    if turn["role"] == "assistant":
        yield AssistantMessage([block_of(block, bound_to) for block in turn["content"]], "tool_use", provider="bedrock")
        return
    for block in turn["content"]:
        if "toolResult" in block:
            result = block["toolResult"]
            content: list[InputBlock] = [TextContent(part["text"]) for part in result["content"]]
            yield ToolResultMessage(result["toolUseId"], "", content, is_error=result.get("status") == "error")
        else:
            yield UserMessage([input_block_of(block)])


def input_block_of(block: dict[str, Any]) -> InputBlock:
    if "text" in block:
        return TextContent(block["text"])
    image = block["image"]
    return ImageContent(b64decode(image["source"]["bytes"]), f"image/{image['format']}")


def block_of(block: dict[str, Any], bound_to: str) -> Block:
    match block:
        case {"text": text}:
            return TextContent(text)
        case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
            return ThinkingContent(text, provider_data={"bedrock": {"signature": signature, "basis": bound_to}})
        case {"toolUse": {"toolUseId": id, "name": name, "input": arguments, **more}} if not more:
            return ToolCall(id, name, arguments)
        case _:
            (kind,) = block
            return ServerContent(kind, block, {"bedrock": {"type": kind}})


def plain(recorded: dict[str, Any]) -> dict[str, Any]:
    """A recorded body as it would be written here, where several ways of writing mean the same."""
    body: dict[str, Any] = json.loads(json.dumps(recorded), object_hook=plain_block)
    for name in ("system", "inferenceConfig"):
        if not body.get(name):
            body.pop(name, None)
    return body


def plain_block(value: dict[str, Any]) -> dict[str, Any]:
    if "toolResult" in value and "type" not in value["toolResult"]:
        result = value["toolResult"]
        texts = [{"text": part.get("text") or json.dumps(part["json"])} for part in result["content"]]
        status = {"status": "error"} if result.get("status") == "error" else {}
        return {"toolResult": {"toolUseId": result["toolUseId"], "content": texts} | status}
    if "s3Location" in value:
        return {"bytes": "iVBORw=="}  # pictures are sent here, and not named
    return value


def as_written_here(recorded: dict[str, Any]) -> dict[str, Any]:
    """A recorded body with all that is always said here, and the tools of the options behind the functions."""
    body = plain(recorded)
    if config := body.get("toolConfig"):
        config["tools"].sort(key=lambda tool: "strict" in tool.get("toolSpec", {"strict": True}))
        if any("strict" not in tool.get("toolSpec", {"strict": True}) for tool in config["tools"]):
            config.setdefault("toolChoice", {"auto": {}})
        else:
            del config["toolChoice"]  # said of functions only
    return body


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_a_recorded_request_is_one_that_would_be_sent(path: Path) -> None:
    assert request_body(spoken(path)) == as_written_here(json.loads(path.read_text()))


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_what_is_sent_is_what_boto3_would_write_itself(server: WireServer, client: Any, path: Path) -> None:
    request = spoken(path)
    request.options.pop("cachePoint")
    body = request_body(request)
    server.script = [Answer(pieces=[bytes_of(STREAMS[0])], headers=EVENT_STREAM)]
    assert list(client.converse_stream(modelId="m", **with_bytes(body))["stream"])
    assert server.asked[-1].body == body
