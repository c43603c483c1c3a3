"""Arguments as a model sends them → arguments as the JSON Schema declares them, where nothing has to be guessed.

JSON in, JSON out: what does not fit is left as it is, for the validation to complain about.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeGuard

Schema = dict[str, Any]
Types = frozenset[str] | None
"""The JSON types that a schema allows; `None` when it allows any."""

Stray = tuple[tuple[str | int, ...], Any, Schema]
"""Where something stands that does not fit, what it is, and the schema that it does not fit."""


def coerce(arguments: Mapping[str, Any], parameters: Schema) -> dict[str, Any]:
    """`arguments` coerced to the schema `parameters`.

    - A string where no string is allowed, and which is JSON of an allowed type, is decoded: `"[1]"`, `"5"`, `"true"`.
    - A whole number such as `5.0` becomes the integer that is declared.
    - `null` for what may be left out and cannot be `null` is left out.
    - The fields of the only parameter, when that is an object, may stand in its place.
    """
    # A copy: what a function does to its arguments must not change what the model is told it has sent.
    own = copy.deepcopy(dict(arguments))
    whole = resolve(parameters, parameters)
    return _coerced_object(_wrapped(own, whole, parameters), whole, parameters)


def coerce_value(value: Any, schema: Schema) -> Any:
    """Any JSON `value`, coerced to `schema` by the same rules."""
    return _coerce(value, schema, schema)


def strays(value: Any, schema: Any, root: Schema, path: tuple[str | int, ...] = ()) -> Iterator[Stray]:
    """What in `value` is not among the values that `schema` names one by one, or no time where it wants one.

    These alone are looked for, since pydantic takes others: `true` for 1, and `"2024"` for a second of 1970.
    """
    if is_object(value) or is_array(value):
        fitting = _fitting(value, schema, root)
        for where, item, declared in _parts(value, fitting[0]) if len(fitting) == 1 else ():
            yield from strays(item, declared, root, (*path, where))
    elif not _takes(value, schema, root):
        yield path, value, resolve(schema, root)


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
    """`schema` as one, with what it refers to in `root` and with its `allOf`; `{}` when it allows anything."""
    return _resolved(schema, root, frozenset())


def _resolved(schema: Any, root: Schema, followed: frozenset[str]) -> Schema:
    if not is_object(schema):
        return {}
    reference, parts = schema.get("$ref"), list(schema.get("allOf", ()))
    if isinstance(reference, str) and reference not in followed:
        followed |= {reference}
        parts.append(_pointed(reference, root))
    whole = {keyword: value for keyword, value in schema.items() if keyword not in ("$ref", "allOf")}
    for part in (_resolved(part, root, followed) for part in parts):
        merged = {**part, **whole}
        if "properties" in merged:
            merged["properties"] = {**part.get("properties", {}), **whole.get("properties", {})}
        if "required" in merged:
            merged["required"] = [*part.get("required", ()), *whole.get("required", ())]
        whole = merged
    return whole


def _pointed(reference: str, root: Any) -> Any:
    if reference != "#" and not reference.startswith("#/"):
        return {}
    target = root
    for part in reference.removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        target = target.get(part) if is_object(target) else None
    return target


def _wrapped(arguments: dict[str, Any], parameters: Schema, root: Schema) -> dict[str, Any]:
    properties: Schema = parameters.get("properties", {})
    if len(properties) != 1 or parameters.get("additionalProperties", True) is not False:
        return arguments
    ((name, schema),) = properties.items()
    objects = [variant for variant in _variants(schema, root) if "properties" in variant]
    fields = {field for variant in objects for field in variant["properties"]}
    if name in arguments and (name not in fields or _says_object(arguments[name])):
        return arguments
    # Nothing at all is an object too, where one is wanted of which all may be left out.
    wanted = name in parameters.get("required", ()) and any(not variant.get("required") for variant in objects)
    return {name: arguments} if fields & arguments.keys() or (wanted and not arguments) else arguments


def _says_object(value: Any) -> bool:
    return is_object(_decoded(value, frozenset({"object"})) if isinstance(value, str) else value)


def _coerce(value: Any, schema: Any, root: Schema) -> Any:
    allowed = _types(schema, root)
    if isinstance(value, str) and allowed is not None and "string" not in allowed:
        value = _decoded(value, allowed)
    if isinstance(value, float) and value.is_integer() and not _allows(allowed, "number"):
        value = int(value) if _allows(allowed, "integer") else value
    fitting = _fitting(value, schema, root)
    if len(fitting) != 1:
        return value
    if is_object(value):
        return _coerced_object(value, fitting[0], root)
    if is_array(value):
        return [_coerce(item, declared, root) for _, item, declared in _parts(value, fitting[0])]
    return value


def _coerced_object(value: dict[str, Any], schema: Schema, root: Schema) -> dict[str, Any]:
    coerced: dict[str, Any] = {}
    for name, item, declared in _parts(value, schema):
        may_be_left_out = name in schema.get("properties", {}) and name not in schema.get("required", ())
        if item is not None or not may_be_left_out or _allows(_types(declared, root), "null"):
            coerced[name] = _coerce(item, declared, root)
    return coerced


def _parts(value: Any, schema: Schema) -> list[tuple[Any, Any, Any]]:
    """The fields or items of an object or array: where each stands, what it is, and the schema declared for it."""
    if is_object(value):
        return [(name, item, _declared(name, schema)) for name, item in value.items()]
    first, rest = schema.get("prefixItems", []), schema.get("items", {})
    if is_array(rest):  # as JSON Schema was before 2020
        first, rest = rest, schema.get("additionalItems", {})
    return [(index, item, first[index] if index < len(first) else rest) for index, item in enumerate(value)]


def _declared(name: str, schema: Schema) -> Any:
    if name in schema.get("properties", {}):
        return schema["properties"][name]
    for pattern, declared in schema.get("patternProperties", {}).items():
        with suppress(re.error):  # pydantic knows patterns that Python does not
            if re.search(pattern, name):
                return declared
    return schema.get("additionalProperties", {})


def _fitting(value: Any, schema: Any, root: Schema) -> list[Schema]:
    """The members of a union that `value` may be of, by its type; an object also by what it must hold."""
    fitting = [variant for variant in _variants(schema, root) if _allows(_types(variant, root), _type_of(value))]
    if not is_object(value) or len(fitting) < 2:
        return fitting
    return [
        variant
        for variant in fitting
        if all(name in value for name in variant.get("required", ()))
        and all(_takes(item, declared, root) for _, item, declared in _parts(value, variant))
    ]


def _takes(value: Any, schema: Any, root: Schema) -> bool:
    """Whether `value` is among those that `schema` names one by one, if it does, and no number in place of a time."""
    variants = _variants(schema, root)
    refusing = [variant for variant in variants if _refuses(value, variant)]
    others = (variant for variant in variants if variant not in refusing)
    return not refusing or any(_allows(_types(variant, root), _type_of(value)) for variant in others)


def _refuses(value: Any, schema: Schema) -> bool:
    if "const" in schema or "enum" in schema:
        members = schema.get("enum", [schema.get("const")])
        # To Python, true is 1.
        return not any(value == member and isinstance(value, bool) == isinstance(member, bool) for member in members)
    # Of a number in a text, pydantic makes the seconds since 1970.
    return schema.get("format") == "date-time" and bool(re.fullmatch(r"[-+]?[0-9]+\.?[0-9]*", str(value)))


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
