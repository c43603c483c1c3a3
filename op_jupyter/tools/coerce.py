"""Arguments as a model sends them → arguments as the JSON Schema declares them, where nothing has to be guessed.

JSON in, JSON out: what does not fit is left as it is, for the validation to complain about.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, TypeGuard

Schema = dict[str, Any]
Types = frozenset[str] | None
"""The JSON types that a schema allows; `None` when it allows any."""

_MOST_REFERENCES = 20


def coerce(arguments: Mapping[str, Any], parameters: Schema) -> dict[str, Any]:
    """`arguments` coerced to the schema `parameters`.

    - A string where no string is allowed, and which is JSON of an allowed type, is decoded: `"[1]"`, `"5"`, `"true"`.
    - A whole number such as `5.0` becomes the integer that is declared.
    - `null` for what may be left out and cannot be `null` is left out.
    - The fields of the only parameter, when that is an object, may stand in its place.
    """
    # A copy: what a function does to its arguments must not change what the model is told it has sent.
    own = copy.deepcopy(dict(arguments))
    return _coerced_object(_wrapped(own, parameters), parameters, parameters)


def coerce_value(value: Any, schema: Schema) -> Any:
    """Any JSON `value`, coerced to `schema` by the same rules."""
    return _coerce(value, schema, schema)


def is_only_text(schema: Schema) -> bool:
    """Whether `schema` allows nothing but strings, and perhaps `null`."""
    allowed = _types(schema, schema)
    return allowed is not None and "string" in allowed and allowed <= {"string", "null"}


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether `value` is what JSON calls an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether `value` is what JSON calls an array."""
    return isinstance(value, list)


def resolve(schema: Any, root: Schema) -> Schema:
    """`schema` with its reference into `root` followed; `{}` when it allows anything, or refers to nothing."""
    for _ in range(_MOST_REFERENCES):
        if not is_object(schema):
            return {}
        reference = schema.get("$ref")
        if reference is None and len(schema.get("allOf", ())) == 1:
            schema = schema["allOf"][0]
        elif isinstance(reference, str) and reference.startswith("#"):
            schema = _pointed(reference, root)
        else:
            return schema
    return {}


def _pointed(reference: str, root: Any) -> Any:
    target = root
    for part in reference.removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        target = target.get(part) if is_object(target) else None
    return target


def _wrapped(arguments: dict[str, Any], parameters: Schema) -> dict[str, Any]:
    properties: Schema = parameters.get("properties", {})
    if len(properties) != 1 or parameters.get("additionalProperties", True) is not False or not arguments:
        return arguments
    ((name, schema),) = properties.items()
    objects = [variant for variant in _variants(schema, parameters) if "properties" in variant]
    if len(objects) != 1:
        return arguments
    fields = objects[0]["properties"]
    if name in arguments and (name not in fields or _says_object(arguments[name])):
        return arguments
    return {name: arguments} if fields.keys() & arguments.keys() else arguments


def _says_object(value: Any) -> bool:
    return is_object(_decoded(value, frozenset({"object"})) if isinstance(value, str) else value)


def _coerce(value: Any, schema: Any, root: Schema) -> Any:
    allowed = _types(schema, root)
    if isinstance(value, str) and allowed is not None and "string" not in allowed:
        value = _decoded(value, allowed)
    if isinstance(value, float) and value.is_integer() and not _allows(allowed, "number"):
        value = int(value) if _allows(allowed, "integer") else value
    fitting = [variant for variant in _variants(schema, root) if _allows(_types(variant, root), _type_of(value))]
    if len(fitting) != 1:
        return value
    if is_object(value):
        return _coerced_object(value, fitting[0], root)
    if is_array(value):
        return _coerced_list(value, fitting[0], root)
    return value


def _coerced_object(value: dict[str, Any], schema: Schema, root: Schema) -> dict[str, Any]:
    properties: Schema = schema.get("properties", {})
    coerced: dict[str, Any] = {}
    for name, item in value.items():
        declared = properties.get(name, schema.get("additionalProperties", {}))
        may_be_left_out = name in properties and name not in schema.get("required", ())
        if item is not None or not may_be_left_out or _allows(_types(declared, root), "null"):
            coerced[name] = _coerce(item, declared, root)
    return coerced


def _coerced_list(value: list[Any], schema: Schema, root: Schema) -> list[Any]:
    first: list[Any] = schema.get("prefixItems", [])
    rest = schema.get("items", {})
    return [_coerce(item, first[index] if index < len(first) else rest, root) for index, item in enumerate(value)]


def _variants(schema: Any, root: Schema) -> list[Schema]:
    schema = resolve(schema, root)
    union = schema.get("anyOf") or schema.get("oneOf")
    if not union:
        return [schema]
    return [variant for member in union for variant in _variants(member, root)]


def _types(schema: Any, root: Schema) -> Types:
    types: set[str] = set()
    for variant in _variants(schema, root):
        declared = variant.get("type")
        if isinstance(declared, str):
            types.add(declared)
        elif is_array(declared):
            types.update(declared)
        elif "const" in variant:
            types.add(_type_of(variant["const"]))
        elif "enum" in variant:
            types.update(map(_type_of, variant["enum"]))
        else:
            return None
    return frozenset(types)


def _allows(allowed: Types, type_: str) -> bool:
    return allowed is None or type_ in allowed or (type_ == "integer" and "number" in allowed)


def _decoded(text: str, allowed: Types) -> Any:
    """What `text` says in JSON, when that is of an allowed type; else the text."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    whole = isinstance(value, float) and value.is_integer() and _allows(allowed, "integer")
    return value if whole or _allows(allowed, _type_of(value)) else text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"
