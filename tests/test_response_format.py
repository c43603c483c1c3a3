"""The last reply as data of the type `response_format`."""

from __future__ import annotations

import asyncio
import datetime
import enum
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, assert_type

import pytest
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypedDict

from op_jupyter import DecisionError, OutputError, Runtime
from op_jupyter.testing import call, scripted
from tests.conversation import Conversation, last_text


def look() -> str:
    """Look something up."""
    return "9"


ORDER = {"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": "integer"}}}
ITEMS = {"type": "array", "items": {"$ref": "#/$defs/item"}, "$defs": {"item": {"type": "integer"}}}
TREE = {"type": "object", "properties": {"left": {"$ref": "#"}}, "additionalProperties": False}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Book(TypedDict):
    title: str


class Node(BaseModel):
    name: str
    children: list[Node] = []


FITTING: list[tuple[Any, str, Any]] = [
    (int, "5", 5),
    (int, "5.0", 5),
    (int, '"5"', 5),
    (float, "5", 5.0),
    (bool, "true", True),
    (list[int], "[1, 2]", [1, 2]),
    (list[int], "Here:\n```json\n[1, 2]\n```", [1, 2]),
    (list[int], '"[1, 2]"', [1, 2]),
    (tuple[int, str], '[1, "a"]', (1, "a")),
    (Iterable[int], "[1, 2]", [1, 2]),
    (list[Iterable[int]], "[[1], [2]]", [[1], [2]]),
    (set[int], "[1, 1]", {1}),
    (dict, '{"a": [1]}', {"a": [1]}),
    (dict[str, int], '{"a": "1"}', {"a": 1}),
    (Literal["good", "bad"], '"good"', "good"),
    (Literal["good", "bad"], "good\n", "good"),
    (Literal["1", "2"], "2", "2"),
    (Literal[1, 2], "2", 2),
    (Color, '"red"', Color.RED),
    (Color, "red", Color.RED),
    (datetime.date, '"2024-05-01"', datetime.date(2024, 5, 1)),
    (datetime.date, "2024-05-01", datetime.date(2024, 5, 1)),
    (Decimal, '"1.10"', Decimal("1.10")),
    (Path, '"a/b"', Path("a/b")),
    (Point, '{"x": 1}', Point(1)),
    (Point, '{"x": "1", "y": null}', Point(1)),
    (Book, '{"title": "Emma"}', {"title": "Emma"}),
    (Node, '{"name": "a", "children": [{"name": "b"}]}', Node(name="a", children=[Node(name="b")])),
    (int | None, "null", None),
    (int | None, "3", 3),
    (int | str, "3", 3),
    (int | str, '"3"', "3"),
    (Point | None, '{"x": 1, "y": 2}', Point(1, 2)),
    (list[Point], '[{"x": 1}]', [Point(1)]),
    (str, "Anything at all.", "Anything at all."),
    (str, '"quoted"', '"quoted"'),
    (str | None, "Anything.", "Anything."),
    (Annotated[str, Field(max_length=3)], "abc", "abc"),
    (Any, '{"a": 1}', {"a": 1}),
    (ORDER, '{"item": "tea", "count": "2"}', {"item": "tea", "count": 2}),
    (ITEMS, "[1, 2]", [1, 2]),
    (ITEMS, '["1"]', [1]),
    (TREE, '{"left": {"left": {}}}', {"left": {"left": {}}}),
    ({"enum": ["a", "b"]}, '"b"', "b"),
    ({"enum": ["a", "b"]}, "b", "b"),
    ({"type": "integer"}, "3", 3),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://x.org/y", "type": "array"}, "[]", []),
    ({}, "3", 3),
]


@pytest.mark.parametrize("how", [Conversation.exec, Conversation.aexec])
@pytest.mark.parametrize(("expected", "reply", "value"), FITTING, ids=range(len(FITTING)))
def test_the_last_reply_becomes_data_of_the_type(
    how: Callable[..., Any], expected: Any, reply: str, value: Any
) -> None:
    conversation = Conversation(reply)
    received = how(conversation, response_format=expected)
    assert received == value and type(received) is type(value)
    assert conversation.run.rounds == 1


NOT_FITTING: list[tuple[Any, str]] = [
    (int, "five"),
    (int, "The answer is 5."),
    (int, "5.5"),
    (int, "true"),
    (int, '"five"'),
    (int, ""),
    (float, "NaN"),
    (bool, "1"),
    (bool, '"yes"'),
    (list[int], "1"),
    (list[int], '[1, "x"]'),
    (Iterable[int], '["x"]'),
    (datetime.datetime, '"2024"'),
    (Literal[1], "true"),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]}, '["x"]'),
    (list[Iterable[int]], '[["x"]]'),
    (dict[str, int], "[]"),
    (Literal["good", "bad"], "It is good."),
    (Literal["good", "bad"], '"ugly"'),
    (Color, "RED"),
    (datetime.date, "tomorrow"),
    (Point, '{"y": 1}'),
    (Point, "[1, 2]"),
    (Book, '{"title": 5}'),
    (Node, '{"name": "a", "children": [{}]}'),
    (int | None, "none"),
    (Annotated[str, Field(max_length=3)], "abcd"),
    (ORDER, '{"count": "many"}'),
    (ORDER, "[]"),
    (ITEMS, '["x"]'),
    (TREE, '{"left": {"right": {}}}'),
    ({"enum": ["a", "b"]}, "c"),
    ({"type": "object", "additionalProperties": False}, '{"a": 1}'),
    (int, "[" * 50_000),
    ({}, "prose"),
]


@pytest.mark.parametrize(("expected", "reply"), NOT_FITTING, ids=range(len(NOT_FITTING)))
def test_nothing_is_guessed_of_a_reply_that_does_not_fit(expected: Any, reply: str) -> None:
    conversation = Conversation(reply, reply, "1")
    with pytest.raises(OutputError) as caught:
        conversation.exec(response_format=expected)
    assert not isinstance(caught.value, DecisionError)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.run is conversation.run and conversation.run.rounds == 2


@pytest.mark.parametrize("how", [Conversation.exec, Conversation.aexec])
def test_a_reply_that_does_not_fit_is_sent_back_once_with_the_reason(how: Callable[..., Any]) -> None:
    conversation = Conversation('{"x": "one"}', '{"x": 1}')
    assert how(conversation, response_format=Point) == Point(1)
    objection = last_text(conversation.requests[1])
    assert "x" in objection and "one" in objection and "integer" in objection


def test_the_reason_names_the_place_what_was_sent_and_what_is_expected() -> None:
    with pytest.raises(OutputError, match=r"children\[0\]\.name: missing"):
        Conversation(*['{"name": "a", "children": [{}]}'] * 2).exec(response_format=Node)
    with pytest.raises(OutputError, match=r'reply: .*integer.* \(sent "x"\)'):
        Conversation('"x"', '"x"').exec(response_format=int)
    with pytest.raises(OutputError, match=r"reply: .*array"):
        Conversation("3", "3").exec(response_format={"type": "array"})
    closed = {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}, "additionalProperties": False}}}
    with pytest.raises(OutputError, match=r"used\. b: no such parameter; the parameters are a$"):
        Conversation(*['{"a": 1, "b": 2}'] * 2).exec(response_format=closed)


def test_the_schema_stands_in_the_system_prompt_of_every_request() -> None:
    conversation = Conversation([call("look")], "3", '{"x": 1}')
    conversation.exec(system="Be kind.", tools=[look], response_format=Point)
    assert len(conversation.requests) == 3
    for request in conversation.requests:
        assert (request.system or "").startswith("Be kind.\n") and '"integer"' in (request.system or "")


def test_a_default_that_holds_a_key_is_not_in_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")

    class Settings(BaseModel):
        key: str = "sk-12345678"

    conversation = Conversation("{}")
    assert conversation.exec(response_format=Settings) == Settings()
    assert "key" in (conversation.requests[0].system or "")
    assert "sk-12345678" not in (conversation.requests[0].system or "")


def test_a_text_needs_no_instructions() -> None:
    conversation = Conversation("hello")
    assert conversation.exec(system="Be kind.", response_format=str) == "hello"
    assert conversation.requests[0].system == "Be kind."


class Opaque:
    pass


@pytest.mark.parametrize("how", [Conversation.exec, Conversation.aexec])
@pytest.mark.parametrize(
    "expected",
    [
        Opaque,
        list[Opaque],
        dict[Literal[1, 2], int],
        object(),
        5,
        True,
        "no_such_type",
        [int],
        Callable[[], int],
        threading.Lock,
    ],
)
def test_a_type_that_pydantic_does_not_understand_is_refused_before_anything_is_asked(
    how: Callable[..., Any], expected: Any
) -> None:
    conversation = Conversation("1")
    with pytest.raises(TypeError, match="response_format") as caught:
        how(conversation, response_format=expected)
    assert not conversation.requests and conversation.runtime.last_run is None
    assert "\n" not in str(caught.value) and "arbitrary_types_allowed" not in str(caught.value)


def test_a_schema_that_stands_elsewhere_is_refused_and_not_fetched() -> None:
    conversation = Conversation("1")
    with pytest.raises(ValueError, match=r"refers to 'https://example\.org/schema\.json', which is not in it"):
        conversation.exec(response_format={"$ref": "https://example.org/schema.json"})
    assert not conversation.requests


def test_a_dict_that_is_no_json_schema_is_refused_before_anything_is_asked() -> None:
    conversation = Conversation("1")
    with pytest.raises(ValueError, match=r"response_format.*wrong"):
        conversation.exec(response_format={"type": "wrong"})
    assert not conversation.requests


def test_a_validator_of_the_users_own_may_raise_anything() -> None:
    def picky(n: int) -> int:
        if n < 3:
            raise RuntimeError("too small")
        return n

    conversation = Conversation("1", "5")
    assert conversation.exec(response_format=Annotated[int, AfterValidator(picky)]) == 5
    assert "too small" in last_text(conversation.requests[1])


def test_the_data_of_a_nested_run_are_what_its_function_works_with() -> None:
    def count() -> int:
        return conversation.runtime.exec("how many?", tools=[], response_format=int) + 1

    conversation = Conversation([call("count")], "41", "It is 42.")
    assert conversation.exec(tools=[count]) == "It is 42."
    assert conversation.run.values == {"call_1": 42}


def test_type_checkers_know_what_exec_returns() -> None:
    runtime = Runtime(model=scripted(["text", "5", "[1]", '{"x": 1}'] * 2))
    assert_type(runtime.exec("go", tools=[]), str)
    assert_type(runtime.exec("go", tools=[], response_format=int), int)
    assert_type(runtime.exec("go", tools=[], response_format=list[int]), list[int])
    assert_type(runtime.exec("go", tools=[], response_format=Point), Point)

    async def cell() -> None:
        assert_type(await runtime.aexec("go", tools=[]), str)
        assert_type(await runtime.aexec("go", tools=[], response_format=int), int)
        assert_type(await runtime.aexec("go", tools=[], response_format=list[int]), list[int])
        assert_type(await runtime.aexec("go", tools=[], response_format=Point), Point)

    asyncio.run(cell())
