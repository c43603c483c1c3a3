"""What a model is told of a function."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import pathlib
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from op_jupyter.tools.schema import describe

if TYPE_CHECKING:
    # Not there when the program runs.
    from decimal import Context as Nowhere


class Point(BaseModel):
    title: str
    x: int = 0


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


@dataclasses.dataclass
class Span:
    start: int
    end: int | None = None


class Options(TypedDict):
    loud: bool


class Number(enum.Enum):
    ONE = 1
    TWO = 2


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    described: dict[str, Any] = describe(function).parameters["properties"]
    return described


GOOGLE = """Search the web
for pages.

It takes a while.

Args:
    query: What to look for,
        in words.
    limit (int, optional): How many.
    *more: Other words.

Returns:
    The pages.
"""

NUMPY = """Search the web
for pages.

It takes a while.

Parameters
----------
query : str
    What to look for,
    in words.
limit : int, optional
    How many.
*more
    Other words.

Returns
-------
list
    The pages.
"""

SPHINX = """Search the web
for pages.

It takes a while.

:param query: What to look for,
    in words.
:param int limit: How many.
:param more: Other words.
:returns: The pages.
"""


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["Google", "NumPy", "Sphinx"])
def test_the_docstring_describes_the_function_and_its_parameters(docstring: str) -> None:
    def search(query: str, limit: int = 3, *more: str) -> None: ...

    search.__doc__ = docstring
    described = describe(search)
    assert described.name == "search"
    assert described.description == "Search the web for pages."
    assert described.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in words."},
            "limit": {"type": "integer", "description": "How many.", "default": 3},
            "more": {"type": "array", "items": {"type": "string"}, "description": "Other words."},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "docstring",
    [
        "Args:\n    x: The left.\n      And more.\n    y (int): The right.\n",
        "\n  Args:\n    x: The left.\n      And more.\n    y: The right.\n",
        "Args:\n    x: The left.\n      And more.\n    y: The right.\n\n  Returns:\n    The sum.\n",
        "\n  Parameters\n  ----------\n  x : int\n    The left.\n    And more.\n  y\n    The right.\n",
        ":param x: The left.\n    And more.\n  :param y: The right.\n",
    ],
)
def test_a_docstring_may_speak_of_the_parameters_alone(docstring: str) -> None:
    def add(x: Any, y: Any) -> None: ...

    add.__doc__ = docstring
    described = describe(add)
    assert described.description == ""
    assert described.parameters["properties"] == {
        "x": {"description": "The left. And more."},
        "y": {"description": "The right."},
    }


def test_what_a_docstring_says_of_other_keyword_arguments_is_told() -> None:
    def typed(**fields: int) -> None:
        """Set fields.

        Args:
            **fields: The fields by name.
        """

    def untyped(**fields: Any) -> None: ...

    untyped.__doc__ = typed.__doc__
    assert describe(typed).parameters["additionalProperties"] == {
        "type": "integer",
        "description": "The fields by name.",
    }
    assert describe(untyped).parameters["additionalProperties"] == {"description": "The fields by name."}


def test_a_function_without_parameters_docstring_or_annotations_is_described() -> None:
    def now() -> None: ...
    def echo(value: Any, times: Any = 2) -> None: ...

    now.__annotations__.clear()
    echo.__annotations__.clear()
    assert describe(now).parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert describe(now).description == ""
    assert properties(echo) == {"value": {}, "times": {"default": 2}}


def test_annotated_says_more_than_the_docstring() -> None:
    def search(
        query: Annotated[str, "words to find"],
        limit: Annotated[int, Field(description="how many", ge=1)] = 3,
        page: int = Field(2, description="which page"),
    ) -> None:
        """Search.

        Args:
            query: from the docstring
            limit: from the docstring
            page: from the docstring
        """

    described = describe(search).parameters
    assert described["properties"] == {
        "query": {"type": "string", "description": "words to find"},
        "limit": {"type": "integer", "minimum": 1, "description": "how many", "default": 3},
        "page": {"type": "integer", "description": "which page", "default": 2},
    }
    assert described["required"] == ["query"]


def test_types_become_json_schema() -> None:
    def f(
        choice: Literal[1, 2],
        number: Number,
        either: int | list[str] | None,
        table: dict[str, int],
        day: datetime.date,
        path: pathlib.Path,
        key: uuid.UUID,
        data: bytes,
        pair: tuple[int, str],
        words: Iterable[str],
        numbers: collections.abc.Iterable[int] | None,
        anything: Any,
    ) -> None: ...

    assert properties(f) == {
        "choice": {"enum": [1, 2], "type": "integer"},
        "number": {"$ref": "#/$defs/Number"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}},
        "day": {"type": "string", "format": "date"},
        "path": {"type": "string", "format": "path"},
        "key": {"type": "string", "format": "uuid"},
        "data": {"type": "string", "format": "binary"},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        "words": {"type": "array", "items": {"type": "string"}},
        "numbers": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "anything": {},
    }
    assert describe(f).parameters["$defs"] == {"Number": {"enum": [1, 2], "type": "integer"}}


def test_models_dataclasses_and_typed_dicts_stand_in_defs_without_titles() -> None:
    def f(point: Point, tree: Tree, span: Span, options: Options) -> None: ...

    parameters = describe(f).parameters
    assert parameters["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert parameters["$defs"]["Point"] == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "x": {"type": "integer", "default": 0}},
        "required": ["title"],
    }
    assert parameters["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert parameters["$defs"]["Span"]["required"] == ["start"]
    assert parameters["$defs"]["Options"]["properties"] == {"loud": {"type": "boolean"}}


def test_defaults_are_told_as_far_as_json_can_say_them_and_they_hold_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")

    class Settings(BaseModel):
        key: str = "sk-12345678"
        limit: int = 5

    def f(
        number: Number = Number.TWO,
        point: Point = Point(title="a"),  # noqa: B008
        path: pathlib.Path = pathlib.Path("a/b"),
        nothing: str | None = None,
        infinite: float = float("inf"),
        unknown: Any = object(),  # noqa: B008
        key: str = "sk-12345678",
        field: str = Field("sk-12345678", examples=["Bearer sk-12345678"]),
        settings: Settings | None = None,
        table: dict[str, list[str]] = {"keys": ["sk-12345678"]},  # noqa: B006
    ) -> None: ...

    assert {name: schema["default"] for name, schema in properties(f).items() if "default" in schema} == {
        "number": 2,
        "point": {"title": "a", "x": 0},
        "path": "a/b",
    }
    assert describe(f).parameters["$defs"]["Settings"]["properties"]["limit"]["default"] == 5
    assert "sk-12345678" not in str(describe(f).parameters)


def test_an_annotation_that_is_refused_is_shown_without_a_key_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")

    def f(connection: Annotated[Connection, Field(default="sk-12345678")]) -> None: ...

    with pytest.raises(TypeError, match="'connection'") as raised:
        describe(f)
    assert "sk-12345678" not in str(raised.value)


def test_any_name_may_be_a_parameter() -> None:
    def f(_private: int, self_: int, model_config: int, copy: int, json: int, schema: int) -> None: ...

    assert list(properties(f)) == ["_private", "self_", "model_config", "copy", "json", "schema"]


def test_other_keyword_arguments_have_the_type_that_is_declared_for_them() -> None:
    def typed(a: int, **others: int) -> None: ...
    def untyped(**others: Any) -> None: ...

    untyped.__annotations__.clear()
    assert describe(typed).parameters["additionalProperties"] == {"type": "integer"}
    assert list(properties(typed)) == ["a"]
    additional = describe(untyped).parameters["additionalProperties"]
    assert additional in (True, {})


def test_classes_of_the_notebook_and_of_the_function_around_are_found() -> None:
    class Local(BaseModel):
        a: int

    def f(one: Local, many: list[Local] | None = None) -> None: ...

    assert properties(f)["one"] == {"$ref": "#/$defs/Local"}


def test_what_the_model_does_not_see_need_not_be_resolved() -> None:
    def f(a: int, runtime: Nowhere | None = None) -> Nowhere | None: ...

    assert list(properties(f)) == ["a"]


def test_an_annotation_that_cannot_be_resolved_is_an_error_that_names_it() -> None:
    def f(a: Nowhere) -> None: ...

    with pytest.raises(TypeError, match=r"f: the annotation 'Nowhere' of 'a' cannot be resolved .*: define or import"):
        describe(f)


class Connection:
    """Something that no JSON can say."""


class Peculiar:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise LookupError("no schema\nof mine")


class Mixed(enum.Enum):
    WORD = "word"
    PAIR = (1, 2)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Connection, "Connection"),
        (list[Connection], "Connection"),
        (Callable[[], int], "Callable"),
        (Mixed, "Mixed"),
        (Peculiar, "Peculiar (no schema)"),
        (Literal[Mixed.WORD], "Mixed"),
        (list[Literal[b"raw"]], "raw"),
        (type[int], "type[int]"),
        (dict[tuple[int, int], str], "tuple[int, int]"),
    ],
)
def test_what_a_model_cannot_send_is_an_error_that_says_what_to_do(annotation: Any, said: str) -> None:
    def query(sql: str, db: Any) -> None: ...

    query.__annotations__["db"] = annotation
    with pytest.raises(TypeError) as raised:
        describe(query)
    message = str(raised.value)
    assert message.startswith("query: a model cannot send the parameter 'db', annotated with ")
    assert said in message
    assert message.endswith("use a type that JSON can say, or hide it with hidden=('db',) and a default")
    assert "\n" not in message


def test_an_alias_that_is_the_name_of_another_parameter_is_refused_too() -> None:
    def f(x: int = Field(alias="y"), y: int = 1) -> None: ...

    with pytest.raises(TypeError, match=r"cannot send the parameter 'x', .*alias"):
        describe(f)


def test_other_keyword_arguments_that_a_model_cannot_send_are_an_error() -> None:
    def f(a: int, **others: Connection) -> None: ...

    with pytest.raises(TypeError, match="f cannot be described to a model"):
        describe(f)


def test_a_parameter_name_that_providers_refuse_is_an_error() -> None:
    namespace: dict[str, Any] = {}
    exec("def weather(größe: int): ...", namespace)

    with pytest.raises(ValueError, match="weather: providers refuse the parameter name 'größe'"):
        describe(namespace["weather"])


def test_a_docstring_that_cannot_be_parsed_still_describes_the_function() -> None:
    def f(x: int) -> None: ...

    # The parser breaks off at this one with an IndexError.
    f.__doc__ = "Add.\n\nArgs:\n    x: y\nArgs:\nArgs:\n:  :type:param a b c d e f: x\n"
    assert describe(f).description == "Add."
