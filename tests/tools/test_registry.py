"""What may stand in `tools=[...]`."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import pytest

from op_jupyter.tools.call import call_tool
from op_jupyter.tools.decorators import function
from op_jupyter.tools.registry import as_tool, menu, registered
from op_jupyter.tools.validation import validate_tool_arguments

SPEC = {
    "name": "lookup",
    "description": "Look up a word.",
    "parameters": {
        "type": "object",
        "properties": {"word": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["word"],
        "additionalProperties": False,
    },
}


def lookup(**arguments: Any) -> Any:
    return arguments


def plain(a: int) -> int:
    """Add one."""
    return a + 1


@pytest.mark.parametrize(
    "entry",
    [
        {"spec": SPEC, "execute": lookup},
        SimpleNamespace(spec=SPEC, execute=lookup),
        SimpleNamespace(spec=SimpleNamespace(**SPEC), execute=lookup),
    ],
    ids=["dict", "object", "object with an object as its spec"],
)
def test_a_spec_and_what_it_executes_are_a_tool(entry: Any) -> None:
    tool = as_tool(entry)

    assert (tool.name, tool.description, tool.parameters) == ("lookup", "Look up a word.", SPEC["parameters"])
    assert call_tool(tool, validate_tool_arguments(tool, {"word": "x", "lines": "5"})) == {"word": "x", "lines": 5}


def test_a_tool_is_a_tool() -> None:
    tool = as_tool(plain)

    assert as_tool(tool) is tool


def test_a_spec_without_parameters_takes_none() -> None:
    tool = as_tool({"spec": {"name": "now"}, "execute": lookup})

    assert tool.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert tool.description == "now"
    assert call_tool(tool, validate_tool_arguments(tool, {})) == {}
    with pytest.raises(ValueError, match=r"^zone: no such parameter; the function takes none$"):
        validate_tool_arguments(tool, {"zone": "utc"})


def test_a_plain_function_is_described_and_not_registered() -> None:
    tool = as_tool(plain)

    assert (tool.name, tool.description) == ("plain", "Add one.")
    assert call_tool(tool, {"a": 1}) == 2
    assert registered() == []


def test_an_object_that_can_be_called_has_the_name_of_its_class() -> None:
    class Search:
        """Search the web."""

        def __call__(self, query: str) -> str:
            return query.upper()

    tool = as_tool(Search())
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == (
        "Search",
        "Search the web.",
        ["query"],
    )
    assert call_tool(tool, {"query": "x"}) == "X"


def test_what_a_partial_has_set_the_model_does_not_see() -> None:
    def send(text: str, channel: str) -> str:
        """Send a text."""
        return f"{channel}: {text}"

    tool = as_tool(functools.partial(send, channel="news"))
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == ("send", "Send a text.", ["text"])
    assert call_tool(tool, validate_tool_arguments(tool, {"text": "x"})) == "news: x"


def test_a_function_behind_a_decorator_keeps_its_description() -> None:
    def logged(f: Any) -> Any:
        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            return [f(*args, **kwargs)]

        return call

    tool = as_tool(logged(plain))
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == ("plain", "Add one.", ["a"])
    assert call_tool(tool, validate_tool_arguments(tool, {"a": 1})) == [2]


@pytest.mark.parametrize("entry", ["name", 5, None, {"spec": SPEC}, ("name", plain), SimpleNamespace(spec=SPEC)])
def test_anything_else_is_an_error_that_names_the_entry(entry: Any) -> None:
    with pytest.raises(TypeError) as raised:
        as_tool(entry)
    assert str(raised.value).startswith(repr(entry)[:40])
    assert "is not a tool: pass a function" in str(raised.value)


def test_a_large_entry_is_named_in_short() -> None:
    with pytest.raises(TypeError, match=r"^'x+… is not a tool"):
        as_tool("x" * 1000)


def test_a_class_is_not_a_tool() -> None:
    with pytest.raises(TypeError, match="<class 'dict'> is a class, not a tool"):
        as_tool(dict)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({"description": "no name"}, TypeError, "its spec needs a name, a description and parameters"),
        ({"name": "a b"}, ValueError, "'a b' cannot be the name of a tool"),
        ({"name": "3d"}, ValueError, "'3d' cannot be the name of a tool: .* a letter or _ first"),
        ({"name": "f", "parameters": "x"}, TypeError, "f: parameters is of type str, and must be a JSON Schema"),
        ({"name": "f", "parameters": {"type": "string"}}, ValueError, "f: parameters has the type 'string'"),
        (
            {"name": "f", "parameters": {"properties": {"a": {"$ref": "#/$defs/nothing"}}}},
            ValueError,
            r"f: parameters refers to '#/\$defs/nothing', which is not in it",
        ),
        (
            {"name": "f", "parameters": {"properties": {"a": {"$ref": "https://somewhere.else/schema"}}}},
            ValueError,
            "f: parameters refers to 'https://somewhere.else/schema', which is not in it",
        ),
        (
            {"name": "f", "parameters": {"properties": {"a": {"default": float("nan")}}}},
            ValueError,
            "f: parameters is not valid JSON Schema: it holds something that is not JSON",
        ),
        (
            {"name": "f", "parameters": {"properties": {"a": {"type": "text"}}}},
            ValueError,
            r"f: parameters\['properties'\]\['a'\]\['type'\] is not valid JSON Schema: 'text'",
        ),
    ],
)
def test_a_spec_that_providers_would_refuse_is_an_error_at_once(
    spec: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        as_tool({"spec": spec, "execute": lookup})


def test_what_a_spec_executes_must_be_callable() -> None:
    with pytest.raises(TypeError, match="lookup: execute is 'lookup', which cannot be called"):
        as_tool({"spec": SPEC, "execute": "lookup"})


def test_what_python_cannot_read_a_signature_of_is_refused() -> None:
    with pytest.raises(TypeError, match="max has no signature that Python can read: wrap it"):
        as_tool(max)


def test_a_menu_keeps_the_order_of_its_entries() -> None:
    assert [tool.name for tool in menu([{"spec": SPEC, "execute": lookup}, plain])] == ["lookup", "plain"]
    assert menu([]) == []


def test_two_tools_of_one_name_are_an_error() -> None:
    with pytest.raises(ValueError, match="Two tools are named 'lookup'"):
        menu([{"spec": SPEC, "execute": lookup}, lookup])


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"timeout": 0}, "f: timeout is 0, and must be more than 0 seconds"),
        ({"timeout": "3"}, "f: timeout is .3., and must be more than 0 seconds"),
        ({"max_result_chars": 0}, "f: max_result_chars is 0, and must be 1 or more"),
    ],
)
def test_a_limit_that_leaves_nothing_is_an_error(limit: dict[str, Any], message: str) -> None:
    def f() -> None: ...

    with pytest.raises(ValueError, match=message):
        function(**limit)(f)
