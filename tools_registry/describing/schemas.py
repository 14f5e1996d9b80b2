"""Reads JSON Schema, of any draft and however odd, into shapes and parameters. Hostile schemas cost bounded work.

Every schema that is visited counts against one bound, and so does each item of a list and of a mapping that is gone
through: links, steps of a path, properties, values of an enumeration. What lies beyond is read as `object`.

Sources: JSON Schema 2020-12 Core and Validation; OpenAPI 3.0's `nullable`; what real servers publish.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, cast
from urllib.parse import unquote

from typing_extensions import TypeIs, override

from ..judged_schema import refers_inside
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
    ObjectShape,
    RecordField,
    Shape,
    choice,
    of_scalar,
    union,
)

STEPS_MAX: Final = 10_000
"""Steps of reading one parameter or one output."""
STEPS_TOGETHER_MAX: Final = 100_000
"""Steps of reading all parameters of a tool."""

_DEPTH_MAX = 12
_ENUM_MAX = 200
_TEXT_CHARS_MAX = 1_000
"""A longer text is not a literal, and an object with a longer key is read as one of any keys."""
_READ_KEPT = 8
"""How many tools are not read again: one call reads its tool several times."""
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
    return ANY if schema is None else SchemaReader(schema).shape_apart(schema, 0)


def parameters_of(tool: Tool) -> tuple[Parameter, ...]:
    """Return a tool's parameters, the required ones first, else in the schema's order.

    A root that offers alternatives (`anyOf`, `oneOf`) gives the parameters of them all; required are those that every
    alternative requires. A root that allows no object, or names no properties, has no parameters.
    """
    return _parameters_in(_Same(tool.input_schema))


def parameter_texts(tool: Tool, most: int, steps_max: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """Return name and description of the first `most` parameters, in the schema's order, and the steps that it took."""
    reader = SchemaReader(tool.input_schema, steps_max)
    properties = reader.arguments(tool.input_schema, 0).properties.items()
    named = itertools.islice(((name, schema) for name, schema in properties if schema is not False), most)
    return tuple((name, _description(reader.resolved(schema))) for name, schema in named), reader.steps


@dataclass(frozen=True, slots=True)
class _Same:
    """A schema that compares by what it is, not by what it holds."""

    schema: Schema

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.schema is other.schema

    @override
    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(_READ_KEPT)
def _parameters_in(same: _Same) -> tuple[Parameter, ...]:
    reader = SchemaReader(same.schema)
    root = reader.arguments(same.schema, 0)
    alias_of = inverted(aliases(root.properties))
    found: list[Parameter] = []
    for name, schema in root.properties.items():
        if schema is not False:
            shape, resolved = reader.shape_apart(schema, 1), reader.resolved(schema)
            required = name in root.required
            found.append(Parameter(name, alias_of[name], shape, required, resolved, _description(resolved)))
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
    """Reads one schema, with its definitions; `steps` counts what it goes through, and none goes beyond the bound."""

    def __init__(self, root: Schema, steps_max: int = STEPS_TOGETHER_MAX) -> None:
        self.steps = 0
        self._root = root
        self._steps_max = steps_max
        self._open: list[str] = []
        self._anchors: dict[str, Schema] | None = None

    def shape_apart(self, schema: object, depth: int) -> Shape:
        """Return the shape of one schema among several, each of which has its own bound."""
        together, self._steps_max = self._steps_max, min(self._steps_max, self.steps + STEPS_MAX)
        found = self.shape(schema, depth)
        self._steps_max = together
        return found

    def shape(self, schema: object, depth: int) -> Shape:
        """Return the shape of a schema that lies `depth` levels below the root."""
        if not isinstance(schema, Mapping):
            return NEVER if schema is False else ANY
        if not schema or depth > _DEPTH_MAX or not self._takes(1):
            return ANY
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._referred(reference, schema, depth)
        found = self._own(schema, depth)
        for keyword in ("anyOf", "oneOf"):
            found = self._both(found, self._alternatives(schema.get(keyword), depth))
        for part in self._items(schema.get("allOf")):
            found = self._both(found, self.shape(part, depth + 1))
        if schema.get("nullable") is True:
            found = union([found, NONE])
        return found

    def resolved(self, schema: Schema) -> Schema:
        """Return a schema with the keys of what it refers to beside its own; an empty one beyond the bound."""
        seen: set[str] = set()
        layers: list[Mapping[str, Json]] = []
        target: Schema | None = schema
        while isinstance(target, Mapping) and self._takes_whole(target):
            layers.append(target)
            reference = target.get("$ref")
            if not isinstance(reference, str) or reference in seen:
                break
            seen.add(reference)
            target = self._target(reference)
        if not seen and (layers or not isinstance(schema, Mapping)):
            return schema
        found: dict[str, Json] = {}
        for layer in reversed(layers):
            found.update((key, value) for key, value in layer.items() if key != "$ref" or not isinstance(value, str))
        return found

    def arguments(self, schema: object, depth: int) -> _Arguments:
        """Collect the properties of an object's schema and of all it is made of."""
        found = _Arguments()
        if not isinstance(schema, Mapping) or depth > _DEPTH_MAX or not self._takes(1):
            return found
        schema = cast("Mapping[str, Json]", self.resolved(cast("Schema", schema)))
        layers = [cast("Mapping[str, Schema]", self._members(schema.get("properties")))]
        found.required.update(each for each in self._items(schema.get("required")) if isinstance(each, str))
        for part in self._items(schema.get("allOf")):
            more = self.arguments(part, depth + 1)
            layers.append(more.properties)
            found.required |= more.required
        for keyword in ("anyOf", "oneOf"):
            branches = [self.arguments(part, depth + 1) for part in self._items(schema.get(keyword))]
            layers += [branch.properties for branch in branches]
            if branches:
                found.required |= set.intersection(*(branch.required for branch in branches))
        for layer in reversed(layers):
            found.properties.update(layer)
        found.required &= found.properties.keys()
        return found

    def _takes(self, count: int) -> bool:
        """Return whether there is room for so many steps, and count them where there is."""
        if self.steps + count > self._steps_max:
            return False
        self.steps += count
        return True

    def _takes_whole(self, schema: Mapping[str, Json]) -> bool:
        """Take a schema with the lists and mappings that it holds, for callers that go through them."""
        return self._takes(1 + len(schema)) and self._takes(
            sum(len(each) for each in schema.values() if isinstance(each, list | Mapping))
        )

    def _items(self, value: object) -> list[object]:
        """Return a list that is to be gone through; an empty one for anything else, and for one beyond the bound."""
        return value if isinstance(value, list) and self._takes(len(value)) else []

    def _members(self, value: object) -> Mapping[str, Json]:
        """Return a mapping that is to be gone through; an empty one for anything else, and for one beyond the bound."""
        return value if isinstance(value, Mapping) and self._takes(len(value)) else {}

    def _own(self, schema: Mapping[str, Json], depth: int) -> Shape:
        """Read what a schema says by itself, apart from what it is combined with."""
        if "const" in schema:
            return self._of_values([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return self._of_values(self._items(schema["enum"])) if schema["enum"] else NEVER
        kinds = schema.get("type")
        if kinds is None:
            if any(key in schema for key in _RECORD_KEYS[:3]):
                kinds = "object"
            elif any(key in schema for key in _LIST_KEYS):
                kinds = "array"
            else:
                return ANY
        return union(self._of_type(kind, schema, depth) for kind in (self._items(kinds) or [kinds]))

    def _of_type(self, kind: object, schema: Mapping[str, Json], depth: int) -> Shape:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        return _PLAIN.get(kind, ANY) if isinstance(kind, str) else ANY

    def _object(self, schema: Mapping[str, Json], depth: int) -> Shape:
        properties = self._members(schema.get("properties"))
        if _has_long(properties):
            return MapOf(ANY)
        if properties:
            required = {each for each in self._items(schema.get("required")) if isinstance(each, str)}
            return ObjectShape(
                tuple(
                    RecordField(str(name), self.shape(each, depth + 1), name in required)
                    for name, each in properties.items()
                )
            )
        values = [each for each in [schema.get("additionalProperties")] if isinstance(each, Mapping)]
        patterns = self._members(schema.get("patternProperties"))
        values.extend(each for each in patterns.values() if isinstance(each, Mapping))
        return MapOf(union(self.shape(each, depth + 1) for each in values) if values else ANY)

    def _array(self, schema: Mapping[str, Json], depth: int) -> Shape:
        items = schema.get("items")
        first = schema.get("prefixItems", items if isinstance(items, list) else None)
        shapes = [self.shape(each, depth + 1) for each in self._items(first)]
        if isinstance(items, Mapping):
            shapes.append(self.shape(items, depth + 1))
        return ListOf(union(shapes) if shapes else ANY)

    def _alternatives(self, branches: object, depth: int) -> Shape:
        # A branch that only requires or forbids says nothing about the shape.
        telling = [
            each
            for each in self._items(branches)
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
        rest = {key: value for key, value in self._members(schema).items() if key != "$ref"}
        return self._both(found, self.shape(rest, depth + 1)) if rest else found

    def _target(self, reference: str) -> Schema | None:
        """Follow a short reference within the document (RFC 6901); any other is not followed."""
        if not refers_inside(reference):
            return None
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchored(pointer)
        found: object = self._root
        steps = pointer.split("/")[1:]
        if not self._takes(len(steps)):
            return None
        for step in steps:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found if isinstance(found, Mapping | bool) else None

    def _anchored(self, anchor: str) -> Schema | None:
        if self._anchors is None and isinstance(self._root, Mapping):
            self._anchors = {}
            for place in ("$defs", "definitions"):
                for each in self._members(self._root.get(place)).values():
                    names = (each.get("$anchor"), each.get("$dynamicAnchor")) if isinstance(each, Mapping) else ()
                    for name in names:
                        if isinstance(name, str):
                            self._anchors.setdefault(name, cast("Schema", each))
        return (self._anchors or {}).get(anchor)

    def _both(self, first: Shape, second: Shape) -> Shape:
        """Return a shape for values that have both; where types cannot say that, the one that says more."""
        if first in (ANY, second):
            return second
        if second == ANY:
            return first
        if isinstance(first, ObjectShape) and isinstance(second, ObjectShape):
            if not self._takes(len(first.fields)):
                return first
            fields = {each.name: each for each in first.fields}
            for each in second.fields:
                known = fields.get(each.name)
                fields[each.name] = (
                    each
                    if known is None
                    else RecordField(each.name, self._both(known.shape, each.shape), known.required or each.required)
                )
            return ObjectShape(tuple(fields.values()))
        if isinstance(first, MapOf) and isinstance(second, ObjectShape):
            return second
        if isinstance(second, Choice):
            return second
        return first

    def _of_values(self, values: Iterable[object]) -> Shape:
        """Return the shape of given values; those that no literal can be count by their types."""
        shapes: list[Shape] = []
        for number, value in enumerate(values):
            if number < _ENUM_MAX and _is_literal(value):
                shapes.append(choice([value]))
            elif isinstance(value, dict | list) and not self._takes(len(value)):
                return ANY
            else:
                shapes.append(of_value(value, depth=1))
        return union(shapes) if shapes else ANY


def _has_long(names: Iterable[object]) -> bool:
    return any(len(str(name)) > _TEXT_CHARS_MAX for name in names)


def _is_literal(value: object) -> TypeIs[str | bool | int]:
    return isinstance(value, bool | int) or (isinstance(value, str) and len(value) <= _TEXT_CHARS_MAX)


def of_value(value: object, depth: int) -> Shape:
    """Return the shape of one JSON value, `depth` levels deep; what lies deeper is not looked at."""
    match value:
        case Mapping():
            if depth <= 0 or not value or _has_long(value):
                return MapOf(ANY)
            return ObjectShape(
                tuple(RecordField(str(key), of_value(each, depth - 1), True) for key, each in value.items())
            )
        case list() | tuple():
            return ListOf(union(of_value(each, depth - 1) for each in value) if depth > 0 and value else ANY)
        case _:
            return of_scalar(value)


def _description(resolved: Schema) -> str:
    text = resolved.get("description") if isinstance(resolved, Mapping) else None
    return text if isinstance(text, str) else ""
