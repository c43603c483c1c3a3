"""What `openai:` sends: the body of a request, from the conversation and the menu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Request, ToolChoice, ToolSpec
from op_jupyter.providers.openai_chat import request_body
from tests.providers.adapter import ADD, NOW, result
from tests.providers.chat_wire import CALL_NOW, FINISH, call_delta, chunk, reply_of


def body_of(
    *messages: Message, system: str | None = None, tools: Sequence[ToolSpec] = (), **changes: Any
) -> dict[str, Any]:
    return request_body(Request("gpt-test", system, list(messages), list(tools), **changes))


PNG = ImageContent(b"\x89PNG", "image/png")
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


def test_a_plain_question_is_a_plain_body() -> None:
    assert body_of(UserMessage("Hi"), system="Be brief.") == {
        "model": "gpt-test",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_options_override_everything() -> None:
    body = body_of(UserMessage("Hi"), options={"temperature": 0, "stream_options": None, "model": "other"})
    assert (body["temperature"], body["stream_options"], body["model"]) == (0, None, "other")


def test_tools_in_the_options_are_offered_beside_the_functions_and_one_of_the_same_name_in_its_place() -> None:
    search: dict[str, Any] = {"type": "web_search"}
    mine: dict[str, Any] = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    body = body_of(UserMessage("Hi"), tools=[ADD, NOW], options={"tools": [search, mine]})
    assert body["tools"][1:] == [search, mine]
    assert body["tools"][0]["function"]["name"] == "now"
    assert body_of(UserMessage("Hi"), options={"tools": [search]})["tools"] == [search]


def test_a_picture_in_a_question_is_a_data_url() -> None:
    (message,) = body_of(UserMessage([TextContent("What is this?"), PNG]))["messages"]
    assert message["content"] == [{"type": "text", "text": "What is this?"}, PNG_PART]


def test_an_assistant_message_has_null_for_text_only_when_it_has_calls() -> None:
    call = ToolCall("c1", "add", {"a": 1, "b": "é"})
    silent, spoken, blank = (
        AssistantMessage([call]),
        AssistantMessage([TextContent("I will."), call]),
        AssistantMessage([TextContent("\n"), call]),
    )
    messages = body_of(silent, spoken, blank, AssistantMessage([TextContent("Done.")]))["messages"]
    assert [message["content"] for message in messages] == [None, "I will.", None, "Done."]
    assert "tool_calls" not in messages[3]
    function = {"name": "add", "arguments": '{"a":1,"b":"é"}'}
    assert messages[0]["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]


def test_an_assistant_message_that_this_wire_cannot_say_is_left_out() -> None:
    assert body_of(UserMessage("Hi"), AssistantMessage([ThinkingContent("Hm.")]), UserMessage("And?"))["messages"] == [
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": "And?"},
    ]


def test_arguments_that_were_no_object_are_sent_as_an_empty_one() -> None:
    (message,) = body_of(AssistantMessage([ToolCall("c1", "add", {}, "[1, 2")]))["messages"]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_results_stay_together_and_their_pictures_follow_in_one_message() -> None:
    messages = body_of(
        AssistantMessage([ToolCall("c1", "plot"), ToolCall("c2", "plot"), ToolCall("c3", "plot")]),
        result("c1", TextContent("a plot"), PNG),
        result("c2", PNG),
        result("c3", TextContent("ValueError: no data"), is_error=True),
        UserMessage("Go on", source="steering"),
    )["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "tool", "user", "user"]
    assert [message["content"] for message in messages[1:4]] == ["a plot", "The image follows.", "ValueError: no data"]
    assert [message["tool_call_id"] for message in messages[1:4]] == ["c1", "c2", "c3"]
    assert [part for part in messages[4]["content"] if part["type"] == "image_url"] == [PNG_PART, PNG_PART]
    assert messages[5]["content"] == "Go on"


def test_pictures_of_the_last_results_are_sent_too() -> None:
    messages = body_of(AssistantMessage([ToolCall("c1", "plot")]), result("c1", PNG))["messages"]
    assert PNG_PART in messages[-1]["content"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ({"type": "function", "name": "add"}, {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_the_tool_choice_is_said_in_this_wire_s_words(choice: ToolChoice, sent: Any) -> None:
    body = body_of(UserMessage("Hi"), tools=[ADD], tool_choice=choice, parallel_tool_calls=False)
    assert (body["tool_choice"], body["parallel_tool_calls"]) == (sent, False)
    function = {"name": "add", "description": "Add two numbers.", "parameters": ADD.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]


def test_without_tools_nothing_is_said_of_them() -> None:
    body = body_of(UserMessage("Hi"), tool_choice="required", parallel_tool_calls=False)
    assert body.keys() & {"tools", "tool_choice", "parallel_tool_calls"} == set()


def test_parallel_calls_are_only_spoken_of_when_asked() -> None:
    assert "parallel_tool_calls" not in body_of(UserMessage("Hi"), tools=[NOW])


def test_thinking_goes_back_while_functions_are_called_and_not_after_the_next_prompt() -> None:
    reply = reply_of(
        chunk({"reasoning_content": "I need "}), chunk({"reasoning_content": "the time."}), CALL_NOW, FINISH
    )
    said = AssistantMessage(reply.content, provider_data=reply.end.provider_data)
    told = ToolResultMessage("c1", "now", [TextContent("noon")])
    assert body_of(UserMessage("Hi"), said, told)["messages"][1]["reasoning_content"] == "I need the time."
    assert "reasoning_content" not in str(body_of(UserMessage("Hi"), said, told, UserMessage("And?")))


def test_thinking_of_another_provider_is_not_sent() -> None:
    signed = ThinkingContent("Hm.", provider_data={"anthropic": {"signature": "abc"}})
    said = AssistantMessage([signed, TextContent("Yes.")], provider="anthropic")
    assert body_of(UserMessage("Hi"), said)["messages"][1] == {"role": "assistant", "content": "Yes."}


def test_signatures_of_the_models_behind_a_router_go_back_joined() -> None:
    pieces = [
        {"type": "reasoning.text", "index": 0, "text": "I need "},
        {"type": "reasoning.text", "index": 0, "text": "the time.", "signature": ""},
        {"type": "reasoning.text", "index": 0, "text": "", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "index": 1, "data": "ZW5j"},
    ]
    call = call_delta(
        index=0, id="c1", name="now", arguments="{}", extra_content={"google": {"thought_signature": "dGhv"}}
    )
    reply = reply_of(*(chunk({"reasoning_details": [piece]}) for piece in pieces), call, FINISH)
    assert reply.content[0] == ThinkingContent("I need the time.")
    said = AssistantMessage(reply.content, provider_data=reply.end.provider_data)
    sent = body_of(UserMessage("Hi"), said)["messages"][1]
    assert sent["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "I need the time.", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "index": 1, "data": "ZW5j"},
    ]
    assert sent["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "dGhv"}}


def test_a_model_that_told_its_reasoning_has_it_back_beside_each_of_its_calls_for_good() -> None:
    thought = ThinkingContent("I need it.", provider_data={"openai": {"field": "reasoning_content"}})
    messages: list[Message] = [
        UserMessage("Plot."),
        AssistantMessage([thought, ToolCall("c1", "plot")], model="gpt-test"),
        result("c1", TextContent("a plot")),
        UserMessage("In red.", source="steering"),
        AssistantMessage([ToolCall("c2", "plot")], model="gpt-test"),
        result("c2", TextContent("a red plot")),
        AssistantMessage([thought, TextContent("There it is.")], model="gpt-test"),
        UserMessage("Sure?"),
    ]
    sent = [said for said in body_of(*messages)["messages"] if said["role"] == "assistant"]
    assert [said.get("reasoning_content") for said in sent] == ["I need it.", "", None]

    assert "reasoning_content" not in str(request_body(Request("another", None, messages, [])))
