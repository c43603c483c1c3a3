"""How a function is described to a model: signature and docstring → name, description and JSON Schema.

Nothing is called or validated here; what a model cannot send is refused when the function is described.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, get_args, get_origin

from op_jupyter.redact import redact
from op_jupyter.tools.hints import (
    AnyAnnotated,
    AnyList,
    Scope,
    bound_by_partial,
    docstring_of,
    is_unbound_method,
    name_of,
)
from op_jupyter.tools.json_schema import check_json_schema, explained, json_schema, may_be_told

if TYPE_CHECKING:
    from pydantic import TypeAdapter

RUNTIME = "runtime"
"""The parameter that no model ever sees."""

_AnyRequired: Any = Required
_AnyNotRequired: Any = NotRequired


@dataclass(frozen=True, slots=True)
class Described:
    """A function as a model sees it, and the pydantic adapter that validates its arguments, but for the `unseen`."""

    name: str
    description: str
    parameters: dict[str, Any]
    unseen: frozenset[str]
    adapter: TypeAdapter[dict[str, Any]]


def describe(function: Callable[..., Any], *, hidden: Iterable[str] = (), filled: Iterable[str] = ()) -> Described:
    """Describe `function`, without the parameters that a model does not see (see `_unseen`).

    Raises:
        TypeError: when a model could not call the function.
        ValueError: when providers would refuse the name of a parameter.
    """
    from pydantic import Field

    name = name_of(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise TypeError(f"{name} has no signature that Python can read: wrap it in a function of your own") from None
    if is_unbound_method(function):
        raise TypeError(f"{name} is a method: pass it bound to its object, in tools=[object.{name}]")
    unseen = _unseen(function, signature, hidden, filled)
    description, documented = _docstring(function)
    scope = Scope(function)
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {"closed": True}
    for parameter in signature.parameters.values():
        if parameter.name in unseen:
            continue
        if not re.fullmatch("[a-zA-Z0-9_.-]{1,64}", parameter.name):
            raise ValueError(f"{name}: providers refuse the parameter name {parameter.name!r}: use the letters a to z")
        hint = scope.hint(parameter)
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = {"extra_items": AnyAnnotated[hint, Field(description=documented.get(parameter.name))]}
        elif parameter.kind is parameter.VAR_POSITIONAL:
            fields[parameter.name] = _AnyNotRequired[AnyList[hint]]
        else:
            fields[parameter.name] = _field(parameter, hint)
    adapter, schema = _checked(name, fields, extra)
    for field_name, described in schema["properties"].items():
        said = _string_beside(fields[field_name]) or documented.get(field_name)
        if said:
            described.setdefault("description", said)
        described.update(_default(signature.parameters[field_name].default))
    return Described(name, description, schema, frozenset(unseen), adapter)


def given_schema(name: str, parameters: Any) -> dict[str, Any]:
    """The JSON Schema `parameters` that was given for the tool `name`; `None` means that it has no parameters.

    Raises:
        TypeError: when it is not a dict.
        ValueError: when it is not a JSON Schema of type `object`.
    """
    if not isinstance(parameters, Mapping | None):
        raise TypeError(f"{name}: parameters is of type {type(parameters).__name__}, and must be a JSON Schema, a dict")
    given = {"additionalProperties": False} if parameters is None else parameters
    schema: dict[str, Any] = {"type": "object", "properties": {}, **given}
    if schema["type"] != "object":
        raise ValueError(f"{name}: parameters has the type {schema['type']!r}, and must have the type 'object'")
    check_json_schema(f"{name}: parameters", schema)
    return schema


def _unseen(
    function: Callable[..., Any], signature: inspect.Signature, hidden: Iterable[str], filled: Iterable[str]
) -> set[str]:
    """The parameters in `hidden`, those that a partial has set, and `runtime`. All need a default, or to be filled."""
    names = {hidden} if isinstance(hidden, str) else set(hidden)
    for name in sorted(names - signature.parameters.keys()):
        raise ValueError(f"{name_of(function)}: hidden names {name!r}, which is not a parameter")
    names |= bound_by_partial(function) | {RUNTIME}
    for parameter in signature.parameters.values():
        variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.name not in names or parameter.name in filled or variadic:
            continue
        if parameter.default is parameter.empty:
            way_out = "give it a default"
            if parameter.name == RUNTIME:
                way_out = "rename it, or use @agentic_function, which fills it"
            raise TypeError(f"{name_of(function)}: no model sees the parameter {parameter.name!r}: {way_out}")
    return names


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    from pydantic.fields import FieldInfo

    if isinstance(parameter.default, FieldInfo):
        hint = AnyAnnotated[hint, parameter.default]
        return _AnyRequired[hint] if parameter.default.is_required() else _AnyNotRequired[hint]
    return _AnyRequired[hint] if parameter.default is parameter.empty else _AnyNotRequired[hint]


def _string_beside(field: Any) -> str | None:
    """The description in `Annotated[int, "how many"]`."""
    (hint,) = get_args(field)
    beside: tuple[Any, ...] = hint.__metadata__ if get_origin(hint) is Annotated else ()
    return next((said for said in beside if isinstance(said, str)), None)


def _checked(
    name: str, fields: dict[str, Any], extra: dict[str, Any]
) -> tuple[TypeAdapter[dict[str, Any]], dict[str, Any]]:
    try:
        return _adapter(name, fields, extra)
    except Exception as error:
        # To say which parameter it is, each is tried alone.
        for parameter, field in fields.items():
            try:
                _adapter(name, {parameter: field}, {})
            except Exception as reason:
                shown = redact(inspect.formatannotation(*get_args(field)))
                raise TypeError(
                    f"{name}: a model cannot send the parameter {parameter!r}, annotated with {shown}"
                    f"{explained(reason)}: use a type that JSON can say, or hide it with hidden=({parameter!r},) and "
                    "a default"
                ) from None
        raise TypeError(f"{name} cannot be described to a model{explained(error)}") from None


def _adapter(
    name: str, fields: dict[str, Any], extra: dict[str, Any]
) -> tuple[TypeAdapter[dict[str, Any]], dict[str, Any]]:
    import typing_extensions
    from pydantic import TypeAdapter

    # A TypedDict, not a model: its fields may have any name.
    typed_dict: Any = typing_extensions.TypedDict
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(typed_dict(name, fields, **extra))
    schema = json_schema(adapter)
    if schema["properties"].keys() != fields.keys():
        raise TypeError("it has an alias, or is left out of the schema")
    if any(get_origin(hint) is NotRequired for field in fields.values() for hint in get_args(field)):
        raise TypeError("only a default lets a parameter be left out")
    return adapter, schema


def _default(default: Any) -> dict[str, Any]:
    """`{"default": ...}`, when there is one that a model may be told."""
    from pydantic.fields import FieldInfo
    from pydantic_core import to_jsonable_python

    if default is None or default is inspect.Parameter.empty or isinstance(default, FieldInfo):
        return {}
    try:
        value = to_jsonable_python(default)
    except Exception:
        return {}
    return {"default": value} if may_be_told(value) else {}


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The first paragraph of the docstring, and what it says of each parameter."""
    from docstring_parser import parse

    text = docstring_of(function)
    heading, _, rest = text.partition("\n")
    if heading in ("Args:", "Arguments:", "Parameters:") and not rest.startswith(" "):
        # What stands below a first line loses its indentation when a docstring is cleaned.
        rest = textwrap.indent(rest, "    ")
    try:
        # The parser cleans it once more.
        parsed = parse(f"\n{heading}\n{rest}")
    except Exception:  # it raises others than its own
        return _one_line(text.split("\n\n")[0]), {}
    paragraph = parsed.short_description or ""
    if parsed.long_description and not parsed.blank_after_short_description:
        paragraph += "\n" + parsed.long_description.split("\n\n")[0]
    documented = {
        name.strip().lstrip("*"): _one_line(parameter.description)
        for parameter in parsed.params
        for name in parameter.arg_name.split(",")
        if parameter.description
    }
    return _one_line(paragraph), documented


def _one_line(text: str) -> str:
    return " ".join(text.split())
