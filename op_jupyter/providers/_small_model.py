"""How a model too small for a tool template is made to call functions: what it is told, and how its reply is read.

Plain functions from values to values; nothing here runs a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Literal, NamedTuple, assert_never

from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    InputBlock,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Request, ToolSpec
from op_jupyter.providers._shared import one_line
from op_jupyter.providers._wire import as_dict, as_list, as_str

Turn = tuple[Literal["user", "assistant"], str]
Schema = dict[str, Any]

EXAMPLES = 4
WORDS = ("Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta")
INSTRUCTIONS = """\
You answer with the help of functions. Every reply is one JSON object: {"call": name, "arguments": {…}} to call a \
function, or {"answer": text} to answer the user.
Whatever a function can do or find out, call it for that; do not answer from memory. Call one function at a time. \
When all that was asked is there, answer.

Functions:
"""

# -------------------------------------------------------------------- what the model is told


def in_json(request: Request) -> bool:
    """Whether the model replies in the JSON that `read` reads: with functions on the menu, or calls in the history."""
    return bool(request.tools) or any(isinstance(message, ToolResultMessage) for message in request.messages)


def chat(request: Request) -> dict[str, Any]:
    """The `messages` of a chat completion, and the `response_format` that holds the model to calls and answers."""
    if not in_json(request):
        return {"messages": _roles(request.system, map(_plain_turn, request.messages))}
    functions = INSTRUCTIONS + "\n".join(map(_signature, request.tools))
    system = "\n\n".join(part for part in (request.system, functions) if part)
    turns = _turns([*_examples(request.tools), *request.messages])
    return {
        "messages": _roles(system, turns),
        "response_format": {"type": "json_schema", "json_schema": {"schema": _grammar(request)}},
    }


def _roles(system: str | None, turns: Iterable[Turn]) -> list[dict[str, str]]:
    """The messages; neighbours of one role are joined, since many chat templates want the roles to alternate."""
    joined = [
        {"role": role, "content": "\n\n".join(text for _, text in group)}
        for role, group in groupby((turn for turn in turns if turn[1]), key=lambda turn: turn[0])
    ]
    return [{"role": "system", "content": system}, *joined] if system else joined


def _plain_turn(message: Message) -> Turn:
    return ("assistant", message.text) if isinstance(message, AssistantMessage) else ("user", _text(message.content))


def _turns(messages: Iterable[Message]) -> Iterator[Turn]:
    """What was said, and behind each question and result a line that reminds the model of what it may do now."""
    asked = ""
    for message in messages:
        match message:
            case UserMessage():
                asked = _text(message.content)
                yield "user", f"{asked}\n(Call a function if one fits, or answer.)"
            case AssistantMessage():
                yield "assistant", "\n".join(_said(message.content))
            case ToolResultMessage():
                result = f"Result of {message.tool_name}: {'Error: ' * message.is_error}{_text(message.content)}"
                request = one_line(asked, 200)
                yield "user", f"{result}\n(The request is: {request} Call the next function that it needs, or answer.)"
            case _:
                assert_never(message)


def _said(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case TextContent():
                yield _json({"answer": block.text})
            case ToolCall():
                yield _json({"call": block.name, "arguments": block.arguments})
            case ThinkingContent() | ImageContent() | ServerContent():
                pass
            case _:
                assert_never(block)


def _text(blocks: Iterable[InputBlock | Block]) -> str:
    shown = (block.text if isinstance(block, TextContent) else "[image]" for block in blocks)
    return "\n\n".join(shown)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# -------------------------------------------------------------------- functions, as a model reads them


def _signature(tool: ToolSpec) -> str:
    """`- name(parameter: type, optional?: type): description`, and a line for each parameter that has a description."""
    required = as_list(tool.parameters.get("required"))
    parameters = as_dict(tool.parameters.get("properties"))
    listed = [
        f"{name}{'' if name in required else '?'}: {_type(as_dict(schema), tool.parameters)}"
        for name, schema in parameters.items()
    ]
    described = [
        f"\n  {name}: {description}"
        for name, schema in parameters.items()
        if (description := as_str(as_dict(schema).get("description")))
    ]
    return f"- {tool.name}({', '.join(listed)}): {tool.description}{''.join(described)}"


def _type(schema: Schema, root: Schema, depth: int = 0) -> str:
    """A schema as a type that is quick to read; what is nested deeper than three levels is left out."""
    inner = depth + 1
    match schema:
        case _ if depth > 3:
            return "…"
        case {"$ref": str(ref)}:
            return _type(_definition(ref, root), root, inner)
        case {"enum": [*values]}:
            return " | ".join(map(_json, values))
        case {"const": value}:
            return _json(value)
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            return " | ".join(_type(as_dict(option), root, inner) for option in options)
        case {"type": [*names]}:
            return " | ".join(map(str, names))
        case {"type": "array"}:
            return f"list[{_type(as_dict(schema.get('items')), root, inner)}]"
        case {"properties": properties}:
            fields = (f"{name}: {_type(as_dict(of), root, inner)}" for name, of in as_dict(properties).items())
            return f"{{{', '.join(fields)}}}"
        case {"type": str(name)}:
            return name
        case _:
            return "any"


def _definition(ref: str, root: Schema) -> Schema:
    return as_dict(as_dict(root.get("$defs")).get(ref.rpartition("/")[2]))


def _examples(tools: list[ToolSpec]) -> Iterator[Message]:
    """Conversations made from the schemas: each function alone, two in a row, and small talk before the last of these.

    Without them a small model does not call, calls again instead of answering, or calls when it is greeted. The last
    counts most: small talk there keeps it from calling at all.
    """
    steps = [
        (tool, _sample(tool.parameters, tool.parameters, number), str(17 + 5 * number))
        for number, tool in enumerate(tools[:EXAMPLES])
    ]
    examples = [[step] for step in steps] + ([steps[1::-1]] if len(steps) > 1 else [])
    for example in examples:
        if example is examples[-1]:
            yield UserMessage("Hi!")
            yield AssistantMessage([TextContent("Hello! What can I do for you?")])
        yield UserMessage(", then ".join(_wish(tool, arguments) for tool, arguments, _ in example) + ".")
        for tool, arguments, result in example:
            yield AssistantMessage([ToolCall("", tool.name, arguments)])
            yield ToolResultMessage("", tool.name, [TextContent(result)])
        results = " and ".join(result for _, _, result in example)
        yield AssistantMessage([TextContent(f"The {'results are' if len(example) > 1 else 'result is'} {results}.")])


def _wish(tool: ToolSpec, arguments: dict[str, Any]) -> str:
    given = ", ".join(f"{name} {_json(value)}" for name, value in arguments.items())
    return tool.description.rstrip(".") + (f" ({given})" if given else "")


def _sample(schema: Schema, root: Schema, number: int, depth: int = 0) -> Any:
    """A value that fits the schema, at least in its types."""
    match schema:
        case {"$ref": str(ref)} if depth < 5:
            return _sample(_definition(ref, root), root, number, depth + 1)
        case {"examples": [value, *_]} | {"enum": [value, *_]} | {"const": value}:
            return value
        case {"anyOf": [option, *_]} | {"oneOf": [option, *_]} if depth < 5:
            return _sample(as_dict(option), root, number, depth + 1)
        case {"type": "array", "items": items} if depth < 5:
            return [_sample(as_dict(items), root, number + more, depth + 1) for more in (0, 1)]
        case {"type": "array"}:
            return []
        case {"type": "object"} if depth < 5:
            properties = as_dict(schema.get("properties"))
            required = [key for key in properties if key in as_list(schema.get("required"))]
            return {
                key: _sample(as_dict(properties[key]), root, number + at, depth + 1) for at, key in enumerate(required)
            }
        case {"type": "string"}:
            return WORDS[number % len(WORDS)]
        case {"type": "integer"}:
            return 30 + number
        case {"type": "number"}:
            return 2.5 + number
        case {"type": "boolean"}:
            return True
        case _:
            return None


# -------------------------------------------------------------------- what the model may write


def _grammar(request: Request) -> Schema:
    """The schema of a reply: one of the calls, or an answer, as far as `tool_choice` leaves it open."""
    match request.tool_choice:
        case "auto":
            tools, may_answer = [] if _goes_round(request.messages) else request.tools, True
        case "required":
            tools, may_answer = request.tools, not request.tools
        case "none":
            tools, may_answer = [], True
        case named:
            tools, may_answer = [tool for tool in request.tools if tool.name == named["name"]], False
    calls = [
        _object({"call": {"const": tool.name}, "arguments": _constraint(tool.parameters, tool.name)}) for tool in tools
    ]
    answer = _object({"answer": {"type": "string"}})
    definitions = {
        f"{tool.name}.{name}": _constraint(as_dict(schema), tool.name)
        for tool in tools
        for name, schema in as_dict(tool.parameters.get("$defs")).items()
    }
    return {"oneOf": [*calls, answer] if may_answer else calls, "$defs": definitions}


def _goes_round(messages: list[Message]) -> bool:
    """Whether a call told the same twice since the user last spoke: a small model would go on calling for ever."""
    told: list[tuple[str, dict[str, Any], str]] = []
    calls: dict[str, ToolCall] = {}
    for message in messages:
        match message:
            case UserMessage():
                told = []
            case AssistantMessage():
                calls = {call.id: call for call in message.tool_calls}
            case ToolResultMessage():
                if call := calls.get(message.tool_call_id):
                    told.append((call.name, call.arguments, _text(message.content)))
            case _:
                assert_never(message)
    return any(one in told[:at] for at, one in enumerate(told))


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _constraint(schema: Schema, tool: str) -> Schema:
    """What of a schema constrains decoding: its structure. The rest the tool's own validation says better.

    (Of what is left out, `pattern` makes the native code print warnings, and lengths blow up the grammar.)
    """
    kept: Schema = {}
    for key, value in schema.items():
        match key, value:
            case "type" | "enum" | "const" | "required", _:
                kept[key] = value
            case "$ref", str():
                kept[key] = value.replace("#/$defs/", f"#/$defs/{tool}.")
            case "properties", dict():
                kept[key] = {name: _constraint(as_dict(inner), tool) for name, inner in as_dict(value).items()}
            case "items" | "additionalProperties", dict():
                kept[key] = _constraint(as_dict(value), tool)
            case "anyOf" | "oneOf" | "allOf" | "prefixItems", list():
                kept[key] = [_constraint(as_dict(inner), tool) for inner in as_list(value)]
            case _:
                pass
    if "properties" in kept:
        kept.setdefault("additionalProperties", False)
    return kept


# -------------------------------------------------------------------- what the model wrote

CALL = re.compile(r'\s*\{\s*"call"\s*:\s*"([^"]+)"\s*,\s*"arguments"\s*:\s*')


class Known(NamedTuple):
    """What is known of a reply that is being written: the function it calls, and the arguments or the answer so far."""

    call: str | None
    text: str


def read_text(reply: str) -> Known | None:
    """What is known of a reply that is plain text."""
    return Known(None, reply) if reply else None


def read_json(reply: str) -> Known | None:
    """What is known of a reply that is one JSON object, a call or an answer.

    Example:
        >>> read_json('{"call": "now", "arguments": {'), read_json('{"answer": "It is su'), read_json('{"ca')
        (Known(call='now', text='{'), Known(call=None, text='It is su'), None)
    """
    import pydantic_core

    if call := CALL.match(reply):
        arguments = reply[call.end() :]
        return Known(call[1], arguments.rstrip()[:-1] if _is_complete(reply) else arguments)
    try:
        answer = as_dict(pydantic_core.from_json(reply, allow_partial="trailing-strings")).get("answer")
    except ValueError:
        return None
    return Known(None, answer) if isinstance(answer, str) else None


def _is_complete(reply: str) -> bool:
    import pydantic_core

    try:
        pydantic_core.from_json(reply)
    except ValueError:
        return False
    return True
