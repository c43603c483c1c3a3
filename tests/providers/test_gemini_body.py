"""What `gemini:` sends: the body of a request, from the conversation and the menu."""

from __future__ import annotations

from typing import Any

import pytest

from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from op_jupyter.providers import ToolChoice, ToolSpec
from op_jupyter.providers._gemini_messages import NOT_SIGNED
from tests.providers.adapter import ADD, HI, NOW, result
from tests.providers.gemini_wire import body_of, contents_of, said

PNG = ImageContent(b"\x89PNG", "image/png")
PNG_PART = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
OLD = "gemini-2.5-flash"

# -------------------------------------------------------------------- settings


def test_a_plain_question_is_a_plain_body() -> None:
    assert body_of(HI, system="Be brief.") == {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
    }


def test_options_are_those_of_the_generation_unless_the_body_has_them_itself() -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    options = {
        "temperature": 0,
        "max_output_tokens": 9,
        "thinkingConfig": {"includeThoughts": True},
        "generation_config": {"seed": 4, "temperature": 1},
        "safety_settings": safety,
        "cachedContent": "cachedContents/1",
        "systemInstruction": {"parts": [{"text": "Mine."}]},
    }
    body = body_of(HI, system="Yours.", options=options)
    del body["contents"]
    assert body == {
        "generationConfig": {
            "seed": 4,
            "temperature": 0,
            "maxOutputTokens": 9,
            "thinkingConfig": {"includeThoughts": True},
        },
        "safetySettings": safety,
        "cachedContent": "cachedContents/1",
        "systemInstruction": {"parts": [{"text": "Mine."}]},
    }
    assert options["generation_config"] == {"seed": 4, "temperature": 1}, "they are not changed"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        ({"type": "function", "name": "add"}, {"mode": "ANY", "allowedFunctionNames": ["add"]}),
    ],
)
@pytest.mark.parametrize("parallel", [None, True, False])
def test_the_tool_choice_is_said_in_this_wire_s_words(
    choice: ToolChoice, sent: dict[str, Any], parallel: bool | None
) -> None:
    body = body_of(HI, tools=[ADD], tool_choice=choice, parallel_tool_calls=parallel)
    assert body["toolConfig"] == {"functionCallingConfig": sent}
    (tool,) = body["tools"]
    assert tool == {
        "functionDeclarations": [
            {"name": "add", "description": "Add two numbers.", "parametersJsonSchema": ADD.parameters}
        ]
    }


def test_without_tools_nothing_is_said_of_them() -> None:
    body = body_of(HI, said(ToolCall("c1", "add")), tool_choice="required", parallel_tool_calls=False)
    assert body.keys() & {"tools", "toolConfig"} == set()


def test_a_schema_is_sent_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"of": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": ["string", "null"]}, {"const": 1}]}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        "additionalProperties": False,
    }
    (tool,) = body_of(HI, tools=[ToolSpec("f", "", schema)])["tools"]
    assert tool["functionDeclarations"][0]["parametersJsonSchema"] == schema


def test_tools_of_the_server_are_offered_beside_the_functions() -> None:
    search: dict[str, Any] = {"googleSearch": {}}
    body = body_of(HI, tools=[ADD, NOW], options={"tools": [search]})
    assert [*body["tools"][0]] == ["functionDeclarations"]
    assert body["tools"][1:] == [search]
    assert body["toolConfig"]["includeServerSideToolInvocations"] is True
    assert body_of(HI, options={"tools": [search]}) == body_of(HI) | {"tools": [search]}
    on_vertex = body_of(HI, tools=[ADD], options={"tools": [search]}, on_vertex=True)
    assert on_vertex["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}


@pytest.mark.parametrize("spelled", ["functionDeclarations", "function_declarations"])
def test_a_function_among_the_tools_of_the_options_takes_the_place_of_one_of_the_same_name(spelled: str) -> None:
    mine: dict[str, Any] = {spelled: [{"name": "add"}]}
    assert body_of(HI, tools=[ADD], options={"tools": [mine]})["tools"] == [mine]
    offered = body_of(HI, tools=[ADD, NOW], options={"tools": [mine]})
    assert [function["name"] for function in offered["tools"][0]["functionDeclarations"]] == ["now"]
    assert "includeServerSideToolInvocations" not in offered["toolConfig"]


def test_a_tool_config_of_the_options_is_joined_with_what_is_said_of_the_choice() -> None:
    options: dict[str, Any] = {"tool_config": {"retrieval_config": {"languageCode": "no"}}}
    assert body_of(HI, tools=[ADD], options=options)["toolConfig"] == {
        "functionCallingConfig": {"mode": "AUTO"},
        "retrievalConfig": {"languageCode": "no"},
    }
    mine = {"mode": "VALIDATED", "streamFunctionCallArguments": True}
    options = {"toolConfig": {"functionCallingConfig": mine}}
    assert body_of(HI, tools=[ADD], options=options)["toolConfig"] == {"functionCallingConfig": mine}


# -------------------------------------------------------------------- what the user says, and what functions return


def test_the_results_of_one_reply_are_one_content_and_what_is_said_then_is_another() -> None:
    contents = contents_of(
        HI,
        said(TextContent("Three at once."), ToolCall("c1", "plot"), ToolCall("c2", "plot"), ToolCall("c3", "plot")),
        result("c2", TextContent("two")),
        result("c1", TextContent("one")),
        UserMessage("Wait!", source="steering"),
        result("c3", TextContent("ValueError: no data"), is_error=True),
        UserMessage([TextContent("Look:"), PNG]),
    )
    assert [role for role, _ in contents] == ["user", "model", "user", "user"]
    assert [part["functionResponse"] for part in contents[2][1]] == [
        {"id": "c1", "name": "plot", "response": {"output": "one"}},
        {"id": "c2", "name": "plot", "response": {"output": "two"}},
        {"id": "c3", "name": "plot", "response": {"error": "ValueError: no data"}},
    ]
    assert contents[3][1] == [{"text": "Wait!"}, {"text": "Look:"}, PNG_PART]


def test_an_image_stands_in_the_result_since_gemini_3() -> None:
    contents = contents_of(HI, said(ToolCall("c1", "plot")), result("c1", TextContent("Here:"), PNG))
    assert contents[2:] == [
        (
            "user",
            [
                {
                    "functionResponse": {
                        "id": "c1",
                        "name": "plot",
                        "response": {"output": "Here:"},
                        "parts": [PNG_PART],
                    }
                }
            ],
        )
    ]


@pytest.mark.parametrize(
    ("name", "image", "part"),
    [
        (OLD, PNG, PNG_PART),
        (
            "gemini-3-test",
            ImageContent(b"GIF", "image/heic"),
            {"inlineData": {"mimeType": "image/heic", "data": "R0lG"}},
        ),
    ],
)
def test_an_image_that_cannot_stand_in_a_result_comes_after_all_of_them(
    name: str, image: ImageContent, part: dict[str, Any]
) -> None:
    reply = said(ToolCall("c1", "plot"), ToolCall("c2", "plot"))
    contents = contents_of(HI, reply, result("c1", image), result("c2"), UserMessage("And?"), model=name)
    assert [role for role, _ in contents] == ["user", "model", "user", "user", "user"]
    assert [part["functionResponse"]["response"] for part in contents[2][1]] == [
        {"output": "The image follows."},
        {"output": "done"},
    ]
    assert contents[3][1] == [{"text": "What plot returned:"}, part]


def test_an_id_that_another_provider_gave_is_the_same_on_both_sides() -> None:
    contents = contents_of(HI, said(ToolCall("functions.plot:0", "plot")), result("functions.plot:0"))
    call, answer = contents[1][1][0]["functionCall"], contents[2][1][0]["functionResponse"]
    assert call["id"] == answer["id"] != "functions.plot:0"


# -------------------------------------------------------------------- what the model said


def test_signatures_go_back_on_the_parts_they_came_with() -> None:
    reply = said(
        ThinkingContent("Hm. So.", provider_data={"gemini": {"signed": [[0, 3, "c2ln"]]}}),
        TextContent("One two three", {"gemini": {"signed": [[0, 3, "YQ=="], [4, 7, "Yg=="], [13, 13, "Yw=="]]}}),
        ToolCall("c1", "add", {"a": 1}, provider_data={"gemini": {"thoughtSignature": "ZA=="}}),
        ToolCall("c2", "now"),
        TextContent("", {"gemini": {"signed": [[0, 0, "ZQ=="]]}}),
    )
    assert contents_of(HI, reply, result("c1"), result("c2"))[1][1] == [
        {"text": "Hm.", "thoughtSignature": "c2ln", "thought": True},
        {"text": " So.", "thought": True},
        {"text": "One", "thoughtSignature": "YQ=="},
        {"text": " "},
        {"text": "two", "thoughtSignature": "Yg=="},
        {"text": " three"},
        {"text": "", "thoughtSignature": "Yw=="},
        {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}, "thoughtSignature": "ZA=="},
        {"functionCall": {"id": "c2", "name": "now", "args": {}}},
        {"text": "", "thoughtSignature": "ZQ=="},
    ]


@pytest.mark.parametrize(
    "whose", [{"model": "gemini-4-argon"}, {"provider": "anthropic"}], ids=["another model", "another provider"]
)
def test_what_only_another_model_understands_stays_out(whose: dict[str, str]) -> None:
    data = {"gemini": {"thoughtSignature": "ZA==", "signed": [[0, 3, "YQ=="]]}}
    reply = said(
        ThinkingContent("Hm.", provider_data=data),
        TextContent("One two", data),
        TextContent("", data),
        ServerContent("executableCode", {"code": "1"}, {"gemini": {"type": "executableCode"}}),
        PNG,
        ToolCall("c1", "add", provider_data=data),
        ToolCall("c2", "now"),
        **whose,
    )
    assert contents_of(HI, reply)[1][1] == [
        {"text": "One two"},
        PNG_PART,
        {"functionCall": {"id": "c1", "name": "add", "args": {}}, "thoughtSignature": NOT_SIGNED},
        {"functionCall": {"id": "c2", "name": "now", "args": {}}},
    ]


@pytest.mark.parametrize("name", [OLD, "gemini-2.0-flash", "gemma-4-27b", f"publishers/google/models/{OLD}"])
def test_before_gemini_3_nothing_has_to_be_signed(name: str) -> None:
    (part,) = contents_of(HI, said(ToolCall("c1", "add")), model=name)[1][1]
    assert part == {"functionCall": {"id": "c1", "name": "add", "args": {}}}


def test_what_the_server_ran_is_sent_back_as_it_came() -> None:
    call = {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["tea"]}, "id": "s1"}
    found = {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "s1"}
    reply = said(
        ServerContent("GOOGLE_SEARCH_WEB", call, {"gemini": {"type": "toolCall", "thoughtSignature": "c2ln"}}),
        ServerContent("GOOGLE_SEARCH_WEB", found, {"gemini": {"type": "toolResponse"}}),
        TextContent("Tea."),
        ServerContent("groundingMetadata", {"webSearchQueries": ["tea"]}, {"gemini": {"type": "groundingMetadata"}}),
    )
    assert contents_of(HI, reply)[1][1] == [
        {"toolCall": call, "thoughtSignature": "c2ln"},
        {"toolResponse": found},
        {"text": "Tea."},
    ]


@pytest.mark.parametrize("kind", ["toolCall", "toolResponse", "executableCode", "codeExecutionResult"])
def test_half_of_what_the_server_ran_is_left_out(kind: str) -> None:
    half = ServerContent(kind, {"id": "s1"}, {"gemini": {"type": kind}})
    assert contents_of(HI, said(TextContent("Hm"), half, stop_reason="aborted"))[1][1] == [{"text": "Hm"}]


def test_a_reply_that_broke_off_while_thinking_is_left_out() -> None:
    broken = said(ThinkingContent("Hm"), stop_reason="aborted")
    assert [role for role, _ in contents_of(HI, broken, UserMessage("And?"))] == ["user", "user"]


def test_arguments_that_are_no_object_are_sent_back_as_none() -> None:
    reply = AssistantMessage([ToolCall("c1", "add", {}, "[1, 2]")], provider="openai")
    assert contents_of(HI, reply)[1][1][0]["functionCall"]["args"] == {}


def test_a_picture_of_a_type_that_gemini_refuses_is_only_spoken_of() -> None:
    gif = ImageContent(b"GIF", "image/gif")
    (asked,) = body_of(UserMessage([TextContent("What is this?"), gif]))["contents"]
    assert [*asked["parts"][1]] == ["text"] and "image/gif" in asked["parts"][1]["text"]
    sent = body_of(HI, said(ToolCall("c1", "plot")), result("c1", gif))
    assert "inlineData" not in str(sent)


def test_what_a_key_was_taken_out_of_goes_back_whole_and_unsigned() -> None:
    signed = {"gemini": {"signed": [[0, 26, "YQ=="], [26, 40, "Yg=="]]}}
    parts = body_of(HI, said(TextContent("key [redacted]. And more text", signed)), HI)["contents"][1]["parts"]
    assert parts == [{"text": "key [redacted]. And more text"}]
