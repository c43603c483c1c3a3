"""What a small model is told about functions, what it may write, and how that is read while it is written."""

from __future__ import annotations

import json
from itertools import pairwise
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
from op_jupyter.providers import Request, ToolSpec
from op_jupyter.providers._small_model import Known, chat, in_json, read_json, read_text


def tool(
    name: str = "f", description: str = "Do it.", required: list[str] | None = None, **properties: Any
) -> ToolSpec:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return ToolSpec(name, description, parameters)


def request(*messages: Message, tools: list[ToolSpec] | None = None, **rest: Any) -> Request:
    return Request("m", rest.pop("system", None), list(messages) or [UserMessage("Go")], tools or [], **rest)


def told(asked: Request) -> list[dict[str, str]]:
    messages: list[dict[str, str]] = chat(asked)["messages"]
    return messages


def options(asked: Request) -> list[str]:
    """What the reply may be: the names of functions, and `answer`."""
    schema = chat(asked)["response_format"]["json_schema"]["schema"]
    return [one["properties"].get("call", {}).get("const", "answer") for one in schema["oneOf"]]


def constraint(spec: ToolSpec) -> dict[str, Any]:
    schema: dict[str, Any] = chat(request(tools=[spec]))["response_format"]["json_schema"]["schema"]
    return schema


# -------------------------------------------------------------------- what it is told


def test_without_functions_it_is_a_plain_chat() -> None:
    asked = request(UserMessage("Hi"), AssistantMessage([TextContent("Hello")]), UserMessage("Bye"), system="Be kind.")
    assert not in_json(asked)
    assert chat(asked) == {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "Bye"},
        ]
    }


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "x: string"),
        ({"enum": ["a", 1]}, 'x: "a" | 1'),
        ({"const": True}, "x: true"),
        ({"type": "array", "items": {"type": "number"}}, "x: list[number]"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x: integer | null"),
        ({"type": ["string", "null"]}, "x: string | null"),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, "x: {a: integer}"),
        ({}, "x: any"),
    ],
)
def test_a_function_is_listed_with_its_types(schema: dict[str, Any], text: str) -> None:
    assert f"- f({text}): Do it." in told(request(tools=[tool(x=schema)]))[0]["content"]


def test_optional_parameters_are_marked_and_described_ones_explained() -> None:
    spec = tool(required=["a"], a={"type": "string", "description": "A path."}, b={"type": "integer"})
    assert "- f(a: string, b?: integer): Do it.\n  a: A path." in told(request(tools=[spec]))[0]["content"]


def test_a_type_that_contains_itself_is_listed_to_a_depth() -> None:
    spec = tool(x={"$ref": "#/$defs/Node"})
    spec.parameters["$defs"] = {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}
    assert "- f(x: {next: {next: …}})" in told(request(tools=[spec]))[0]["content"]


def test_the_system_prompt_comes_before_the_functions() -> None:
    assert told(request(tools=[tool()], system="Be kind."))[0]["content"].startswith("Be kind.\n\n")


def test_every_function_has_an_example_that_fits_its_schema() -> None:
    spec = tool(
        a={"type": "string"},
        b={"type": "integer"},
        c={"type": "array", "items": {"enum": ["x", "y"]}},
        d={"type": "object", "properties": {"e": {"type": "boolean"}}, "required": ["e"]},
    )
    replies = [
        json.loads(message["content"]) for message in told(request(tools=[spec])) if message["role"] == "assistant"
    ]
    arguments = next(reply["arguments"] for reply in replies if reply.get("call") == "f")
    assert [type(arguments[name]) for name in "abcd"] == [str, int, list, dict]
    assert arguments["c"][0] == "x"
    assert arguments["d"] == {"e": True}


def test_calls_results_and_errors_are_told_in_order_and_images_by_name() -> None:
    messages = told(
        request(
            UserMessage([TextContent("Look"), ImageContent(b"", "image/png")]),
            AssistantMessage([ThinkingContent("hm"), ToolCall("call_1", "f", {"x": "é"})]),
            ToolResultMessage("call_1", "f", [TextContent("ValueError: no")], is_error=True),
            UserMessage("Try another way", source="steering"),
            tools=[tool()],
        )
    )
    asked, call, result = messages[-3:]
    assert asked["content"].startswith("Look\n\n[image]")
    assert call == {"role": "assistant", "content": '{"call": "f", "arguments": {"x": "é"}}'}
    assert result["content"].startswith("Result of f: Error: ValueError: no")
    assert "Try another way" in result["content"]


def test_speakers_alternate_since_many_chat_templates_want_it() -> None:
    roles = [m["role"] for m in told(request(UserMessage("One"), UserMessage("Two"), tools=[tool()]))]
    assert roles == ["system", *["user", "assistant"] * (len(roles) // 2 - 1), "user"]


# -------------------------------------------------------------------- what it may write


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ["f", "g", "answer"]),
        ("required", ["f", "g"]),
        ("none", ["answer"]),
        ({"type": "function", "name": "g"}, ["g"]),
    ],
)
def test_the_choice_of_tools_is_what_can_be_written(choice: Any, expected: list[str]) -> None:
    assert options(request(tools=[tool("f"), tool("g")], tool_choice=choice)) == expected


def test_a_history_of_calls_without_functions_can_only_be_answered() -> None:
    messages: list[Message] = [
        UserMessage("Go"),
        AssistantMessage([ToolCall("call_1", "f")]),
        ToolResultMessage("call_1", "f", [TextContent("1")]),
    ]
    assert options(request(*messages)) == ["answer"]


def test_definitions_of_one_name_in_two_functions_are_kept_apart() -> None:
    first, second = tool("f", x={"$ref": "#/$defs/A"}), tool("g", x={"$ref": "#/$defs/A"})
    first.parameters["$defs"] = {"A": {"type": "string"}}
    second.parameters["$defs"] = {"A": {"type": "integer"}}
    schema = chat(request(tools=[first, second]))["response_format"]["json_schema"]["schema"]
    assert schema["$defs"] == {"f.A": {"type": "string"}, "g.A": {"type": "integer"}}
    assert schema["oneOf"][1]["properties"]["arguments"]["properties"]["x"] == {"$ref": "#/$defs/g.A"}


def test_only_the_structure_of_a_schema_constrains_the_reply() -> None:
    """`pattern` makes the native code print, and a parameter may be called like a keyword."""
    spec = tool(pattern={"type": "string", "pattern": "(?i)a", "maxLength": 9, "default": "a"})
    arguments = constraint(spec)["oneOf"][0]["properties"]["arguments"]
    assert arguments["properties"] == {"pattern": {"type": "string"}}
    assert arguments["additionalProperties"] is False


def test_a_call_that_told_the_same_twice_can_only_be_followed_by_an_answer_until_the_user_speaks() -> None:
    told_once: list[Message] = [
        AssistantMessage([ToolCall("call_1", "f", {"x": 1})]),
        ToolResultMessage("call_1", "f", [TextContent("2")]),
    ]
    told_other: list[Message] = [told_once[0], ToolResultMessage("call_1", "f", [TextContent("3")])]
    tools = [tool("f"), tool("g")]
    assert options(request(UserMessage("Go"), *told_once, *told_other, tools=tools)) == ["f", "g", "answer"]
    told_twice = [UserMessage("Go"), *told_once, *told_once]
    assert options(request(*told_twice, tools=tools)) == ["answer"]
    assert options(request(*told_twice, UserMessage("Again"), tools=tools)) == ["f", "g", "answer"]
    assert options(request(*told_twice, tools=tools, tool_choice="required")) == ["f", "g"]


# -------------------------------------------------------------------- what it wrote


def test_an_answer_is_known_while_it_is_written() -> None:
    reply = json.dumps({"answer": 'Say "é\n" 😀'})
    seen = [known.text for size in range(len(reply) + 1) if (known := read_json(reply[:size]))]
    assert seen[-1] == 'Say "é\n" 😀'
    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))
    assert len(set(seen)) > 5


def test_a_call_is_known_by_its_whole_name_and_its_arguments_grow() -> None:
    reply = '{ "call": "get_time", "arguments": {"a": {"b": "}"}} }'
    seen = [known for size in range(len(reply) + 1) if (known := read_json(reply[:size]))]
    assert {known.call for known in seen} == {"get_time"}
    assert all(later.text.startswith(earlier.text) for earlier, later in pairwise(seen))
    assert json.loads(seen[-1].text) == {"a": {"b": "}"}}


@pytest.mark.parametrize("reply", ["", "{", '{"call": "f', '{"call": "f"', '{"answer": '])
def test_nothing_is_known_too_early(reply: str) -> None:
    assert read_json(reply) is None


def test_plain_text_is_known_as_it_is() -> None:
    assert (read_text(""), read_text('{"answer"')) == (None, Known(None, '{"answer"'))
