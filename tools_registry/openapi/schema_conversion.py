"""Makes JSON Schema 2020-12 of the schemas of an OpenAPI document; each component is converted once.

What an operation refers to is collected as its `$defs`. Hostile documents cost bounded work: every value that is
converted or collected counts. Sources: OpenAPI 3.0.4, "Schema Object"; OpenAPI 3.1.1, "Schema Object".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ..models import Json
from ..names import identifier
from .document import Document, UnusablePart, mapping

STEPS_MAX: Final = 2_000_000
"""Steps of reading one document: each schema, and each reference that an operation collects."""
DEPTH_MAX: Final = 60

_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_ONE_SCHEMA = frozenset(
    {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems",
     "unevaluatedProperties"}
)  # fmt: skip
_NAMED_SCHEMAS = frozenset({"dependentSchemas", "patternProperties", "properties"})
_KEPT = frozenset(
    {"const", "contentEncoding", "contentMediaType", "default", "dependentRequired", "deprecated", "description",
     "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems", "maxLength",
     "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf",
     "pattern", "required", "title", "type", "uniqueItems"}
)  # fmt: skip
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_COMPONENT = "#/components/schemas/"


class Direction(StrEnum):
    """Which way the values of a schema go: what is `readOnly` is not sent, what is `writeOnly` does not come."""

    REQUEST = "readOnly"
    RESPONSE = "writeOnly"


TOGETHER_MAX: Final[Mapping[Direction, int]] = {Direction.REQUEST: 300_000, Direction.RESPONSE: 150_000}
"""Values in the schemas of all operations together: a list of tools has its bound."""


@dataclass(slots=True)
class _Converted:
    """A schema with what it refers to, and how many values it has."""

    schema: Json
    references: set[str] = field(default_factory=set)
    values: int = 0


class SchemaConverter:
    """Converts the schemas of one document. Takes CPU time: use it in a thread; `check` is called at each step."""

    def __init__(self, document: Document, check: Callable[[], None]) -> None:
        self._document = document
        self._check = check
        self._components: dict[tuple[Direction, str], _Converted] = {}
        self._names: dict[str, str] = {}
        self._steps = 0
        self._left = dict(TOGETHER_MAX)

    def collecting(self, direction: Direction, values_max: int) -> Collection:
        """Begin to collect the schemas of one operation that go in a direction."""
        return Collection(self, direction, values_max)

    def converted(self, schema: Json, direction: Direction) -> _Converted:
        """Convert one schema. Raises `UnusablePart`."""
        made = _Converted(None)
        made.schema = self._schema(schema, direction, made, 0)
        return made

    def component(self, reference: str, direction: Direction) -> _Converted:
        """Convert what a reference leads to, once. Raises `UnusablePart`."""
        known = self._components.get((direction, reference))
        if known is None:
            known = self.converted(self._document.at(reference), direction)
            self._components[direction, reference] = known
        self.step(1 + len(known.references))
        return known

    def name_of(self, reference: str) -> str:
        """Return the name that a reference has in `$defs`. Raises `UnusablePart` where another has it."""
        name = reference.removeprefix(_COMPONENT)
        if not _PLAIN_NAME.fullmatch(name):
            name = identifier(reference.removeprefix("#/"))
        if self._names.setdefault(name, reference) != reference:
            raise UnusablePart(f"two of its schemas would have the name {name[:40]!r}")
        return name

    def spend(self, values: int, direction: Direction) -> None:
        """Count values of a tool. Raises `UnusablePart` above the bound of all tools together."""
        self._left[direction] -= values
        if self._left[direction] < 0:
            self._left[direction] += values
            raise UnusablePart("the schemas of all operations together are too large")

    def step(self, count: int = 1) -> None:
        """Count steps. Raises `UnusablePart` above the bound."""
        self._check()
        self._steps += count
        if self._steps > STEPS_MAX:
            raise UnusablePart(f"the document takes more than {STEPS_MAX:,} steps to read")

    def _schema(self, schema: Json, direction: Direction, made: _Converted, depth: int) -> Json:
        self.step()
        made.values += 1
        if depth > DEPTH_MAX:
            raise UnusablePart(f"a schema in it is nested deeper than {DEPTH_MAX} levels")
        if isinstance(schema, bool) or not isinstance(schema, Mapping):
            return schema if isinstance(schema, bool) else {}
        below = depth + 1
        result: dict[str, Json] = {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            self._document.at(reference)
            made.references.add(reference)
            result["$ref"] = f"#/$defs/{self.name_of(reference)}"
            if self._document.is_3_0:
                return result
        left_out = _flagged(schema, direction)
        for key, value in schema.items():
            if key in _SCHEMAS and isinstance(value, list):
                result[key] = [self._schema(each, direction, made, below) for each in value]
            elif key in _ONE_SCHEMA and isinstance(value, Mapping | bool):
                result[key] = self._schema(value, direction, made, below)
            elif key in _NAMED_SCHEMAS and isinstance(value, Mapping):
                result[key] = {
                    str(name): self._schema(each, direction, made, below)
                    for name, each in value.items()
                    if not (key == "properties" and name in left_out)
                }
            elif key in _KEPT:
                result[key] = value
                made.values += len(value) if isinstance(value, list | Mapping) else 1
        required = result.get("required")
        if isinstance(required, list):
            result["required"] = [each for each in required if each not in left_out]
        return _as_2020_12(result, schema) if self._document.is_3_0 else result


class Collection:
    """The schemas of one operation in one direction, and all that they refer to."""

    def __init__(self, converter: SchemaConverter, direction: Direction, values_max: int) -> None:
        self._converter = converter
        self._direction = direction
        self._values_max = values_max
        self._values = 0
        self._seen: set[str] = set()
        self._waiting: list[str] = []

    def add(self, schema: Json) -> Json:
        """Return a schema converted, and remember what it refers to. Raises `UnusablePart`."""
        return self._taken(self._converter.converted(schema, self._direction))

    def definitions(self) -> dict[str, Json]:
        """Return `$defs` with what was referred to, as a part of a schema; nothing where nothing was.

        Called once, when all schemas were added. Raises `UnusablePart`.
        """
        definitions: dict[str, Json] = {}
        while self._waiting:
            reference = self._waiting.pop()
            made = self._converter.component(reference, self._direction)
            definitions[self._converter.name_of(reference)] = self._taken(made)
        self._converter.spend(self._values, self._direction)
        return {"$defs": dict(sorted(definitions.items()))} if definitions else {}

    def _taken(self, made: _Converted) -> Json:
        self._values += made.values
        if self._values > self._values_max:
            raise UnusablePart("its schemas are too large")
        self._waiting += sorted(made.references - self._seen)
        self._seen |= made.references
        return made.schema


def _flagged(schema: Mapping[str, Json], direction: Direction) -> frozenset[str]:
    """Return the properties that do not go in a direction."""
    properties = mapping(schema.get("properties"))
    return frozenset(name for name, each in properties.items() if mapping(each).get(direction.value) is True)


def _as_2020_12(made: dict[str, Json], schema: Mapping[str, Json]) -> Json:
    """Return a schema of OpenAPI 3.0 as JSON Schema: there `nullable` and exclusive bounds are flags."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(exclusive), bool) and made.pop(exclusive) is True and bound in made:
            made[exclusive] = made.pop(bound)
    if schema.get("nullable") is not True:
        return made
    if not isinstance(made.get("type"), str):
        return {"anyOf": [made, {"type": "null"}]}
    made["type"] = [made["type"], "null"]
    values = made.get("enum")
    if isinstance(values, list) and None not in values:
        made["enum"] = [*values, None]
    return made
