"""What `anthropic:` sends back of its own: thinking, and what the server ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from op_jupyter.messages import Message, TextContent, ThinkingContent, ToolCall, UserMessage
from op_jupyter.providers.anthropic import basis
from tests.providers.adapter import ADD, HI, NOW, result
from tests.providers.anthropic_wire import UNCACHED, body_of, request, said, server, thought, turns_of

SEARCH = server(type="server_tool_use", id="s1", name="web_search", input={"query": "tea"})
FOUND = server(type="web_search_tool_result", tool_use_id="s1", content=[{"url": "https://example.org"}])

# -------------------------------------------------------------------- thinking


def test_thinking_is_sent_back_as_it_came() -> None:
    bound_to = basis(request(HI, tools=[ADD]))
    secret = ThinkingContent("", redacted=True, provider_data={"anthropic": {"data": "ZW5j", "basis": bound_to}})
    blocks = [thought("Hm \n", tools=[ADD]), secret, thought("", signature="bGVlcg==", tools=[ADD])]
    (_, content) = turns_of(HI, said(*blocks, ToolCall("c1", "add")), result("c1"), UserMessage("And?"), tools=[ADD])[1]
    assert content == [
        {"type": "thinking", "thinking": "Hm \n", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZW5j"},
        {"type": "thinking", "thinking": "", "signature": "bGVlcg=="},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {}},
    ]


def test_a_blank_text_beside_signed_thinking_keeps_its_place_and_another_does_not() -> None:
    blank = TextContent("\n\n", {"anthropic": {"blank": True}})
    (_, content) = turns_of(HI, said(blank, thought("Hm"), TextContent(""), TextContent("3")))[1]
    assert [block["type"] for block in content] == ["text", "thinking", "text"]
    assert content[0]["text"] == "\n\n"
    assert turns_of(HI, said(blank, TextContent("3")))[1] == ("assistant", [{"type": "text", "text": "3"}])


@pytest.mark.parametrize(
    "changed",
    [{"tools": [ADD, NOW]}, {"system": "Be brief."}, {"options": UNCACHED | {"model": "claude-other"}}],
    ids=["other tools", "another system prompt", "another model"],
)
def test_thinking_is_left_out_where_the_server_would_refuse_it(changed: dict[str, Any]) -> None:
    reply = said(thought("Hm"), TextContent("3"))
    assert [block["type"] for block in turns_of(HI, reply, UserMessage("And?"))[1][1]] == ["thinking", "text"]
    assert [block["type"] for block in turns_of(HI, reply, UserMessage("And?"), **changed)[1][1]] == ["text"]


@pytest.mark.parametrize("changed", [{"tool_choice": "none"}, {"options": {"max_tokens": 9}}, {"options": {}}])
def test_what_does_not_change_the_conversation_leaves_the_thinking_in_it(changed: dict[str, Any]) -> None:
    reply = said(thought("Hm", tools=[ADD]), ToolCall("c1", "add"))
    content = turns_of(HI, reply, result("c1"), **{"tools": [ADD], **changed})[1][1]
    assert content[0]["type"] == "thinking"


def test_another_model_than_claude_has_its_thinking_back_whatever_it_is_offered() -> None:
    other: dict[str, Any] = {"options": UNCACHED | {"model": "deepseek-v4-pro"}}
    reply = said(thought("Hm", **other), ToolCall("c1", "add"))
    content = turns_of(HI, reply, result("c1"), UserMessage("And?"), tools=[ADD], **other)[1][1]
    assert [block["type"] for block in content] == ["thinking", "tool_use"]


def test_a_reply_that_broke_off_while_thinking_does_not_end_on_it() -> None:
    broken = said(thought("First."), TextContent("So"), thought("Second."), stop_reason="aborted")
    assert [block["type"] for block in turns_of(HI, broken, UserMessage("And?"))[1][1]] == ["thinking", "text"]
    assert turns_of(HI, said(thought("First.")), UserMessage("And?"))[0][0] == "user"
    assert len(turns_of(HI, said(thought("First.")), UserMessage("And?"))) == 1


# -------------------------------------------------------------------- what the server ran


def test_what_the_server_ran_is_sent_back_as_it_came() -> None:
    cited = {"type": "char_location", "cited_text": "Tea", "file_id": None, "document_title": None}
    text = TextContent("Tea.", {"anthropic": {"citations": [cited]}})
    summary = server(type="compaction", content="They spoke of tea.", encrypted_content="ZW5j")
    (_, content) = turns_of(HI, said(summary, SEARCH, FOUND, text), UserMessage("And?"))[1]
    assert content[:3] == [summary.data, SEARCH.data, FOUND.data]
    cited_back = {"type": "char_location", "cited_text": "Tea", "document_title": None}
    assert content[3] == {"type": "text", "text": "Tea.", "citations": [cited_back]}


def test_a_paused_reply_is_sent_back_as_it_is_and_goes_on() -> None:
    paused = said(thought("Hm"), TextContent("Searching. "), SEARCH, stop_reason="tool_use", finish="pause_turn")
    turns = turns_of(HI, paused)
    assert [role for role, _ in turns] == ["user", "assistant"]
    assert [block["type"] for block in turns[-1][1]] == ["thinking", "text", "server_tool_use"]
    (_, content) = turns_of(HI, said(SEARCH, thought("Hm"), stop_reason="tool_use"))[1]
    assert [block["type"] for block in content] == ["server_tool_use", "thinking"]
    # Then the result comes in the next reply.
    turns = turns_of(HI, paused, said(FOUND, TextContent("Tea.")), UserMessage("And?"))
    assert [role for role, _ in turns] == ["user", "assistant", "assistant", "user"]
    assert turns[2][1][0] == FOUND.data


@pytest.mark.parametrize(
    "later",
    [
        [said(TextContent("Hm"), SEARCH, stop_reason="aborted"), UserMessage("And?")],
        [said(TextContent("Hm"), SEARCH, stop_reason="length"), UserMessage("And?")],
        [said(TextContent("Hm"), SEARCH, ToolCall("c1", "add"), stop_reason="length"), result("c1")],
        [said(TextContent("Hm"), SEARCH, stop_reason="tool_use", finish="pause_turn"), UserMessage("Stop that")],
        [said(TextContent("Hm"), SEARCH, stop_reason="tool_use"), said(TextContent("Well")), UserMessage("And?")],
        [said(FOUND, TextContent("Hm")), UserMessage("And?")],
    ],
    ids=["broken off", "cut", "cut beside a call", "steered away", "never answered", "a result without its call"],
)
def test_half_of_what_the_server_ran_is_left_out(later: list[Message]) -> None:
    kinds = [block["type"] for _, content in turns_of(HI, *later) for block in content]
    assert [kind for kind in kinds if "web_search" in kind or "server" in kind] == []
    assert len(kinds) >= 3


def test_a_function_called_by_code_of_the_server_is_answered_while_that_code_waits() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "s1"}
    code = server(type="server_tool_use", id="s1", name="code_execution", input={"code": "add()"})
    call = ToolCall("c1", "add", {"a": 1}, provider_data={"anthropic": {"caller": caller}})
    expires = (datetime.now(UTC) + timedelta(minutes=4)).isoformat()
    data = {"anthropic": {"container": {"id": "container_1", "expires_at": expires}}}
    options = UNCACHED | {"tools": [{"type": "code_execution_20260120", "name": "code_execution"}]}
    reply = said(code, call, stop_reason="tool_use", provider_data=data)
    body = body_of(HI, reply, result("c1"), tools=[ADD], options=options)
    assert body["messages"][1]["content"] == [
        code.data,
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}, "caller": caller},
    ]
    assert body["container"] == "container_1"
    assert "container" not in body_of(HI, reply, result("c1"), tools=[ADD])
    steered = body_of(HI, reply, result("c1"), UserMessage("Stop that"), tools=[ADD], options=options)
    assert steered["messages"][1]["content"] == [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]


@pytest.mark.parametrize("expires", ["2020-01-01T00:00:00Z", None, "soon"])
def test_a_container_that_is_gone_is_not_asked_for(expires: str | None) -> None:
    data = {"anthropic": {"container": {"id": "container_1", "expires_at": expires}}}
    options = UNCACHED | {"tools": [{"type": "code_execution_20260120", "name": "code_execution"}]}
    assert "container" not in body_of(HI, said(TextContent("3"), provider_data=data), HI, options=options)
