"""Arguments are checked before a call, and coerced only where nothing is guessed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from collections.abc import Callable, Generator, Iterable
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, Field, field_validator
from typing_extensions import TypedDict

from op_jupyter.tools.call import call_tool
from op_jupyter.tools.registry import as_tool
from op_jupyter.tools.validation import validate_tool_arguments


class Query(BaseModel):
    text: str
    limit: int = 3


@dataclasses.dataclass
class Span:
    start: int
    end: int = 9


class Options(TypedDict):
    loud: bool


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Number(enum.Enum):
    ONE = 1
    TWO = 2


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Share(enum.Enum):
    WHOLE = 1.0


def named(value: Any) -> str:
    """A test id that tells `"5"` from `5`."""
    return repr(value)[:40]


def validated(annotation: Any, value: Any) -> Any:
    """`value`, sent for a parameter with this annotation."""

    def f(x: Any) -> None: ...

    f.__annotations__["x"] = annotation
    tool = as_tool(f)
    return validate_tool_arguments(tool, {"x": value})["x"]


def called(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    tool = as_tool(function)
    return call_tool(tool, validate_tool_arguments(tool, arguments))


def refusal(entry: Any, arguments: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        validate_tool_arguments(as_tool(entry), arguments)
    return str(raised.value)


@pytest.mark.parametrize(
    ("annotation", "sent", "received"),
    [
        (list[str], '["a"]', ["a"]),
        (dict[str, int], '{"a": "1"}', {"a": 1}),
        (list[int] | None, "[1]", [1]),
        (list[int] | None, "null", None),
        (Query, '{"text": "a", "limit": "5"}', Query(text="a", limit=5)),
        (list[Query], [{"text": "a", "limit": "5"}], [Query(text="a", limit=5)]),
        (Tree, {"value": 1, "children": [{"value": "2"}]}, Tree(value=1, children=[Tree(value=2)])),
        (int, "5", 5),
        (int, "5.0", 5),
        (int, 5.0, 5),
        (float, "1.5", 1.5),
        (float, 5, 5.0),
        (bool, "true", True),
        (int | None, "5", 5),
        (Literal[1, 2], "2", 2),
        (Number, "2", Number.TWO),
    ],
    ids=named,
)
def test_a_value_is_decoded_where_it_can_mean_nothing_else(annotation: Any, sent: Any, received: Any) -> None:
    result = validated(annotation, sent)
    assert (result, type(result)) == (received, type(received))


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (str, '["a"]'),
        (str, "5"),
        (int | str, "5"),
        (list[str] | str, '["a"]'),
        (str | None, "null"),
        (float | int, 5.0),
        (Any, "[1]"),
        (object, "5"),
    ],
    ids=named,
)
def test_a_value_stays_as_it_is_where_it_is_allowed(annotation: Any, sent: Any) -> None:
    result = validated(annotation, sent)
    assert (result, type(result)) == (sent, type(sent))


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (int, "abc"),
        (int, "5.5"),
        (int, 5.5),
        (int, True),
        (int, None),
        (int, ""),
        (str, 5),
        (bool, 1),
        (bool, "yes"),
        (float, "NaN"),
        (list[str], "a"),
        (list[str], '{"a": 1}'),
        (list[str], "[" * 100_000),
        (dict[str, int], "[1]"),
        (Literal["a"], "b"),
        (Number, 3),
        (datetime.date, 5),
        (datetime.date, "20240101"),
        (datetime.datetime, "2024"),
        (datetime.datetime, "20240101"),
        (datetime.datetime, "-1.5"),
        (list[datetime.datetime], ["2024"]),
        (int | datetime.datetime, "x"),
        (dict[str, datetime.datetime | None], {"a": "2024"}),
        (Literal[1, 2], True),
        (Literal[True], 1),
        (Literal[1] | str, True),
        (list[Literal[0, "a", None]], [False]),
        (Number, True),
        (Flags, 64),
        (dict[str, Number], {"a": True}),
        (tuple[str, Literal[1]], ["a", True]),
        (list[int], '"[1]"'),
        (list[Iterable[int]], [["bad"]]),
        (dict[str, Iterable[int]], {"a": [1.5]}),
    ],
    ids=named,
)
def test_nothing_is_guessed(annotation: Any, sent: Any) -> None:
    with pytest.raises(ValueError, match=r"^x"):
        validated(annotation, sent)


@pytest.mark.parametrize(
    ("annotation", "sent", "received"),
    [
        (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
        (datetime.datetime, "2024-02-29T12:00:00", datetime.datetime(2024, 2, 29, 12)),
        (datetime.timedelta, "P1D", datetime.timedelta(days=1)),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (uuid.UUID, "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (bytes, "hé", "hé".encode()),
        (set[int], [1, 1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, str], ["1", "2"], (1, "2")),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Iterable[int], [1, 2], [1, 2]),
        (list[Iterable[int]], [[1], [2]], [[1], [2]]),
        (dict[str, Iterable[int] | None], {"a": [1]}, {"a": [1]}),
        (Number, 1, Number.ONE),
        (Literal[1, 2], 1, 1),
        (Share, 1, Share.WHOLE),
        (str | datetime.datetime, "2024", "2024"),
        (Span, {"start": 1}, Span(1)),
        (Options, {"loud": True}, {"loud": True}),
        (str, "a\ud800😀", "a?😀"),
    ],
    ids=named,
)
def test_python_types_are_made_of_json(annotation: Any, sent: Any, received: Any) -> None:
    result = validated(annotation, sent)
    assert (result, type(result)) == (received, type(received))


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: list[int] = []


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str
    lives: str = ""


class Nested(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


@pytest.mark.parametrize("annotation", [Cat | Dog, Annotated[Cat | Dog, Field(discriminator="kind")], Dog | Cat | None])
def test_of_several_objects_it_is_the_one_that_the_fields_name(annotation: Any) -> None:
    cat, dog = Cat(kind="cat", lives=[1]), Dog(kind="dog", name="Rex", lives="[1]")
    assert validated(annotation, {"kind": "cat", "lives": "[1]"}) == cat
    assert validated(annotation, {"kind": "dog", "name": "Rex", "lives": "[1]"}) == dog
    assert validated(annotation, '{"kind": "cat", "lives": ["1"]}') == cat
    assert validated(annotation, {"kind": "cat", "lives": None}) == Cat(kind="cat")

    def f(pet: Any) -> Any:
        return pet

    f.__annotations__["pet"] = annotation
    assert called(f, {"kind": "cat", "lives": "[1]"}) == cat
    assert called(f, {"kind": "dog", "name": "Rex", "lives": "[1]"}) == dog
    assert refusal(f, {"kind": "cow"})


def test_an_object_that_lacks_what_one_needs_is_the_other() -> None:
    class All(BaseModel):
        number: int = 1

    assert validated(Query | All, {"number": None}) == All()
    assert validated(list[Nested], [{"pet": {"kind": "cat", "lives": "[1]"}}])[0].pet.lives == [1]


def test_names_may_have_a_pattern_that_only_pydantic_can_read() -> None:
    letters = Annotated[str, Field(pattern=r"^\p{L}+$")]
    assert validated(dict[letters, int], {"größe": 1}) == {"größe": 1}


def test_a_validator_of_the_users_own_may_take_more_than_the_schema_says() -> None:
    def split(value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value

    words = Annotated[list[str], BeforeValidator(split)]
    assert validated(words, "a,b") == ["a", "b"]
    assert validated(words | None, "a,b") == ["a", "b"]


def test_a_value_that_is_not_among_those_the_schema_names_is_told_with_these() -> None:
    def f(level: Literal[1, 2], when: dict[str, datetime.datetime] | None = None) -> None: ...

    assert refusal(f, {"level": True, "when": {"start": "2024"}}).splitlines() == [
        'level: does not fit {"enum": [1, 2], "type": "integer"} (sent true)',
        'when.start: does not fit {"format": "date-time", "type": "string"} (sent "2024")',
    ]


def test_between_two_objects_nothing_is_guessed() -> None:
    class Numbered(BaseModel):
        id: int

    class Named(BaseModel):
        id: str

    assert validated(Numbered | Named, {"id": "5"}) == Named(id="5")


def test_null_for_a_parameter_with_a_default_means_not_given() -> None:
    def f(x: str = "a", y: int | None = 1, *, z: Query | None = None) -> Any:
        return x, y, z

    assert called(f, {"x": None, "y": None, "z": {"text": "b", "limit": None}}) == ("a", None, Query(text="b"))
    assert called(f, {}) == ("a", 1, None)


def test_a_default_in_annotated_lets_a_parameter_be_left_out() -> None:
    def f(x: Annotated[int, Field(default=5)]) -> Any:
        return x

    assert called(f, {}) == 5


def test_every_kind_of_parameter_can_be_given() -> None:
    def f(a: int, /, b: int = 2, *args: int, c: int = 3, **kwargs: int) -> Any:
        return a, b, args, c, kwargs

    assert called(f, {"a": 1}) == (1, 2, (), 3, {})
    assert called(f, {"a": 1, "args": ["4", 5], "c": 6, "d": "7"}) == (1, 2, (4, 5), 6, {"d": 7})
    assert called(f, {"a": 1, "kwargs": 8}) == (1, 2, (), 3, {"kwargs": 8})


def test_no_parameters_take_no_arguments() -> None:
    def now() -> str:
        return "now"

    assert called(now, {}) == "now"
    assert refusal(now, {"zone": "utc"}) == "zone: no such parameter; the function takes none"


@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "flat"])
@pytest.mark.parametrize(
    ("annotation", "fields", "received"),
    [
        (Query, {"text": "a", "limit": "5"}, Query(text="a", limit=5)),
        (Query | None, {"text": "a"}, Query(text="a")),
        (Span, {"start": 1}, Span(1)),
        (Options, {"loud": "true"}, {"loud": True}),
    ],
)
def test_the_fields_of_a_single_object_may_be_sent_flat_or_wrapped(
    annotation: Any, fields: dict[str, Any], received: Any, wrapped: bool
) -> None:
    def f(query: Any = None) -> None: ...

    f.__annotations__["query"] = annotation
    tool = as_tool(f)
    sent = {"query": fields} if wrapped else fields
    assert validate_tool_arguments(tool, sent) == {"query": received}
    assert validate_tool_arguments(tool, {}) == {}


def test_no_fields_at_all_are_the_single_object_when_none_is_needed() -> None:
    class All(BaseModel):
        number: int = 1

    def f(query: All) -> Any:
        return query

    def g(query: Query) -> None: ...

    assert called(f, {}) == All()
    assert refusal(g, {}).startswith("query: missing; expected ")


def test_a_field_with_the_name_of_the_single_parameter_is_told_apart() -> None:
    class Text(BaseModel):
        text: str

    def f(text: Text) -> Any:
        return text

    assert called(f, {"text": "a"}) == called(f, {"text": {"text": "a"}}) == Text(text="a")
    assert called(f, {"text": '{"text": "a"}'}) == Text(text="a")


def test_an_error_names_the_parameter_what_was_sent_and_what_was_expected() -> None:
    def search(query: str, limit: int, mode: Literal["a", "b"] = "a", filters: list[Query] | None = None) -> None: ...

    assert refusal(
        search,
        {"limit": "many", "mode": "c", "filters": [{"text": "x"}, {"limit": "y"}], "colour": 1},
    ).splitlines() == [
        'query: missing; expected {"type": "string"}',
        "filters[1].text: missing",
        "colour: no such parameter; the parameters are query, limit, mode, filters",
        'limit: Input should be a valid integer (sent "many")',
        "mode: Input should be 'a' or 'b' (sent \"c\")",
        'filters[1].limit: Input should be a valid integer (sent "y")',
    ]


def test_the_members_of_a_union_are_one_error() -> None:
    def f(x: int | list[int]) -> None: ...

    assert refusal(f, {"x": "a"}) == ('x: Input should be a valid integer or Input should be a valid array (sent "a")')


def test_what_was_sent_is_shown_in_short_and_not_every_error_is_listed() -> None:
    def f(x: int, y: list[int]) -> None: ...

    message = refusal(f, {"x": "a" * 10_000, "y": ["{b}"] * 1000})
    assert len(message) < 2000
    assert message.endswith("and 991 more")
    assert '(sent "{b}")' in message


def test_a_validator_of_the_users_own_may_raise_anything() -> None:
    class Odd(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def check(cls, number: int) -> int:
            if number == 1:
                raise ValueError("must be even")
            raise KeyError(number)

    def f(odd: Odd) -> None: ...

    assert refusal(f, {"odd": {"number": 1}}) == "odd.number: Value error, must be even (sent 1)"
    assert refusal(f, {"odd": {"number": 2}}) == "the arguments cannot be checked: KeyError: 2"


SPEC = {
    "name": "lookup",
    "parameters": {
        "type": "object",
        "$defs": {"word": {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}},
        "properties": {
            "word": {"$ref": "#/$defs/word"},
            "lines": {"type": "integer"},
            "kind": {"enum": ["noun", "verb"]},
            "fixed": {"const": 7},
            "either": {"type": ["integer", "null"]},
            "many": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "number"}}]},
        },
        "required": ["word"],
        "additionalProperties": False,
    },
}


def test_arguments_for_a_given_schema_are_coerced_in_the_same_way() -> None:
    tool = as_tool({"spec": SPEC, "execute": dict})

    sent = {"word": '{"n": "1"}', "lines": None, "fixed": "7", "either": "null", "many": "[1.5]", "kind": "noun"}
    assert validate_tool_arguments(tool, sent) == {
        "word": {"n": 1},
        "fixed": 7,
        "either": None,
        "many": [1.5],
        "kind": "noun",
    }


def test_errors_for_a_given_schema_say_the_same_things() -> None:
    entry = {"spec": SPEC, "execute": dict}

    assert sorted(refusal(entry, {"lines": "many", "kind": "x", "many": "y", "colour": 1}).splitlines()) == [
        "colour: no such parameter; the parameters are word, lines, kind, fixed, either, many",
        "kind: 'x' is not one of ['noun', 'verb'] (sent \"x\")",
        "lines: 'many' is not of type 'integer' (sent \"many\")",
        'many: does not fit [{"type": "integer"}, {"type": "array", "items": {"type": "number"}}] (sent "y")',
        'word: missing; expected {"type": "object", "properties": '
        '{"text": {"type": "string"}, "n": {"type": "integer"}}}',
    ]
    assert refusal(entry, {"word": {"text": 5}}) == "word.text: 5 is not of type 'string' (sent 5)"


def test_a_reference_to_another_place_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[Any] = []
    monkeypatch.setattr("urllib.request.urlopen", fetched.append)
    parameters = {"type": "object", "properties": {"a": {"$ref": "http://localhost:9/schema"}}}

    message = refusal({"spec": {"name": "f", "parameters": parameters}, "execute": dict}, {"a": 1})
    assert "http://localhost:9/schema" in message
    assert fetched == []


def test_a_schema_that_refers_to_itself_alone_ends() -> None:
    parameters = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}

    assert refusal({"spec": {"name": "f", "parameters": parameters}, "execute": dict}, {"a": "1"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_either_accepted_or_refused(value: Any) -> None:
    def f(a: int = 0, b: list[Query] | None = None, c: Tree | str = "", d: dict[str, float] = {}) -> None: ...  # noqa: B006

    tool = as_tool(f)
    for sent in ({"a": value}, {"b": value}, {"c": value}, {"d": value}, {"b": json.dumps(value)}, {"e": value}):
        with contextlib.suppress(ValueError):
            validate_tool_arguments(tool, sent)


@given(st.dictionaries(st.sampled_from("abcd"), JSON))
def test_what_any_value_is_allowed_for_arrives_unchanged(arguments: dict[str, Any]) -> None:
    def f(a: Any = 1, b: Any = 2, c: Any = 3, d: Any = 4) -> Any: ...

    assert validate_tool_arguments(as_tool(f), arguments) == arguments


def test_what_an_async_function_yields_or_raises_comes_when_it_is_awaited() -> None:
    async def fails() -> None:
        raise KeyError("x")

    waiting = call_tool(as_tool(fails), {})
    with pytest.raises(KeyError):
        asyncio.run(waiting)


NUMBER = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
OLD = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("parameters", "sent", "received"),
    [
        ({"properties": {"n": {"allOf": [{"$ref": "#/$defs/n"}]}}, "$defs": {"n": {"type": "array"}}}, "[1]", [1]),
        ({"$ref": "#/$defs/f", "$defs": {"f": NUMBER}}, "5", 5),
        ({"$ref": "#/$defs/f", "$defs": {"f": {"$ref": "#/$defs/g"}, "g": NUMBER}, "properties": {"m": {}}}, "5", 5),
        ({"allOf": [{"properties": {"m": {"type": "string"}}}, NUMBER]}, "5", 5),
        ({"properties": {"n": {"allOf": [{"minimum": 1}, {"type": "integer"}]}}}, "5", 5),
        (
            {"properties": {"n": {"patternProperties": {"^a": {"type": "integer"}}}}},
            {"ab": "5", "b": "5"},
            {"ab": 5, "b": "5"},
        ),
        (
            {"properties": {"n": {"$ref": "#here"}}, "$defs": {"n": {"$anchor": "here", "type": "object"}}},
            {"n": "5"},
            {"n": "5"},
        ),
        ({"$schema": OLD, "properties": {"n": {"items": [{"type": "integer"}]}}}, ["5", "5"], [5, "5"]),
        (
            {"$schema": OLD, "properties": {"n": {"items": [{}], "additionalItems": {"type": "integer"}}}},
            ["5", "5"],
            ["5", 5],
        ),
        (
            {
                "$schema": OLD,
                "properties": {"n": {"$ref": "#/definitions/n"}},
                "definitions": {"n": {"type": "integer"}},
            },
            "5",
            5,
        ),
    ],
)
def test_a_given_schema_is_followed_through_all_that_it_is_put_together_of(
    parameters: dict[str, Any], sent: Any, received: Any
) -> None:
    tool = as_tool({"spec": {"name": "f", "parameters": parameters}, "execute": dict})
    assert validate_tool_arguments(tool, {"n": sent}) == {"n": received}


def test_what_a_generator_returns_is_its_result_and_what_it_yields_is_told_as_it_comes() -> None:
    def search() -> Generator[str, None, int]:
        yield "looking"
        yield "still looking"
        return 42

    told: list[Any] = []
    assert call_tool(as_tool(search), {}, told.append) == 42
    assert told == ["looking", "still looking"]
