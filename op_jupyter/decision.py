"""What the last reply of a run has to be: a pick from `choices`, or data of the type `response_format`.

Instructions for the model, and the reading of its reply; asking again is the loop's, returning the value `runtime`'s.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from op_jupyter.errors import DecisionError, OutputError
from op_jupyter.record import Run
from op_jupyter.tools.call import by_name, call_tool
from op_jupyter.tools.coerce import coerce, coerce_value, is_object, is_only_text, resolve
from op_jupyter.tools.hints import without_iterators
from op_jupyter.tools.json_schema import check_json_schema, explained, json_schema
from op_jupyter.tools.registry import AgentTool, decorated_tool
from op_jupyter.tools.schema import describe, given_schema
from op_jupyter.tools.validation import check_schema, check_types, checked

Choices = Mapping[str, Any] | Sequence[Any]
RunCoroutine = Callable[[Awaitable[Any]], Any]
Outcome = Callable[[RunCoroutine], Any]
"""What a reply stands for, to be called once the run has ended."""

_PICK = ("call", "action", "function", "tool")


@dataclass(frozen=True, slots=True)
class Expected:
    """What the last reply has to be.

    `read` gives what the text of a reply stands for; it raises `ValueError`, with the reason in words for the model.
    `error` is what `exec` raises when the reply stays wrong. `tools` are those that may be picked.
    """

    instructions: str
    read: Callable[[str], Outcome]
    error: type[OutputError]
    tools: Sequence[AgentTool] = ()

    def value_of(self, run: Run, run_coroutine: RunCoroutine) -> Any:
        """What the last reply of `run` stands for. An async function is called by `run_coroutine`.

        Raises:
            OutputError: when it stands for nothing that was expected.
            Exception: whatever the function raises that was picked.
        """
        try:
            outcome = self.read(run.text)
        except ValueError as error:
            cap = "The run has asked the model as often as it may. " if run.hit_cap else ""
            reason = "; ".join(str(error).splitlines())
            raise self.error(f"{cap}The last reply cannot be used. {reason}", run=run) from None
        return outcome(run_coroutine)

    def objection(self, text: str) -> str | None:
        """Why `text` is not what is expected; `None` when it is."""
        try:
            self.read(text)
        except ValueError as error:
            return f"This reply cannot be used. {error}\nReply again.\n\n{self.instructions}"
        return None


@dataclass(frozen=True, slots=True)
class _Option:
    """One line of the menu. `resolve` makes what `exec` returns of the arguments, which `validate` has checked.

    `tool` is there where the option is a decorated function.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    validate: Callable[[dict[str, Any]], Any]
    resolve: Callable[[Any, RunCoroutine], Any]
    tool: AgentTool | None = None


def expected_reply(choices: Choices | None, response_format: Any) -> Expected | None:
    """What the last reply has to be; `None` when any text will do.

    Raises:
        TypeError: when an entry of the menu, or the type, is of no kind that is known.
        ValueError: when the menu is empty or has two entries of one name, the type is no valid JSON Schema, or both
            are given.
    """
    if choices is not None and response_format is not None:
        raise ValueError("choices and response_format both say what the last reply is: pass one of them")
    if choices is not None:
        return _expected_pick(choices)
    return None if response_format is None else _expected_data(response_format)


# -------------------------------------------------------------------- choices


def _expected_pick(choices: Choices) -> Expected:
    options: dict[str, _Option] = {}
    for option in _options(choices):
        if not option.name.strip():
            raise ValueError("choices: an option has no name")
        if option.name in options:
            raise ValueError(f"choices: two options are named {option.name!r}")
        options[option.name] = option
    if not options:
        raise ValueError("choices: there is nothing to choose from")
    tools = [option.tool for option in options.values() if option.tool]
    instructions = (
        "When you have all that you need, decide. Your last reply is one JSON object and nothing else:\n"
        '{"call": NAME, …arguments}, where NAME is one of these, with the arguments that it takes:\n'
        + "\n".join(map(_line, options.values()))
    )
    return Expected(instructions, functools.partial(_read_pick, options), DecisionError, tools)


def _read_pick(options: dict[str, _Option], text: str) -> Outcome:
    there_are = f"There are: {', '.join(options)}."
    pick = _json_in(text)
    if not isinstance(pick, dict):
        raise ValueError(f"It is not a JSON object. {there_are}")
    pick = cast("dict[str, Any]", pick)
    keys = [key for key in _PICK if key in pick]
    if not keys:
        raise ValueError(f'It has no "call" that names a choice. {there_are}')
    # The first of them that names a choice: the others may be arguments of it.
    key = next((key for key in keys if isinstance(pick[key], str) and pick[key] in options), None)
    if key is None:
        raise ValueError(f"There is no choice {pick[keys[0]]!r}. {there_are}")
    option = options[pick.pop(key)]
    wrapped = pick.get("arguments")
    if len(pick) == 1 and is_object(wrapped) and "arguments" not in option.parameters.get("properties", {}):
        pick = wrapped  # as in the call of a function
    arguments = checked(lambda: option.validate(coerce(pick, option.parameters)))
    return lambda run_coroutine: option.resolve(arguments, run_coroutine)


def _options(choices: Choices) -> Iterable[_Option]:
    if isinstance(choices, Mapping):
        for name, entry in choices.items():
            if not isinstance(cast("object", name), str):
                raise TypeError(f"choices: the name of an option is a text, not {name!r}")
            handler, description = entry if _is_described(entry) else (entry, "")
            if callable(handler):
                yield _from_callable(name, handler, description)
            else:
                yield _from_value(name, handler, description)
        return
    if isinstance(choices, str) or not isinstance(choices, Sequence):
        raise TypeError(f"choices takes a dict or a list, not {type(choices).__name__}")
    for entry in choices:
        match entry:
            case str():
                yield _from_value(entry, entry, "")
            case (str() as name, str() as description):
                yield _from_value(name, name, description)
            case (str() as name, str() as description, dict() as schema):
                yield _from_schema(name, schema, description)
            case (handler, str() as description) if callable(handler):
                yield _from_callable(None, handler, description)
            case handler if callable(handler):
                yield _from_callable(None, handler, "")
            case other:
                raise TypeError(
                    f"choices: {other!r} is no option: give a function, a name, or (name or function, 'description')"
                )


def _is_described(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], str)


def _from_value(name: str, value: Any, description: str) -> _Option:
    nothing = given_schema(name, {"additionalProperties": False})
    return _Option(name, description, nothing, functools.partial(check_schema, nothing), lambda arguments, _: value)


def _from_schema(name: str, schema: dict[str, Any], description: str) -> _Option:
    parameters = given_schema(name, schema)
    if "decision" in parameters["properties"]:
        raise ValueError(f"choices: {name} has a field 'decision', where exec returns the name of the pick: rename it")
    return _Option(
        name,
        description,
        parameters,
        functools.partial(check_schema, parameters),
        lambda fields, _: {**fields, "decision": name},
    )


def _from_callable(name: str | None, handler: Callable[..., Any], description: str) -> _Option:
    if inspect.isclass(handler):
        return _from_class(name or handler.__name__, handler, description)
    decorated = decorated_tool(handler)
    if decorated is None:
        described = describe(_named(name, handler))
        name = name or described.name
        tool = AgentTool(
            name="choice",  # A choice may have a name that providers would refuse.
            description=described.description or name,
            parameters=described.parameters,
            execute=by_name(handler),
            validate=functools.partial(check_types, described.adapter, described.parameters, described.unseen),
        )
    elif not decorated.available:
        raise ValueError(f"choices: {decorated.name} is not available here")
    elif decorated.requires_approval:
        raise ValueError(
            f"choices: {decorated.name} needs approval, which only a call of a tool asks for: put it in tools"
        )
    else:
        tool = decorated

    def call(arguments: dict[str, Any], run_coroutine: RunCoroutine) -> Any:
        value = call_tool(tool, arguments)
        return run_coroutine(value) if inspect.isawaitable(value) else value

    return _Option(name or tool.name, description or tool.description, tool.parameters, tool.validate, call, decorated)


def _named(name: str | None, handler: Callable[..., Any]) -> Callable[..., Any]:
    """`handler` to be described; a lambda that stands under a name gets that."""
    if name is None or getattr(handler, "__name__", None) != "<lambda>":
        return handler

    @functools.wraps(handler)
    def named() -> None: ...

    named.__name__ = name
    return named


def _from_class(name: str, cls: type, description: str) -> _Option:
    schema, check = _of_type(f"choices: {name}", cls)
    if resolve(schema, schema).get("type") != "object":
        raise TypeError(f"choices: {name}: a pick is a JSON object, of which {cls!r} cannot be made")
    description = description or str(schema.get("description", ""))
    return _Option(name, description, schema, check, lambda made, _: made)


def _line(option: _Option) -> str:
    takes = f"arguments: {json.dumps(option.parameters, ensure_ascii=False)}"
    if not option.parameters.get("properties") and option.parameters.get("additionalProperties") is False:
        takes = "no arguments"
    description = " ".join(option.description.split()) or option.name
    return f"- {json.dumps(option.name, ensure_ascii=False)}: {description} ({takes})"


# -------------------------------------------------------------------- response_format


def _expected_data(response_format: Any) -> Expected:
    if response_format is str:
        return Expected("", lambda text: lambda _: text, OutputError)
    if isinstance(response_format, dict):
        schema = cast("dict[str, Any]", response_format)
        check_json_schema("response_format", schema)
        check: Callable[[Any], Any] = functools.partial(check_schema, schema, whole="reply")
    else:
        schema, check = _of_type("response_format", response_format)
    only_text = is_only_text(schema)

    def read(text: str) -> Outcome:
        value = _json_in(text)
        if only_text and not isinstance(value, str | None):
            value = text.strip()
        if value is _NOTHING:
            raise ValueError("It is not JSON.")
        checked_value = checked(lambda: check(coerce_value(value, schema)))
        return lambda _: checked_value

    instructions = (
        "When you have all that you need, answer. Your last reply is JSON and nothing else, and fits this schema:\n"
        + json.dumps(schema, ensure_ascii=False)
    )
    return Expected(instructions, read, OutputError)


def _of_type(what: str, type_: Any) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """The JSON Schema of a type, and what makes a value of it out of JSON."""
    from pydantic import TypeAdapter

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(without_iterators(type_))
        schema = json_schema(adapter)
    except Exception as error:
        raise TypeError(
            f"{what}: pydantic cannot make {type_!r} of JSON{explained(error)}: use a type that it understands, such "
            "as a dataclass"
        ) from None
    parameters = {**schema, **resolve(schema, schema)}
    return schema, functools.partial(check_types, adapter, parameters, frozenset[str](), whole="reply")


# -------------------------------------------------------------------- the JSON of a reply


_NOTHING: Any = object()


def _json_in(text: str) -> Any:
    """The JSON that `text` is, or that its last fenced block is."""
    for candidate in (text, *reversed(_fenced(text))):
        try:
            return json.loads(candidate, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
    return _NOTHING


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _fenced(text: str) -> list[str]:
    from markdown_it import MarkdownIt

    # Blocks alone: what stands inside of lines can take seconds to parse, such as many brackets.
    return [token.content for token in MarkdownIt().disable("inline").parse(text) if token.type == "fence"]
