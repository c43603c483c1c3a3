"""JSON Schemas: of a type, as pydantic makes them, without what no model can send; and whether a given one is valid.

Which parameters a function has is said in `schema`; whether a value fits a schema, in `validation`.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from op_jupyter.redact import known_keys, writable
from op_jupyter.tools.coerce import is_array, is_object

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema
    from referencing import Resource
    from referencing._core import Resolver

_PLAIN = (str, int, float, bool, type(None))
"""The values that JSON has a literal for."""


def json_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The JSON Schema of what `adapter` validates.

    Raises:
        Exception: when no JSON validates, or none that a JSON Schema can say; `explained` says it in words.
    """
    schema: dict[str, Any] = _without_titles(adapter.json_schema(schema_generator=_generator()))
    return schema


def explained(reason: Exception) -> str:
    """What is wrong with a type, in brackets, where pydantic says it in words for others than itself."""
    from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError

    # What these say is of pydantic's own machinery.
    if isinstance(reason, PydanticInvalidForJsonSchema | PydanticSchemaGenerationError):
        return ""
    if isinstance(reason, PydanticUserError) and reason.code == "class-not-fully-defined":
        return " (something that it refers to is not defined yet)"
    return f" ({str(reason).partition(chr(10))[0]})"


@functools.cache
def _generator() -> type[GenerateJsonSchema]:
    """What pydantic makes JSON Schemas with, but for types of which its own validation takes no JSON, or other JSON."""
    from pydantic.json_schema import GenerateJsonSchema, JsonRef, JsonSchemaValue
    from pydantic_core import core_schema

    class OfWhatCanBeSent(GenerateJsonSchema):
        def generate_inner(self, schema: Any) -> JsonSchemaValue:
            alias = schema.get("validation_alias")
            if is_array(alias) and not any(is_array(path) and len(path) == 1 for path in alias):
                raise TypeError("a field with an AliasPath stands elsewhere than the schema says")
            return super().generate_inner(schema)

        def generator_schema(self, schema: core_schema.GeneratorSchema) -> JsonSchemaValue:
            raise TypeError("an Iterable is checked only when it is read: write list")

        def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
            members = schema["members"]
            if not members or not all(isinstance(member.value, _PLAIN) for member in members):
                return self.handle_invalid_for_json_schema(schema, "an enum of other values than texts and numbers")
            return super().enum_schema(schema)

        def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
            if not all(isinstance(value, _PLAIN) for value in schema["expected"]):
                return self.handle_invalid_for_json_schema(schema, "a literal that is neither text nor number")
            return super().literal_schema(schema)

        def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
            return self.handle_invalid_for_json_schema(schema, "a class")

        def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
            keys: Any = schema.get("keys_schema", core_schema.any_schema())
            key = self.generate_inner(keys)
            if "$ref" in key:
                key = self.get_schema_from_definitions(JsonRef(key["$ref"])) or {}
            # The keys of JSON are texts, of which pydantic makes numbers, but no literals.
            of_others = keys["type"] == "literal" and not all(isinstance(value, str) for value in keys["expected"])
            if of_others or key.get("type") in ("array", "object", "null"):
                return self.handle_invalid_for_json_schema(schema, "a dict whose keys are not texts")
            return super().dict_schema(schema)

    return OfWhatCanBeSent


def _without_titles(schema: Any) -> Any:
    """The schema without the titles that pydantic makes out of names, and the values that a model is not to see."""
    if is_array(schema):
        return [_without_titles(item) for item in schema]
    if not is_object(schema):
        return schema
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            kept[keyword] = {name: _without_titles(item) for name, item in value.items()}
        elif keyword in ("default", "const", "enum", "examples"):
            if keyword not in ("default", "examples") or may_be_told(value):
                kept[keyword] = value
        elif keyword != "title":
            kept[keyword] = _without_titles(value)
    return kept


def may_be_told(value: Any) -> bool:
    """Whether JSON can say `value` (not infinity, for one), and no key is in it."""
    return _is_json(value) and writable(value, known_keys()) == value


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


# -------------------------------------------------------------------- schemas that were given


def check_json_schema(what: str, schema: dict[str, Any]) -> None:
    """Raise `ValueError` when `schema` is not a JSON Schema that stands by itself."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    if not _is_json(schema):
        raise ValueError(f"{what} is not valid JSON Schema: it holds something that is not JSON")
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
        resource = Resource.from_contents(schema, default_specification=DRAFT202012)
        _follow_references(what, resource, Registry().resolver_with_root(resource))
    except SchemaError as error:
        where = "".join(f"[{part!r}]" for part in error.absolute_path)
        raise ValueError(f"{what}{where} is not valid JSON Schema: {error.message}") from None


def _follow_references(what: str, resource: Resource[Any], resolver: Resolver[Any]) -> None:
    from referencing.exceptions import Unresolvable

    if is_object(resource.contents) and isinstance(reference := resource.contents.get("$ref"), str):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise ValueError(f"{what} refers to {reference!r}, which is not in it") from None
    for part in resource.subresources():
        _follow_references(what, part, resolver.in_subresource(part))
