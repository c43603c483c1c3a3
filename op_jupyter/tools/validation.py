"""Whether what a model sends is what a function takes, and if not, what it reads to send better.

By the Python types of a signature or by a JSON Schema; nothing is called here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from op_jupyter.tools.coerce import coerce, is_array, is_object, resolve, strays
from op_jupyter.tools.results import error_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from op_jupyter.tools.registry import AgentTool

T = TypeVar("T")

_MOST_ERRORS = 10
_MOST_CHARS = 200


def validate_tool_arguments(tool: AgentTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for `call_tool` that the model's `arguments` stand for.

    Raises:
        ValueError: when they do not fit; its text names each parameter, what was sent and what was expected.
    """
    return checked(lambda: tool.validate(coerce(arguments, tool.parameters)))


def checked(check: Callable[[], T]) -> T:
    """What `check` returns; whatever else it raises becomes a `ValueError`."""
    try:
        return check()
    except ValueError:
        raise
    except Exception as error:
        # A validator that somebody wrote for a type of theirs may raise anything.
        raise ValueError(f"the arguments cannot be checked: {error_text(error)}") from error


def check_types(
    adapter: TypeAdapter[Any],
    parameters: dict[str, Any],
    unseen: frozenset[str],
    arguments: Any,
    *,
    whole: str = "arguments",
) -> Any:
    """`arguments` as the Python types of a function's signature, by the rules of JSON.

    What is wrong with all of them together is said of the `whole`.

    Raises:
        ValueError: when they do not fit, or set a parameter that is `unseen`, as `**kwargs` would let them.
    """
    from pydantic import ValidationError

    if forbidden := [name for name in sorted(unseen) if name in arguments]:
        raise ValueError(_joined([_unknown(name, parameters) for name in forbidden]))
    text = json.dumps(arguments, ensure_ascii=False, default=str)
    try:
        value = adapter.validate_json(text.encode("utf-8", "replace"), strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    else:
        if found := list(strays(arguments, parameters, parameters)):
            raise ValueError(_joined([_misfit(_dotted(path) or whole, schema, sent) for path, sent, schema in found]))
        return value
    lines: list[str] = []
    wrong: dict[tuple[str, str], list[str]] = {}
    for detail in errors:
        path, sent = _followed(detail["loc"], arguments)
        if detail["type"] == "missing":
            name = str(detail["loc"][-1])
            lines.append(
                _missing([*path, name], parameters.get("properties", {}).get(name, {}) if not path else {}, parameters)
            )
        elif detail["type"] == "extra_forbidden" and len(path) == 1:
            lines.append(_unknown(str(path[0]), parameters))
        else:
            # The members of a union each have their say about one place.
            wrong.setdefault((_dotted(path) or whole, _short(sent)), []).append(detail["msg"])
    lines += [f"{place}: {' or '.join(reasons)} (sent {sent})" for (place, sent), reasons in wrong.items()]
    raise ValueError(_joined(lines))


def check_schema(parameters: dict[str, Any], arguments: Any, *, whole: str = "arguments") -> Any:
    """`arguments`, when they fit the JSON Schema `parameters`.

    What is wrong with all of them together is said of the `whole`.

    Raises:
        ValueError: when they do not.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    # A registry of its own keeps references to other places from being fetched.
    validator = validator_for(parameters, default=Draft202012Validator)(parameters, registry=Registry())
    lines: list[str] = []
    for error in validator.iter_errors(arguments):
        path = list(error.absolute_path)
        schema, instance = cast("dict[str, Any]", error.schema), cast("Any", error.instance)
        if error.validator == "required":
            known = schema.get("properties", {})
            absent = [name for name in schema["required"] if name not in instance]
            lines += [_missing([*path, name], known.get(name, {}), parameters) for name in absent]
        elif error.validator == "additionalProperties" and not path:
            lines += [_unknown(name, schema) for name in instance if name not in schema.get("properties", {})]
        else:
            place = _dotted(path) or whole
            if error.validator in ("anyOf", "oneOf"):
                lines.append(_misfit(place, error.validator_value, instance))
            else:
                lines.append(f"{place}: {_cut(error.message)} (sent {_short(instance)})")
    if lines:
        raise ValueError(_joined(lines))
    return arguments


def _followed(location: Iterable[str | int], arguments: Any) -> tuple[list[str | int], Any]:
    """The part of a pydantic location that leads into `arguments`, and what is there; the rest names types."""
    path: list[str | int] = []
    value = arguments
    for part in location:
        if is_object(value) or is_array(value):
            container: Any = value
            with contextlib.suppress(LookupError, TypeError):
                value = container[part]
                path.append(part)
    return path, value


def _missing(path: Iterable[str | int], schema: dict[str, Any], root: dict[str, Any]) -> str:
    expected = {keyword: value for keyword, value in resolve(schema, root).items() if keyword != "description"}
    return f"{_dotted(path)}: missing" + (f"; expected {_short(expected)}" if expected else "")


def _misfit(place: str, schema: Any, sent: Any) -> str:
    return f"{place}: does not fit {_short(schema)} (sent {_short(sent)})"


def _unknown(name: str, parameters: dict[str, Any]) -> str:
    known = ", ".join(parameters.get("properties", {}))
    return f"{name}: no such parameter; {f'the parameters are {known}' if known else 'the function takes none'}"


def _dotted(path: Iterable[str | int]) -> str:
    dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return dotted.removeprefix(".")


def _short(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


def _joined(lines: list[str]) -> str:
    lines = list(dict.fromkeys(lines))
    more = len(lines) - _MOST_ERRORS
    return "\n".join(lines[:_MOST_ERRORS] + ([f"and {more} more"] if more > 0 else []))
