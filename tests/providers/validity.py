"""What each API refuses, so that a test can say of a request body that nothing of that is in it; no tests here.

From the documentation of each: calls have their results, in order and in the right place, no text is blank, sides
take turns where they have to, ids have the right form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]


def check_chat(body: Body) -> None:
    """Of the chat completions of OpenAI."""
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0), "a result in a place where no call waits for it"
        else:
            assert waiting == [], "a call without its result"
        calls = message.get("tool_calls", [])
        assert (message["content"] is None) <= bool(calls), "no content, and no calls"
        if isinstance(message["content"], str):
            assert message["content"].strip(), "a blank text"
        waiting = waiting or [call["id"] for call in calls]
        assert all(0 < len(call["id"]) <= 40 for call in calls)
    assert waiting == [], "a call without its result, at the end"


def check_responses(body: Body) -> None:
    """Of the responses of OpenAI."""
    waiting: list[str] = []
    answering = False
    for item in body["input"]:
        match item.get("type", "message"):
            case "function_call":
                assert not answering or not waiting, "a call among the results of others"
                assert 0 < len(item["call_id"]) <= 64 and isinstance(item["arguments"], str)
                assert item["call_id"] not in waiting
                waiting.append(item["call_id"])
                answering = False
            case "function_call_output":
                assert item["call_id"] == waiting.pop(0), "a result in a place where no call waits for it"
                answering = True
            case "message":
                assert item["role"] == "assistant" or waiting == [], "a call without its result"
                assert item["content"], "nothing said"
                assert all(part.get("text", "x").strip() for part in item["content"]), "a blank text"
            case "reasoning":
                assert item["encrypted_content"], "thinking that nobody can read"
            case kind:
                raise AssertionError(f"an item of another kind: {kind}")
    assert waiting == [], "a call without its result, at the end"


def check_anthropic(body: Body) -> None:
    """Of Anthropic's messages."""
    assert body["messages"][0]["role"] == "user"
    waiting: list[str] = []
    for turn in body["messages"]:
        assert turn["content"], "an empty turn"
        results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        assert [block["type"] for block in turn["content"][: len(results)]] == ["tool_result"] * len(results)
        assert results == waiting, "results that are not those of the calls before"
        waiting = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        assert len(set(waiting)) == len(waiting) and all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", id) for id in waiting)
        for block in turn["content"]:
            assert block["type"] != "text" or block["text"].strip(), "a blank text"
            assert block["type"] != "thinking" or block["signature"], "thinking that is not signed"
            assert block["type"] != "tool_use" or isinstance(block["input"], dict)
    assert waiting == [], "a call without its result, at the end"


def check_gemini(body: Body) -> None:
    """Of Gemini's contents."""
    waiting: list[str] = []
    assert body["contents"][0]["role"] == "user"
    for content in body["contents"]:
        assert content["parts"], "an empty content"
        results = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        if results or content["role"] == "model":
            assert results == waiting, "not as many results as calls, or of others"
            waiting = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
            assert not waiting or content["role"] == "model"
        for part in content["parts"]:
            assert "text" not in part or part["text"].strip() or "thoughtSignature" in part, "a blank text"
            assert "functionCall" not in part or isinstance(part["functionCall"].get("args", {}), dict)
    assert waiting == [], "a call without its result, at the end"


def check_bedrock(body: Body) -> None:
    """Of Bedrock's Converse."""
    turns = body["messages"]
    sides = [turn["role"] for turn in turns]
    assert sides == [("user", "assistant")[n % 2] for n in range(len(sides))], "two turns of one side"
    waiting: list[str] = []
    for turn in turns:
        assert turn["content"], "an empty turn"
        results = [block["toolResult"]["toolUseId"] for block in turn["content"] if "toolResult" in block]
        assert results == waiting, "results that are not those of the calls before"
        waiting = [block["toolUse"]["toolUseId"] for block in turn["content"] if "toolUse" in block]
        assert len(set(waiting)) == len(waiting) and all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", id) for id in waiting)
        for block in turn["content"]:
            assert block.get("text", "x").strip(), "a blank text"
            assert "toolUse" not in block or isinstance(block["toolUse"]["input"], dict)
    assert waiting == [], "a call without its result, at the end"


CHECKS: dict[str, Callable[[Body], None]] = {
    "openai": check_chat,
    "openai-responses": check_responses,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
    "bedrock": check_bedrock,
}
