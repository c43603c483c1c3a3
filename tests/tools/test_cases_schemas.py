"""Situations of schemas and names that broke other implementations, as whole kinds."""

from __future__ import annotations

import datetime
import enum
import json
import pathlib
import re
import types
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal, NotRequired

import pytest
from jsonschema import Draft202012Validator
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from op_jupyter import Runtime, function
from op_jupyter.messages import UserMessage
from op_jupyter.providers import Request, ToolSpec, openai_chat
from op_jupyter.testing import scripted
from op_jupyter.tools.registry import as_tool, registered
from tests.calling import (
    Box,
    Colour,
    Company,
    Json,
    Level,
    Mode,
    Options,
    Pair,
    Person,
    Query,
    Tree,
    Words,
    received,
    taking,
)

TYPES: list[tuple[Any, Any, Any]] = [
    (dict[str, int], {"a": 1}, {"a": 1}),
    (dict[Level, int], {"2": 1}, {Level.HIGH: 1}),
    (Colour, "red", Colour.RED),
    (Colour, 7, Colour.NUMBER),
    (Colour, None, Colour.NOTHING),
    (Level, "2", Level.HIGH),
    (Mode, "fast", Mode.FAST),
    (Literal[1, 2], "2", 2),
    (Literal[True], "true", True),
    (Literal["a", 1, None], None, None),
    (Literal["only"], "only", "only"),
    (Literal[Level.LOW], 1, Level.LOW),
    (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
    (datetime.datetime, "2024-02-29T12:00:00Z", datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)),
    (datetime.time, "12:30", datetime.time(12, 30)),
    (pathlib.Path, "a/b", pathlib.Path("a/b")),
    (bytes, "hé", "hé".encode()),
    (uuid.UUID, str(uuid.UUID(int=1)), uuid.UUID(int=1)),
    (Pair, [1, 5], Pair(1, 5)),
    (Pair, ["1"], Pair(1)),
    (Tree, {"value": 1, "children": [{"value": 2}]}, Tree(value=1, children=[Tree(value=2)])),
    (Company, {"staff": [{"name": "Ada"}]}, Company(staff=[Person(name="Ada")])),
    (Box[Tree], {"value": {"value": 1}}, Box[Tree](value=Tree(value=1))),
    (Words, ["a"], Words(["a"])),
    (Json, {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    (Query | list[int], [1], [1]),
]


@pytest.mark.parametrize(("annotation", "sent", "got"), TYPES, ids=repr)
def test_a_function_gets_the_python_type_that_it_declares(annotation: Any, sent: Any, got: Any) -> None:
    assert (received(annotation, sent), type(received(annotation, sent))) == (got, type(got))


@pytest.mark.parametrize("annotation", dict.fromkeys(annotation for annotation, *_ in TYPES), ids=repr)
def test_what_is_said_of_a_type_is_valid_json_schema_whose_references_lead_somewhere(annotation: Any) -> None:
    schema = as_tool(taking(annotation)).parameters
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object" and "title" not in schema
    said = json.dumps(schema)
    for name in re.findall(r'"\$ref": "([^"]*)"', said):
        assert name.startswith("#/$defs/") and name.removeprefix("#/$defs/") in schema["$defs"]


def test_two_classes_of_one_name_are_kept_apart() -> None:
    class Other:
        class Query(BaseModel):
            number: int

    def f(a: Any, b: Any) -> None: ...

    f.__annotations__ = {"a": Query, "b": Other.Query}
    schema = as_tool(f).parameters
    one, other = (schema["$defs"][schema["properties"][name]["$ref"].removeprefix("#/$defs/")] for name in "ab")
    assert ("text" in one["properties"], "number" in other["properties"]) == (True, True)


class Unfinished(BaseModel):
    later: NotDefinedYet  # type: ignore[name-defined]  # noqa: F821


class Rgb(enum.Enum):
    RED = (255, 0, 0)


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: types.ModuleType


class Empty(enum.Enum):
    pass


class Stream(BaseModel):
    numbers: Iterable[int]


class Elsewhere(BaseModel):
    number: int = Field(validation_alias=AliasPath("numbers", 0))


@pytest.mark.parametrize(
    "annotation",
    [
        Unfinished,
        Holder,
        Rgb,
        types.ModuleType,
        Callable[[int], int],
        Iterator[Holder],
        dict[str, range],
        "Nowhere",
        Empty,
        Stream,
        list[Stream],
        Elsewhere,
        dict[Literal[1, 2], int],
        dict[None, int],
        SkipJsonSchema[int],
        NotRequired[int],
        Annotated[int, Field(alias="y")],
        Annotated[int, Field(validation_alias="y")],
        Annotated[int, Field(validation_alias=AliasChoices("x_", "y"))],
    ],
    ids=repr,
)
def test_what_cannot_be_said_is_one_clear_line_at_decoration(annotation: Any) -> None:
    with pytest.raises(TypeError) as raised:
        function(taking(annotation))
    message = str(raised.value)
    assert message.startswith("take: ") and "'x'" in message
    assert re.search("use a type that JSON can say|define or import it", message)
    assert not re.search(r"\n|TypeAdapter|pydantic|op_jupyter", message.replace(repr(annotation), ""))
    assert registered() == []


def test_openai_is_sent_schemas_as_they_are_and_not_its_strict_ones() -> None:
    def f(options: Options, day: datetime.date, limit: int = 3, **others: Any) -> None:
        """Optional fields, open objects, a format."""

    tool = as_tool(f)
    spec = ToolSpec(tool.name, tool.description, tool.parameters)
    body = openai_chat.request_body(Request("gpt-test", None, [UserMessage("Hi")], [spec]))
    assert body["tools"][0]["function"] == {
        "name": "f",
        "description": "Optional fields, open objects, a format.",
        "parameters": tool.parameters,
    }
    assert tool.parameters["required"] == ["options", "day"]
    assert tool.parameters["properties"]["day"] == {"type": "string", "format": "date"}


# -------------------------------------------------------------------- names and descriptions


@pytest.mark.parametrize("name", ["größe", "a.b", "a b", "", "x" * 65, "a\n", "工具"])
def test_a_name_that_a_provider_refuses_is_an_error_before_anything_is_asked(name: str) -> None:
    def f() -> None: ...

    f.__name__ = name
    for make in (function, lambda f: as_tool({"spec": {"name": name}, "execute": f}), as_tool):
        with pytest.raises(ValueError, match="cannot be the name of a tool"):
            make(f)
    assert registered() == []


def test_two_tools_of_one_name_are_an_error_of_whatever_kind_they_are() -> None:
    def f() -> None: ...

    spec = {"spec": {"name": "f"}, "execute": f}
    earlier = function(f)

    @function
    def tool_search() -> None:
        """Has the name of ours."""

    @function(defer=True)
    def later() -> None:
        """Loaded by tool_search."""

    runtime = Runtime(scripted([]))
    for menu in ([f, f], [earlier, spec], [spec, dict(spec)]):
        with pytest.raises(ValueError, match="Two tools are named 'f'"):
            runtime.exec("go", tools=menu)
    with pytest.raises(ValueError, match="named tool_search"):
        runtime.exec("go")


@pytest.mark.parametrize("docstring", [None, "", "  \n "])
def test_a_missing_docstring_leaves_the_name_as_the_description(docstring: str | None) -> None:
    def look() -> None: ...

    look.__doc__ = docstring
    spec = {"name": "look", "description": docstring}
    for entry in (look, {"spec": spec, "execute": look}, types.SimpleNamespace(spec=spec, execute=look)):
        assert as_tool(entry).description == "look"
