"""What `anthropic:` sends: the body of a request, from the conversation and the menu."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from op_jupyter.providers import ToolChoice, ToolSpec
from op_jupyter.providers._shared import ProviderError
from tests.providers.adapter import ADD, HI, NOW, result
from tests.providers.anthropic_wire import UNCACHED, body_of, said, turns_of

PNG = ImageContent(b"\x89PNG", "image/png")
PNG_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}

# -------------------------------------------------------------------- settings


def test_a_plain_question_is_a_plain_body() -> None:
    assert body_of(HI, system="Be brief.") == {
        "model": "claude-test",
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "stream": True,
    }


def test_options_override_everything() -> None:
    options = {"max_tokens": 9, "temperature": 0, "system": "Mine.", "model": "other", "stop_sequences": ["."]}
    body = body_of(HI, system="Yours.", options=options)
    assert {name: body[name] for name in options} == options


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", {"type": "any", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
        ({"type": "function", "name": "add"}, {"type": "tool", "name": "add", "disable_parallel_tool_use": True}),
    ],
)
def test_the_tool_choice_is_said_in_this_wire_s_words(choice: ToolChoice, sent: dict[str, Any]) -> None:
    body = body_of(HI, tools=[ADD], tool_choice=choice, parallel_tool_calls=False)
    assert body["tool_choice"] == sent
    assert body["tools"] == [{"name": "add", "description": "Add two numbers.", "input_schema": ADD.parameters}]
    for allowed in (None, True):
        body = body_of(HI, tools=[ADD], tool_choice=choice, parallel_tool_calls=allowed)
        assert body["tool_choice"] == {name: value for name, value in sent.items() if "parallel" not in name}


def test_without_tools_nothing_is_said_of_them() -> None:
    body = body_of(HI, tool_choice="required", parallel_tool_calls=False)
    assert body.keys() & {"tools", "tool_choice"} == set()


def test_without_tools_those_that_were_called_are_offered_and_not_to_be_called() -> None:
    body = body_of(HI, said(ToolCall("c1", "add"), ToolCall("c2", "now"), ToolCall("c3", "add")))
    assert [tool["name"] for tool in body["tools"]] == ["add", "now"]
    assert body["tool_choice"] == {"type": "none"}


def test_tools_of_the_server_are_offered_beside_the_functions() -> None:
    search = {"type": "web_search_20260318", "name": "web_search", "max_uses": 2}
    body = body_of(HI, tools=[ADD, NOW], options=UNCACHED | {"tools": [search]})
    assert [tool["name"] for tool in body["tools"]] == ["add", "now", "web_search"]
    assert body["tools"][-1] == search
    assert body_of(HI, options=UNCACHED | {"tools": [search]})["tools"] == [search]


def test_a_tool_of_the_options_takes_the_place_of_the_function_of_that_name() -> None:
    mine = {"name": "add", "description": "Mine.", "input_schema": {"type": "object"}, "strict": True}
    assert body_of(HI, tools=[ADD], options=UNCACHED | {"tools": [mine]})["tools"] == [mine]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "add"}])
def test_thinking_with_a_budget_and_a_forced_choice_do_not_go_together(choice: ToolChoice) -> None:
    options = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    with pytest.raises(ProviderError, match="tool_choice") as raised:
        body_of(HI, tools=[ADD], tool_choice=choice, options=options)
    assert (raised.value.kind, raised.value.retry) == ("setup", False)
    for settings in ({"tool_choice": "auto", "options": options}, {"options": {"thinking": {"type": "adaptive"}}}):
        assert body_of(HI, **{"tools": [ADD], "tool_choice": choice, **settings})["thinking"]


# -------------------------------------------------------------------- the conversation


def test_the_results_of_one_reply_are_one_turn_and_come_before_any_text() -> None:
    turns = turns_of(
        HI,
        said(TextContent("Three at once."), ToolCall("c1", "plot"), ToolCall("c2", "plot"), ToolCall("c3", "plot")),
        result("c2", TextContent("two"), PNG),
        result("c1", TextContent("one")),
        UserMessage("Wait!", source="steering"),
        result("c3", TextContent("ValueError: no data"), is_error=True),
        UserMessage([TextContent("Look:"), PNG]),
    )
    assert [role for role, _ in turns] == ["user", "assistant", "user"]
    assert turns[2][1] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "two"}, PNG_BLOCK]},
        {"type": "tool_result", "tool_use_id": "c3", "content": "ValueError: no data", "is_error": True},
        {"type": "text", "text": "Wait!"},
        {"type": "text", "text": "Look:"},
        PNG_BLOCK,
    ]


def test_a_result_with_a_picture_in_it_is_not_called_an_error() -> None:
    (_, content) = turns_of(HI, said(ToolCall("c1", "plot")), result("c1", PNG, is_error=True))[-1]
    assert content == [{"type": "tool_result", "tool_use_id": "c1", "content": [PNG_BLOCK]}]


def test_arguments_that_were_no_object_are_sent_as_an_empty_one() -> None:
    (_, content) = turns_of(HI, said(ToolCall("c1", "add", {}, "[1, 2")))[1]
    assert content == [{"type": "tool_use", "id": "c1", "name": "add", "input": {}}]


def test_ids_that_would_be_refused_are_replaced_on_both_sides_and_stay_different() -> None:
    ids = ["functions.add:0", "functions.add:1", "ä", "x" * 450, "x" * 449 + "y", "", "half \ud83d", "toolu_fine-1"]
    turns = turns_of(HI, said(*(ToolCall(given, "add") for given in ids)), *(result(given) for given in ids))
    sent = [block["id"] for block in turns[1][1]]
    assert sent == [block["tool_use_id"] for block in turns[2][1]]
    assert len(set(sent)) == len(ids)
    assert all(id.isascii() and id.replace("-", "").replace("_", "").isalnum() and len(id) <= 64 for id in sent)
    assert sent[-1] == "toolu_fine-1"


def test_what_another_model_said_is_sent_as_far_as_it_can_be_said_here() -> None:
    content: list[Block] = [
        ThinkingContent("Hm.", provider_data={"openai-responses": {"encrypted_content": "ZW5j"}}),
        TextContent("", {"gemini": {"thought_signature": "c2ln"}}),
        ServerContent("web_search", {"id": "ws_1", "type": "web_search_call"}, {"openai-responses": {"id": "ws_1"}}),
        ServerContent("reasoning", {"type": "reasoning"}, {"openai-responses": {"encrypted_content": "ZW5j"}}),
        ImageContent(b"\x89PNG", "image/png"),
        TextContent("Yes."),
    ]
    assert turns_of(HI, AssistantMessage(content, provider="gemini"))[1] == (
        "assistant",
        [{"type": "text", "text": "Yes."}],
    )


def test_a_reply_of_which_nothing_can_be_sent_is_left_out() -> None:
    turns = turns_of(HI, AssistantMessage([ThinkingContent("Hm.")]), UserMessage("And?"))
    assert turns == [("user", [{"type": "text", "text": "Hi"}, {"type": "text", "text": "And?"}])]


# -------------------------------------------------------------------- the cache


def marks(body: dict[str, Any]) -> Iterator[str]:
    """All that stands before each mark: what the server caches there."""
    before: list[Any] = []
    blocks = [*body.get("tools", []), *body.get("system", [])]
    for block in [*blocks, *(block for turn in body["messages"] for block in turn["content"])]:
        marked = block.get("cache_control") == {"type": "ephemeral"}
        before.append({name: value for name, value in block.items() if name != "cache_control"})
        if marked:
            yield json.dumps(before)


@pytest.mark.parametrize("system", [None, "Be brief."])
@pytest.mark.parametrize("tools", [[], [ADD, NOW]], ids=["a chat", "many calls"])
def test_each_round_finds_in_the_cache_what_the_round_before_left_there(
    system: str | None, tools: list[ToolSpec]
) -> None:
    conversation: list[Message] = [HI]
    last: list[str] = []
    for number in range(6):
        body = body_of(*conversation, system=system, tools=tools, options={})
        found = list(marks(body))
        assert len(found) <= 4
        assert not last or last[-1] in found, "no mark stands where the cache ended"
        whole = [*body.get("tools", []), *body.get("system", []), *(turn["content"] for turn in body["messages"])]
        assert len(json.loads(found[-1])) == len(list(flat(whole))), "the end is not cached"
        last = found
        calls = [ToolCall(f"c{number}_{n}", "add") for n in range(15 if tools else 0)]
        conversation += [said(*calls, TextContent("3")), *(result(call.id, PNG) for call in calls)]
        conversation += [] if tools else [UserMessage("And?")]


def flat(blocks: list[Any]) -> Iterator[Any]:
    for block in blocks:
        yield from block if isinstance(block, list) else [block]


def test_the_system_prompt_and_the_tools_are_cached_by_themselves() -> None:
    prompt = {"type": "text", "text": "Be brief."}
    assert json.loads(next(marks(body_of(HI, system="Be brief.", tools=[ADD], options={}))))[-1] == prompt
    assert json.loads(next(marks(body_of(HI, tools=[ADD, NOW], options={}))))[-1]["name"] == "now"


def test_the_cache_is_turned_off_or_set_by_an_option() -> None:
    assert list(marks(body_of(HI, system="Be brief.", tools=[ADD], options={"cache_control": None}))) == []
    an_hour = {"type": "ephemeral", "ttl": "1h"}
    body = body_of(HI, system="Be brief.", options={"cache_control": an_hour})
    assert body["cache_control"] == an_hour
    assert list(marks(body)) == []


def test_what_the_options_hold_is_not_changed() -> None:
    deferred = {"name": "later", "input_schema": {"type": "object"}, "defer_loading": True}
    options = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Mine"}]}], "tools": [deferred]}
    before = json.dumps(options)
    assert "cache_control" not in body_of(HI, options=options)["tools"][0]
    assert json.dumps(options) == before
    assert body_of(HI, options={"system": "Mine", "messages": [{"role": "user", "content": "Mine"}]})
