"""What `bedrock:` sends: the body of a request, from the conversation and the menu."""

from __future__ import annotations

import json
from base64 import b64encode
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
from op_jupyter.providers.bedrock import INFERENCE, TOP_LEVEL
from tests.providers.adapter import ADD, HI, NOW, result
from tests.providers.bedrock_wire import (
    UNCACHED,
    body_of,
    encrypted,
    input_shape,
    said,
    server,
    thought,
    turns_of,
)

PNG = ImageContent(b"\x89PNG", "image/png")
PNG_BLOCK = {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}}
MARK = {"cachePoint": {"type": "default"}}
LLAMA = "us.meta.llama4-scout-17b-instruct-v1:0"
NOVA = "global.amazon.nova-2-lite-v1:0"
PROFILE = "arn:aws:bedrock:eu-north-1:123456789012:application-inference-profile/abcdefgh1234"

# -------------------------------------------------------------------- settings


def test_a_plain_question_is_a_plain_body() -> None:
    assert body_of(HI, system="Be brief.") == {
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
        "system": [{"text": "Be brief."}],
    }


def test_options_go_where_converse_has_them() -> None:
    options: dict[str, Any] = {
        "temperature": 0,
        "max_tokens": 9,
        "topP": 0.5,
        "stop_sequences": ["."],
        "inferenceConfig": {"maxTokens": 1000, "temperature": 1},
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "thinking": {"type": "adaptive"},
        "additionalModelRequestFields": {"top_k": 5},
        "system": [{"text": "Mine."}],
    }
    body = body_of(HI, system="Yours.", options=UNCACHED | options)
    assert body.pop("messages")
    assert body == {
        "system": [{"text": "Mine."}],
        "inferenceConfig": {"maxTokens": 9, "temperature": 0, "topP": 0.5, "stopSequences": ["."]},
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "additionalModelRequestFields": {"top_k": 5, "thinking": {"type": "adaptive"}},
    }


def test_all_that_converse_takes_is_known() -> None:
    pytest.importorskip("boto3", reason="needs op_jupyter[bedrock]")
    members = input_shape().members
    assert set(members) == TOP_LEVEL | {"modelId"}
    assert set(members["inferenceConfig"].members) == set(INFERENCE.values())


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"auto": {}}),
        ("required", {"any": {}}),
        ({"type": "function", "name": "add"}, {"tool": {"name": "add"}}),
    ],
)
def test_the_tool_choice_is_said_in_this_wire_s_words(choice: ToolChoice, sent: dict[str, Any]) -> None:
    for parallel in (None, True, False):
        config = body_of(HI, tools=[ADD], tool_choice=choice, parallel_tool_calls=parallel)["toolConfig"]
        spec = {"name": "add", "description": "Add two numbers.", "inputSchema": {"json": ADD.parameters}}
        assert config == {"tools": [{"toolSpec": spec}], "toolChoice": sent}


def test_without_a_choice_of_none_the_functions_are_left_out() -> None:
    assert "toolConfig" not in body_of(HI, tools=[ADD], tool_choice="none")
    config = body_of(HI, said(ToolCall("c1", "add")), tools=[ADD], tool_choice="none")["toolConfig"]
    assert config == {"tools": body_of(HI, tools=[ADD])["toolConfig"]["tools"]}


def test_without_tools_nothing_is_said_of_them() -> None:
    assert "toolConfig" not in body_of(HI, tool_choice="required", parallel_tool_calls=False)


def test_without_tools_those_that_were_called_are_offered() -> None:
    config = body_of(HI, said(ToolCall("c1", "add"), ToolCall("c2", "now"), ToolCall("c3", "add")))["toolConfig"]
    bare = {"inputSchema": {"json": {"type": "object"}}}
    assert config == {"tools": [{"toolSpec": {"name": name} | bare} for name in ("add", "now")]}


def test_tools_of_the_server_are_offered_beside_the_functions() -> None:
    search = {"systemTool": {"name": "nova_grounding"}}
    config = body_of(HI, tools=[ADD], options=UNCACHED | {"tools": [search]})["toolConfig"]
    assert (config["tools"][0]["toolSpec"]["name"], config["tools"][1]) == ("add", search)
    assert body_of(HI, options=UNCACHED | {"tools": [search]})["toolConfig"] == {"tools": [search]}


def test_a_tool_of_the_options_takes_the_place_of_the_function_of_that_name() -> None:
    mine = {"toolSpec": {"name": "add", "inputSchema": {"json": {"type": "object"}}, "strict": True}}
    config = body_of(HI, tools=[ADD], options=UNCACHED | {"tools": [mine]})["toolConfig"]
    assert config == {"tools": [mine], "toolChoice": {"auto": {}}}


def test_a_function_without_a_description_has_none() -> None:
    (tool,) = body_of(HI, tools=[ToolSpec("f", " ", {"type": "object"})])["toolConfig"]["tools"]
    assert "description" not in tool["toolSpec"]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "add"}])
def test_thinking_with_a_budget_and_a_forced_choice_do_not_go_together(choice: ToolChoice) -> None:
    options = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    for given in (options, {"additionalModelRequestFields": options}):
        with pytest.raises(ProviderError, match="tool_choice") as raised:
            body_of(HI, tools=[ADD], tool_choice=choice, options=given)
        assert (raised.value.kind, raised.value.retry) == ("setup", False)
    for settings in ({"tool_choice": "auto", "options": options}, {"options": {"thinking": {"type": "adaptive"}}}):
        assert body_of(HI, **{"tools": [ADD], "tool_choice": choice, **settings})["additionalModelRequestFields"]


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
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "one"}]}},
        {"toolResult": {"toolUseId": "c2", "content": [{"text": "two"}, PNG_BLOCK]}},
        {"toolResult": {"toolUseId": "c3", "content": [{"text": "ValueError: no data"}], "status": "error"}},
        {"text": "Wait!"},
        {"text": "Look:"},
        PNG_BLOCK,
    ]


@pytest.mark.parametrize("model", [LLAMA, PROFILE])
def test_a_model_that_may_take_only_text_in_results_has_pictures_behind_all_of_them(model: str) -> None:
    calls = said(ToolCall("c1", "plot"), ToolCall("c2", "plot"))
    failed = result("c2", TextContent("No"), is_error=True)
    (_, content) = turns_of(HI, calls, result("c1", PNG), failed, UserMessage("And?"), model=model)[-1]
    assert content == [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "The result is the picture below."}]}},
        {"toolResult": {"toolUseId": "c2", "content": [{"text": "No"}]}},
        PNG_BLOCK,
        {"text": "And?"},
    ]


def test_a_result_with_a_picture_in_it_is_not_called_an_error() -> None:
    (_, content) = turns_of(HI, said(ToolCall("c1", "plot")), result("c1", PNG, is_error=True))[-1]
    assert content == [{"toolResult": {"toolUseId": "c1", "content": [PNG_BLOCK]}}]


def test_no_blank_text_is_sent_and_no_turn_follows_its_own_kind() -> None:
    blank = TextContent(" \n", {"anthropic": {"blank": True}})
    turns = turns_of(
        HI, said(blank, TextContent("One.")), UserMessage(" "), said(TextContent("Two.")), HI, said(blank), HI
    )
    assert turns == [
        ("user", [{"text": "Hi"}]),
        ("assistant", [{"text": "One."}, {"text": "Two."}]),
        ("user", [{"text": "Hi"}, {"text": "Hi"}]),
    ]


def test_arguments_that_were_no_object_are_sent_as_an_empty_one() -> None:
    (_, content) = turns_of(HI, said(ToolCall("c1", "add", {}, "[1, 2")))[1]
    assert content == [{"toolUse": {"toolUseId": "c1", "name": "add", "input": {}}}]


def test_ids_that_would_be_refused_are_replaced_on_both_sides_and_stay_different() -> None:
    ids = ["functions.add:0", "functions.add:1", "ä", "x" * 450, "x" * 449 + "y", "", "half \ud83d", "tooluse_fine-1"]
    turns = turns_of(HI, said(*(ToolCall(given, "add") for given in ids)), *(result(given) for given in ids))
    sent = [block["toolUse"]["toolUseId"] for block in turns[1][1]]
    assert sent == [block["toolResult"]["toolUseId"] for block in turns[2][1]]
    assert len(set(sent)) == len(ids)
    assert all(id.isascii() and id.replace("-", "").replace("_", "").isalnum() and len(id) <= 64 for id in sent)
    assert sent[-1] == "tooluse_fine-1"


def test_reasoning_is_sent_as_it_came_to_the_model_that_it_is_of() -> None:
    reply = said(thought(" Hm.\n"), encrypted(b"\x00\xff"), thought("", signature="b25seQ=="), TextContent("Yes."))
    assert turns_of(HI, reply)[1][1] == [
        {"reasoningContent": {"reasoningText": {"text": " Hm.\n", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": b64encode(b"\x00\xff").decode()}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "b25seQ=="}}},
        {"text": "Yes."},
    ]
    for changed in ({"model": NOVA}, {"system": "Be brief."}, {"tools": [ADD]}):
        assert turns_of(HI, reply, **changed)[1][1] == [{"text": "Yes."}]


def test_reasoning_that_is_not_signed_or_ends_a_reply_is_left_out() -> None:
    assert turns_of(HI, said(ThinkingContent("Hm."), TextContent("Yes.")))[1][1] == [{"text": "Yes."}]
    assert turns_of(HI, said(TextContent("Yes."), thought("Hm."), stop_reason="aborted"))[1][1] == [{"text": "Yes."}]


def test_what_the_server_ran_goes_back_as_it_came() -> None:
    use = server(
        "nova_code_interpreter", toolUse={"toolUseId": "s1", "name": "x", "input": {}, "type": "server_tool_use"}
    )
    found = server("result", toolResult={"toolUseId": "s1", "content": [{"json": {"out": "7"}}], "type": "result"})
    sources = server("citations", citations=[{"title": "A", "location": {"web": {"url": "https://a.example"}}}])
    assert turns_of(HI, said(use, found, TextContent("7"), sources))[1][1] == [
        use.data,
        found.data,
        {"citationsContent": {"content": [{"text": "7"}], "citations": sources.data["citations"]}},
    ]
    assert turns_of(HI, said(use, TextContent("7")))[1][1] == [{"text": "7"}], "without its result"
    assert turns_of(HI, said(found, sources, TextContent("7")))[1][1] == [{"text": "7"}], "without its call"


def test_what_another_model_said_is_sent_as_far_as_it_can_be_said_here() -> None:
    content: list[Block] = [
        ThinkingContent("Hm.", provider_data={"anthropic": {"signature": "c2ln"}}),
        TextContent("", {"gemini": {"thought_signature": "c2ln"}}),
        ServerContent("web_search", {"id": "ws_1", "type": "web_search_call"}, {"openai-responses": {"id": "ws_1"}}),
        ImageContent(b"\x89PNG", "image/png"),
        TextContent("Yes."),
    ]
    assert turns_of(HI, AssistantMessage(content, provider="gemini"))[1] == ("assistant", [{"text": "Yes."}])


# -------------------------------------------------------------------- the cache


def marks(body: dict[str, Any]) -> Iterator[str]:
    """All that stands before each mark: what the server caches there."""
    before: list[Any] = []
    blocks = [*body.get("toolConfig", {}).get("tools", []), *body.get("system", [])]
    for block in [*blocks, *(block for turn in body["messages"] for block in turn["content"])]:
        if block == MARK:
            yield json.dumps(before)
        else:
            before.append(block)


@pytest.mark.parametrize("model", [NOVA, "us.anthropic.claude-test-v1:0"])
@pytest.mark.parametrize("system", [None, "Be brief."])
@pytest.mark.parametrize("tools", [[], [ADD, NOW]], ids=["a chat", "many calls"])
def test_each_round_finds_in_the_cache_what_the_round_before_left_there(
    system: str | None, tools: list[ToolSpec], model: str
) -> None:
    conversation: list[Message] = [HI]
    last: list[str] = []
    for number in range(6):
        body = body_of(*conversation, system=system, tools=tools, model=model, options={})
        found = list(marks(body))
        assert len(found) <= 4
        assert not last or last[-1] in found, "no mark stands where the cache ended"
        assert body["messages"][-1]["content"][-1] == MARK, "the end is not cached"
        last = found
        calls = [ToolCall(f"c{number}_{n}", "add") for n in range(15 if tools else 0)]
        conversation += [said(*calls, TextContent("3")), *(result(call.id, PNG) for call in calls)]
        conversation += [] if tools else [UserMessage("And?")]


def test_the_system_prompt_and_the_tools_are_cached_by_themselves() -> None:
    assert body_of(HI, system="Be brief.", tools=[ADD], options={})["system"] == [{"text": "Be brief."}, MARK]
    assert body_of(HI, tools=[ADD, NOW], options={})["toolConfig"]["tools"][-1] == MARK
    assert MARK not in body_of(HI, tools=[ADD], options={}, model=NOVA)["toolConfig"]["tools"], "Nova refuses it there"


@pytest.mark.parametrize(
    "model", [LLAMA, PROFILE, "anthropic.claude-3-haiku-20240307-v1:0", "anthropic.claude-3-5-sonnet-20240620-v1:0"]
)
def test_only_models_that_are_known_to_cache_are_told_to(model: str) -> None:
    body = body_of(HI, system="Be brief.", tools=[ADD], model=model, options={})
    assert list(marks(body)) == []
    assert list(marks(body_of(HI, system="Be brief.", model=model, options={"cachePoint": {"type": "default"}})))


def test_the_cache_is_turned_off_or_set_by_an_option() -> None:
    assert list(marks(body_of(HI, system="Be brief.", tools=[ADD], options={"cachePoint": None}))) == []
    an_hour = {"type": "default", "ttl": "1h"}
    body = body_of(HI, system="Be brief.", options={"cachePoint": an_hour})
    assert (body["system"][-1], "cachePoint" in body) == ({"cachePoint": an_hour}, False)


def test_what_the_options_hold_is_not_changed() -> None:
    mine = {"role": "user", "content": [{"text": "Mine"}]}
    options = {"messages": [mine], "system": [{"text": "Mine"}, MARK], "tools": [{"systemTool": {"name": "x"}}]}
    before = json.dumps(options)
    body = body_of(HI, options=options)
    assert json.dumps(options) == before
    assert body["system"] == [{"text": "Mine"}, MARK]
