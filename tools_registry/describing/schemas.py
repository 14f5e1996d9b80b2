"""Reads JSON Schema, of any draft and however odd, into shapes and parameters. Hostile schemas cost bounded work.

Sources: JSON Schema 2020-12 Core and Validation; OpenAPI 3.0's `nullable`; what real servers publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import unquote

from ..models import Json, Schema, Tool
from ..names import aliases, inverted
from .shapes import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    Choice,
    ListOf,
    MapOf,
    Record,
    RecordField,
    Shape,
    choice,
    of_scalar,
    union,
)

_DEPTH_MAX = 12
_NODES_MAX = 4_000
"""What one parameter or one output may cost; what lies beyond is read as `object`."""
_NODES_TOGETHER_MAX = 40_000
_ENUM_MAX = 200
_PLAIN: Mapping[str, Shape] = {
    "string": STR,
    "integer": INT,
    "number": FLOAT,
    "boolean": BOOL,
    "null": NONE,
}
_RECORD_KEYS = ("properties", "additionalProperties", "patternProperties", "required")
_LIST_KEYS = ("items", "prefixItems")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool. `name` is the schema's own, `alias` the one Python can write."""

    name: str
    alias: str
    shape: Shape
    required: bool
    schema: Schema
    description: str = ""

    @property
    def default(self) -> Json:
        """The default that the schema names; None where it names none, see `has_default`."""
        return self.schema.get("default") if isinstance(self.schema, Mapping) else None

    @property
    def has_default(self) -> bool:
        """Whether the schema names a default."""
        return isinstance(self.schema, Mapping) and "default" in self.schema


def shape_of(schema: Schema | None) -> Shape:
    """Return the shape of the values that a schema allows; wider where Python's types cannot say it."""
    return ANY if schema is None else SchemaReader(schema).shape(schema, 0)


def parameters_of(tool: Tool) -> tuple[Parameter, ...]:
    """Return a tool's parameters, the required ones first, else in the schema's order.

    A root that offers alternatives (`anyOf`, `oneOf`) gives the parameters of them all; required are those that every
    alternative requires. A root that allows no object, or names no properties, has no parameters.
    """
    reader = SchemaReader(tool.input_schema)
    root = reader.arguments(tool.input_schema, 0)
    alias_of = inverted(aliases(root.properties))
    found = [
        Parameter(
            name=name,
            alias=alias_of[name],
            shape=reader.shape_apart(schema),
            required=name in root.required,
            schema=reader.resolved(schema),
            description=_description(schema, reader),
        )
        for name, schema in root.properties.items()
        if schema is not False
    ]
    return tuple(sorted(found, key=lambda parameter: not parameter.required))


def takes_other_arguments(tool: Tool) -> bool:
    """Whether the tool is known by no parameter, yet takes some: its schema names none and forbids none."""
    schema = tool.input_schema
    if not isinstance(schema, Mapping):
        return schema
    return bool(schema.get("additionalProperties")) and not parameters_of(tool)


@dataclass(slots=True)
class _Arguments:
    """The properties at the root of an input schema, and which must be there."""

    properties: dict[str, Schema] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)


class SchemaReader:
    """Reads one schema, with its definitions; counts what it visits, so that no schema costs more than the bound."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._nodes = 0
        self._nodes_before = 0
        self._open: list[str] = []

    def shape_apart(self, schema: object) -> Shape:
        """Return the shape of one schema among several, each of which has its own bound."""
        self._nodes_before += self._nodes
        self._nodes = 0
        return self.shape(schema, 1)

    def shape(self, schema: object, depth: int) -> Shape:
        """Return the shape of a schema that lies `depth` levels below the root."""
        if not isinstance(schema, Mapping):
            return NEVER if schema is False else ANY
        if not schema or self._spent(depth):
            return ANY
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._referred(reference, schema, depth)
        found = self._own(schema, depth)
        for keyword in ("anyOf", "oneOf"):
            found = _both(found, self._alternatives(schema.get(keyword), depth))
        for part in _list(schema.get("allOf")):
            found = _both(found, self.shape(part, depth + 1))
        if schema.get("nullable") is True:
            found = union([found, NONE])
        return found

    def resolved(self, schema: Schema) -> Schema:
        """Return a schema with the keys of what it refers to beside its own."""
        seen: set[str] = set()
        while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
            reference = cast("str", schema["$ref"])
            target = None if reference in seen else self._target(reference)
            seen.add(reference)
            rest: Mapping[str, Json] = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**target, **rest} if isinstance(target, Mapping) else rest
        return schema

    def arguments(self, schema: object, depth: int) -> _Arguments:
        """Collect the properties of an object's schema and of all it is made of."""
        found = _Arguments()
        if not isinstance(schema, Mapping) or self._spent(depth):
            return found
        schema = cast("Mapping[str, Json]", self.resolved(cast("Schema", schema)))
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            found.properties.update(cast("Mapping[str, Schema]", properties))
        found.required.update(each for each in _list(schema.get("required")) if isinstance(each, str))
        for part in _list(schema.get("allOf")):
            more = self.arguments(part, depth + 1)
            found.properties = {**more.properties, **found.properties}
            found.required |= more.required
        for keyword in ("anyOf", "oneOf"):
            branches = [self.arguments(part, depth + 1) for part in _list(schema.get(keyword))]
            for branch in branches:
                found.properties = {**branch.properties, **found.properties}
            if branches:
                found.required |= set.intersection(*(branch.required for branch in branches))
        found.required &= found.properties.keys()
        return found

    def _spent(self, depth: int) -> bool:
        self._nodes += 1
        return depth > _DEPTH_MAX or self._nodes > _NODES_MAX or self._nodes_before > _NODES_TOGETHER_MAX

    def _own(self, schema: Mapping[str, Json], depth: int) -> Shape:
        """Read what a schema says by itself, apart from what it is combined with."""
        if "const" in schema:
            return _of_values([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _of_values(_list(schema["enum"]))
        kinds = schema.get("type")
        if kinds is None:
            if any(key in schema for key in _RECORD_KEYS[:3]):
                kinds = "object"
            elif any(key in schema for key in _LIST_KEYS):
                kinds = "array"
            else:
                return ANY
        return union(self._of_type(kind, schema, depth) for kind in (_list(kinds) or [kinds]))

    def _of_type(self, kind: object, schema: Mapping[str, Json], depth: int) -> Shape:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        return _PLAIN.get(kind, ANY) if isinstance(kind, str) else ANY

    def _object(self, schema: Mapping[str, Json], depth: int) -> Shape:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            required = {each for each in _list(schema.get("required")) if isinstance(each, str)}
            return Record(
                tuple(
                    RecordField(str(name), self.shape(each, depth + 1), name in required)
                    for name, each in properties.items()
                )
            )
        values = [each for each in [schema.get("additionalProperties")] if isinstance(each, Mapping)]
        patterns = schema.get("patternProperties")
        if isinstance(patterns, Mapping):
            values.extend(each for each in patterns.values() if isinstance(each, Mapping))
        return MapOf(union(self.shape(each, depth + 1) for each in values) if values else ANY)

    def _array(self, schema: Mapping[str, Json], depth: int) -> Shape:
        items = schema.get("items")
        first = schema.get("prefixItems", items if isinstance(items, list) else None)
        shapes = [self.shape(each, depth + 1) for each in _list(first)]
        if isinstance(items, Mapping):
            shapes.append(self.shape(items, depth + 1))
        return ListOf(union(shapes) if shapes else ANY)

    def _alternatives(self, branches: object, depth: int) -> Shape:
        # A branch that only requires or forbids says nothing about the shape.
        telling = [
            each
            for each in _list(branches)
            if not (isinstance(each, Mapping) and each.keys() <= {"required", "not", "title", "description"})
        ]
        return union(self.shape(each, depth + 1) for each in telling) if telling else ANY

    def _referred(self, reference: str, schema: Mapping[str, Json], depth: int) -> Shape:
        if reference in self._open:
            return ANY
        target = self._target(reference)
        if target is None:
            return ANY
        self._open.append(reference)
        try:
            found = self.shape(target, depth + 1)
        finally:
            self._open.pop()
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _both(found, self.shape(rest, depth + 1)) if rest else found

    def _target(self, reference: str) -> Schema | None:
        """Follow a reference within the document (RFC 6901); one to elsewhere is not followed."""
        if not reference.startswith("#"):
            return None
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchored(pointer)
        found: object = self._root
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found if isinstance(found, Mapping | bool) else None

    def _anchored(self, anchor: str) -> Schema | None:
        for keyword in ("$defs", "definitions"):
            group = self._root.get(keyword) if isinstance(self._root, Mapping) else None
            for each in group.values() if isinstance(group, Mapping) else ():
                if isinstance(each, Mapping) and anchor in {each.get("$anchor"), each.get("$dynamicAnchor")}:
                    return each
        return None


def _both(first: Shape, second: Shape) -> Shape:
    """Return a shape for values that have both; where types cannot say that, the one that says more."""
    if first in (ANY, second):
        return second
    if second == ANY:
        return first
    if isinstance(first, Record) and isinstance(second, Record):
        fields = {each.name: each for each in first.fields}
        for each in second.fields:
            known = fields.get(each.name)
            fields[each.name] = (
                each
                if known is None
                else RecordField(each.name, _both(known.shape, each.shape), known.required or each.required)
            )
        return Record(tuple(fields.values()))
    if isinstance(first, MapOf) and isinstance(second, Record):
        return second
    if isinstance(second, Choice):
        return second
    return first


def _of_values(values: Iterable[object]) -> Shape:
    """Return the shape of given values; those that no literal can be count by their types."""
    shapes: list[Shape] = []
    for number, value in enumerate(values):
        if isinstance(value, str | bool | int) and number < _ENUM_MAX:
            shapes.append(choice([value]))
        else:
            shapes.append(of_value(value, depth=1))
    return union(shapes)


def of_value(value: object, depth: int) -> Shape:
    """Return the shape of one JSON value, `depth` levels deep; what lies deeper is not looked at."""
    match value:
        case Mapping():
            if depth <= 0 or not value:
                return MapOf(ANY)
            return Record(tuple(RecordField(str(key), of_value(each, depth - 1), True) for key, each in value.items()))
        case list() | tuple():
            return ListOf(union(of_value(each, depth - 1) for each in value) if depth > 0 and value else ANY)
        case _:
            return of_scalar(value)


def _description(schema: Schema, reader: SchemaReader) -> str:
    resolved = reader.resolved(schema)
    text = resolved.get("description") if isinstance(resolved, Mapping) else None
    return text if isinstance(text, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
