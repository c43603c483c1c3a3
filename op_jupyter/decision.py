"""What the last reply of a run has to be: a pick from `choices`, or data of the type `response_format`.

Instructions for the model, and the reading of its reply; asking again is the loop's, returning the value `runtime`'s.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from op_jupyter.errors import DecisionError, OutputError
from op_jupyter.record import Run
from op_jupyter.tools.call import call_tool, check_schema, validate_tool_arguments
from op_jupyter.tools.registry import TOOL_ATTRIBUTE, AgentTool, as_tool
from op_jupyter.tools.schema import given_schema

Choices = Mapping[str, Any] | Sequence[Any]
_PICK = ("call", "action", "function", "tool")


@dataclass(frozen=True, slots=True)
class Expected:
    """What the last reply has to be.

    `read` gives what the text of a reply stands for, as a function to call once the run has ended; it raises
    `ValueError`, with the reason in words for the model. `error` is what `exec` raises when the reply stays wrong.
    """

    instructions: str
    read: Callable[[str], Callable[[], Any]]
    error: type[OutputError]

    def value_of(self, run: Run) -> Any:
        """What the last reply of `run` stands for.

        Raises:
            OutputError: when it stands for nothing that was expected.
        """
        try:
            value = self.read(run.text)
        except ValueError as error:
            reason = "; ".join(str(error).splitlines())
            raise self.error(f"The last reply cannot be used. {reason}", run=run) from None
        return value()

    def objection(self, text: str) -> str | None:
        """Why `text` is not what is expected; `None` when it is."""
        try:
            self.read(text)
        except ValueError as error:
            return f"This reply cannot be used. {error}\nReply again.\n\n{self.instructions}"
        return None


@dataclass(frozen=True, slots=True)
class _Option:
    """One line of the menu. `resolve` makes what `exec` returns of the arguments, which fit `parameters`."""

    name: str
    description: str
    parameters: dict[str, Any]
    validate: Callable[[dict[str, Any]], dict[str, Any]]
    resolve: Callable[[dict[str, Any]], Any]


def expected_reply(choices: Choices | None, response_format: Any, runtime: Any) -> Expected | None:
    """What the last reply has to be; `None` when any text will do. `runtime` is given to a function that asks for one.

    Raises:
        TypeError: when an entry of the menu, or the type, is of no kind that is known.
        ValueError: when the menu is empty or has two entries of one name, the type is no valid JSON Schema, or both
            are given.
    """
    if choices is not None and response_format is not None:
        raise ValueError("choices and response_format both say what the last reply is: pass one of them")
    if choices is not None:
        return _expected_pick(choices, runtime)
    return None if response_format is None else _expected_data(response_format)


# -------------------------------------------------------------------- choices


def _expected_pick(choices: Choices, runtime: Any) -> Expected:
    options: dict[str, _Option] = {}
    for option in _options(choices, runtime):
        if option.name in options:
            raise ValueError(f"choices: two options are named {option.name!r}")
        options[option.name] = option
    if not options:
        raise ValueError("choices: there is nothing to choose from")
    lines = [_line(option) for option in options.values()]
    instructions = (
        "When you have all that you need, decide. Your last reply is one JSON object and nothing else:\n"
        '{"call": NAME, …arguments}, where NAME is one of these, with the arguments that it takes:\n' + "\n".join(lines)
    )
    return Expected(instructions, functools.partial(_read_pick, options), DecisionError)


def _read_pick(options: dict[str, _Option], text: str) -> Callable[[], Any]:
    pick = _json_in(text)
    there_are = f"There are: {', '.join(options)}."
    if not isinstance(pick, dict):
        raise ValueError(f"It is not a JSON object. {there_are}")
    pick = cast("dict[str, Any]", pick)
    key = next((key for key in _PICK if key in pick), None)
    if key is None:
        raise ValueError(f'It has no "call" that names a choice. {there_are}')
    option = options.get(pick[key]) if isinstance(pick[key], str) else None
    if option is None:
        raise ValueError(f"There is no choice {pick[key]!r}. {there_are}")
    arguments = option.validate({name: value for name, value in pick.items() if name != key})
    return lambda: option.resolve(arguments)


def _options(choices: Choices, runtime: Any) -> Iterable[_Option]:
    if isinstance(choices, Mapping):
        for name, entry in choices.items():
            handler, description = entry if _is_described(entry) else (entry, None)
            yield _from_handler(name, handler, description, runtime)
        return
    if isinstance(choices, str) or not isinstance(choices, Sequence):
        raise TypeError(f"choices takes a dict or a list, not {type(choices).__name__}")
    for entry in choices:
        match entry:
            case str():
                yield _from_handler(entry, entry, None, runtime)
            case (str() as name, str() as description):
                yield _from_handler(name, name, description, runtime)
            case (str() as name, str() as description, dict() as schema):
                yield _from_schema(name, description, schema)
            case (handler, str() as description) if callable(handler):
                yield _from_handler(None, handler, description, runtime)
            case handler if callable(handler):
                yield _from_handler(None, handler, None, runtime)
            case other:
                raise TypeError(
                    f"choices: {other!r} is no option: give a function, a name, or (name or function, 'description')"
                )


def _is_described(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], str)


def _from_handler(name: str | None, handler: Any, description: str | None, runtime: Any) -> _Option:
    if not callable(handler):
        takes_none = given_schema(str(name), {"additionalProperties": False})
        return _Option(
            str(name), description or "", takes_none, functools.partial(check_schema, takes_none), lambda _: handler
        )
    tool = as_tool(handler)
    filled: dict[str, Any] = {}
    if hasattr(handler, TOOL_ATTRIBUTE) and "runtime" in inspect.signature(handler).parameters:
        filled = {"runtime": runtime} if "runtime" not in tool.parameters["properties"] else {}
    return _Option(
        name or tool.name,
        description or tool.description,
        tool.parameters,
        functools.partial(_validated, tool),
        lambda arguments: call_tool(tool, {**arguments, **filled}),
    )


def _validated(tool: AgentTool, arguments: dict[str, Any]) -> dict[str, Any]:
    return validate_tool_arguments(tool, arguments)


def _from_schema(name: str, description: str, schema: dict[str, Any]) -> _Option:
    parameters = given_schema(name, schema)
    return _Option(
        name,
        description,
        parameters,
        functools.partial(check_schema, parameters),
        lambda arguments: {"decision": name, **arguments},
    )


def _line(option: _Option) -> str:
    takes = "no arguments"
    if option.parameters.get("properties"):
        takes = f"arguments: {json.dumps(option.parameters, ensure_ascii=False)}"
    return f"- {json.dumps(option.name, ensure_ascii=False)}: {option.description or option.name} ({takes})"


# -------------------------------------------------------------------- response_format


def _expected_data(response_format: Any) -> Expected:
    if isinstance(response_format, dict):
        schema = cast("dict[str, Any]", response_format)
        validator = _schema_validator(schema)
        return Expected(_instructions(schema), lambda text: _constant(validator(_required_json(text))), OutputError)
    if response_format is str:
        return Expected("", lambda text: _constant(text), OutputError)

    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(response_format)
        schema = adapter.json_schema()
    except PydanticUserError as error:
        raise TypeError(f"response_format: {str(error).splitlines()[0]}") from None
    return Expected(_instructions(schema), lambda text: _constant(_typed(adapter, text)), OutputError)


def _instructions(schema: dict[str, Any]) -> str:
    return (
        "When you have all that you need, answer. Your last reply is JSON and nothing else, and fits this schema:\n"
        + json.dumps(schema, ensure_ascii=False)
    )


def _schema_validator(schema: dict[str, Any]) -> Callable[[Any], Any]:
    wrapped = given_schema("response_format", {"properties": {"reply": schema}, "required": ["reply"]})
    return lambda value: check_schema(wrapped, {"reply": value})["reply"]


def _typed(adapter: Any, text: str) -> Any:
    from pydantic import ValidationError

    try:
        return adapter.validate_json(json.dumps(_required_json(text)))
    except ValidationError as error:
        details = error.errors(include_url=False)
    raise ValueError("\n".join(f"{'.'.join(map(str, one['loc'])) or 'reply'}: {one['msg']}" for one in details))


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


# -------------------------------------------------------------------- the JSON of a reply


def _required_json(text: str) -> Any:
    value = _json_in(text)
    if value is _NOTHING:
        raise ValueError("It is not JSON.")
    return value


_NOTHING: Any = object()


def _json_in(text: str) -> Any:
    """The JSON that `text` is, or that its last fenced block is."""
    for candidate in (text, *reversed(_fenced(text))):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    return _NOTHING


def _fenced(text: str) -> list[str]:
    from markdown_it import MarkdownIt

    return [token.content for token in MarkdownIt().parse(text) if token.type == "fence"]
