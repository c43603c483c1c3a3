"""Situations of arguments that broke other implementations, as whole kinds, each through a whole run."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import pytest

from op_jupyter import Runtime, agentic_function, function
from op_jupyter.providers import Request
from op_jupyter.testing import call, scripted
from tests.calling import Aliased, Box, Company, Mode, Node, Options, Person, Query, Tree, Words, received, run, taking

# -------------------------------------------------------------------- what is sent as a string


@pytest.mark.parametrize(
    ("annotation", "sent", "got"),
    [
        (list[str], '["a"]', ["a"]),
        (list, '["a"]', ["a"]),
        (tuple[str, ...], '["a"]', ("a",)),
        (set[str], '["a"]', {"a"}),
        (Sequence[str], '["a"]', ["a"]),
        (Iterable[str], '["a"]', ["a"]),
        (dict[str, list[str]], '{"a": ["b"]}', {"a": ["b"]}),
        (dict[str, list[str]], {"a": '["b"]'}, {"a": ["b"]}),
        (list[list[int]], ["[1]", [2]], [[1], [2]]),
        (Mapping[str, int], '{"a": 1}', {"a": 1}),
        (list[str] | None, '["a"]', ["a"]),
        (Annotated[list[str], "words"], '["a"]', ["a"]),
        (Query, {"text": '["a"]', "tags": '["b"]'}, Query(text='["a"]', tags=["b"])),
        (Options, {"tags": '["b"]'}, {"tags": ["b"]}),
        (Words, '["a"]', Words(["a"])),
        (Node, '{"value": 1, "next": "{\\"value\\": 2}"}', Node(1, Node(2))),
        (str, '["a"]', '["a"]'),
        (str | list[str], '["a"]', '["a"]'),
        (dict[str, str], {"a": '["b"]'}, {"a": '["b"]'}),
        (list[str], ['["a"]'], ['["a"]']),
        (Literal['["a"]'], '["a"]', '["a"]'),
        (Any, '["a"]', '["a"]'),
    ],
    ids=repr,
)
def test_json_in_a_string_is_decoded_only_where_a_list_or_an_object_is_declared(
    annotation: Any, sent: Any, got: Any
) -> None:
    assert received(annotation, sent) == got


@pytest.mark.parametrize(
    ("annotation", "sent", "got"),
    [
        (Query, {"text": "a", "tags": None, "limit": None}, Query(text="a", limit=None)),
        (Options, {"loud": None}, {}),
        (list[Query], [{"text": "a", "tags": None}], [Query(text="a")]),
        (Node, {"value": 1, "next": None}, Node(1)),
    ],
    ids=repr,
)
def test_null_for_a_field_that_may_be_left_out_means_not_given(annotation: Any, sent: Any, got: Any) -> None:
    assert received(annotation, sent) == got


@pytest.mark.parametrize("annotation", [str, int, list[str], Query, Mode, Literal["a"], datetime.date])
def test_null_for_a_parameter_with_a_default_means_not_given_whatever_its_type(annotation: Any) -> None:
    default = object()
    tool = taking(annotation, default)
    assert not run(tool, {"x": None})[0].is_error
    assert tool.got == [default]
    assert run(taking(annotation), {"x": None})[0].is_error


def test_a_function_cannot_change_what_the_model_is_told_it_has_sent() -> None:
    schema = {"anyOf": [{"type": "array", "items": {"type": kind}} for kind in ("integer", "string")]}
    parameters = {"type": "object", "properties": {"rows": schema, "any": {}}}

    def spoil(rows: list[Any], **others: Any) -> None:
        rows.append(99)
        others["any"]["b"].append(99)

    sent: list[Request] = []
    reply = call("spoil", rows=[1], any={"b": []})
    runtime = Runtime(scripted([[reply, reply], lambda request: sent.append(request) or "ok"]))
    runtime.exec("go", tools=[{"spec": {"name": "spoil", "parameters": parameters}, "execute": spoil}])
    first, second = sent[0].messages[1].tool_calls  # type: ignore[union-attr]
    assert first.arguments == second.arguments == {"rows": [1], "any": {"b": []}}


# -------------------------------------------------------------------- every kind of parameter


def every_kind(a: int, /, b: int = 2, *args: int, c: int, d: int = 4, **kwargs: int) -> list[Any]:
    """Give back everything."""
    return [a, b, list(args), c, d, kwargs]


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        ({"a": 1, "c": 3}, [1, 2, [], 3, 4, {}]),
        ({"a": 1, "b": None, "c": 3, "d": None}, [1, 2, [], 3, 4, {}]),
        ({"a": 1, "args": "[5, 6]", "c": 3}, [1, 2, [5, 6], 3, 4, {}]),
        ({"a": 1, "c": "3", "e": "7", "self": 8}, [1, 2, [], 3, 4, {"e": 7, "self": 8}]),
        ({"a": 1, "c": 3, "kwargs": 9, "arguments": 10}, [1, 2, [], 3, 4, {"kwargs": 9, "arguments": 10}]),
    ],
)
def test_positional_keyword_and_variadic_parameters_are_all_given_by_name(sent: dict[str, Any], got: list[Any]) -> None:
    assert json.loads(run(every_kind, sent)[0].text) == got


@pytest.mark.parametrize("sent", [{"c": 3}, {"a": 1}, {"a": 1, "c": 3, "args": 5}, {"a": 1, "c": 3, "e": "x"}])
def test_what_is_missing_or_of_the_wrong_type_is_told_for_every_kind_of_parameter(sent: dict[str, Any]) -> None:
    assert run(every_kind, sent)[0].is_error


def test_what_the_model_does_not_see_it_cannot_set_through_keyword_arguments_either() -> None:
    ran: list[str] = []

    @function(hidden=("db",))
    def query(sql: str, db: str = "read-only", **kwargs: Any) -> None:
        ran.append(db)

    @agentic_function
    def research(topic: str, *, runtime: Any, **kwargs: Any) -> None:
        ran.append(runtime)

    def send(text: str, channel: str, **kwargs: Any) -> None:
        ran.append(channel)

    for tool, arguments in (
        (query, {"sql": "drop", "db": "writable"}),
        (research, {"topic": "x", "runtime": "mine"}),
        (functools.partial(send, channel="news"), {"text": "x", "channel": "press"}),
    ):
        (result,) = run(tool, arguments)
        assert result.is_error and f"{list(arguments)[1]}: no such parameter" in result.text
    assert ran == []


@pytest.mark.parametrize(
    ("annotation", "fields", "got"),
    [
        (Query, {"text": "a", "tags": '["b"]'}, Query(text="a", tags=["b"])),
        (Tree, {"value": 1, "children": [{"value": "2"}]}, Tree(value=1, children=[Tree(value=2)])),
        (Person, {"name": "Ada", "employer": {"staff": []}}, Person(name="Ada", employer=Company())),
        (Box[int], {"value": "3"}, Box[int](value=3)),
        (Aliased, {"from": 1}, Aliased(**{"from": 1})),
        (Node, {"value": 1, "next": {"value": 2}}, Node(1, Node(2))),
        (Options, {"loud": True}, {"loud": True}),
        (Query | None, {"text": "a"}, Query(text="a")),
        (Annotated[Query, "what to look for"], {"text": "a"}, Query(text="a")),
    ],
    ids=repr,
)
def test_the_fields_of_a_single_object_may_be_sent_flat_wrapped_or_as_a_string(
    annotation: Any, fields: dict[str, Any], got: Any
) -> None:
    tool = taking(annotation)
    answers = run(tool, fields, {"x": fields}, {"x": json.dumps(fields)})
    assert [answer.is_error for answer in answers] == [False] * 3
    assert tool.got == [got] * 3
