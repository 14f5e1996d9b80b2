"""Makes what stands for the answer of a call that was not made: of the shape that the tool's answers have.

Texts say that they are none (`DRY_RUN`), unless their format or a choice of values forbids it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ..models import Json, Schema, Tool
from ..short_values import is_small
from ..upstream.results import unwrapped_schema
from .examples import OF_FORMAT, joined, number_within
from .schemas import SchemaReader
from .shapes import AnyOf, Choice, ListOf, MapOf, ObjectShape, Plain, Shape
from .signatures import LearnedShape, unpublished

DRY_RUN: Final = "dry run"
_NODES_MAX: Final = 400
_DEPTH_MAX: Final = 8
_ITEMS_MAX: Final = 5
_COPIES_MAX: Final = 100
"""How often one value stands in lists of lists."""
_OF_TYPE: Mapping[str, Json] = {"str": DRY_RUN, "int": 1, "float": 1.0, "bool": False}


def placeholder(tool: Tool, arguments: Mapping[str, Json], learned: LearnedShape | None = None) -> Json:
    """Return what stands for the answer of a call, by the output schema, else as learned.

    An object also has `dry_run`. Where neither is known it is `{dry_run, tool, arguments}`.
    """
    learned = unpublished(tool, learned)
    if learned is not None:
        made = _of_shape(learned.shape)
    elif isinstance(tool.output_schema, Mapping):
        made = _PlaceholderMaker(SchemaReader(tool.output_schema)).value(
            cast("Schema", unwrapped_schema(tool.output_schema)), 0
        )
    else:
        made = None
    if made is None:
        return {"dry_run": True, "tool": tool.full_name, "arguments": dict(arguments)}
    return {"dry_run": True, **made} if isinstance(made, Mapping) else made


def _of_shape(shape: Shape) -> Json:
    match shape:
        case Plain(name):
            return _OF_TYPE.get(name)
        case Choice(values):
            return values[0][1]
        case ListOf(item):
            return [_of_shape(item)]
        case MapOf():
            return {}
        case ObjectShape(fields):
            return {each.name: _of_shape(each.shape) for each in fields}
        case AnyOf(shapes):
            return _of_shape(shapes[0])


class _PlaceholderMaker:
    """Makes values for the parts of one schema; what is beyond a bound is null."""

    def __init__(self, reader: SchemaReader) -> None:
        self._reader = reader
        self._nodes = 0
        self._copies = 1

    def value(self, schema: Schema, depth: int) -> Json:
        self._nodes += 1
        resolved = self._reader.resolved(schema)
        if not isinstance(resolved, Mapping) or depth > _DEPTH_MAX or self._nodes > _NODES_MAX:
            return None
        if "const" in resolved:
            return _if_small(resolved["const"])
        offered = resolved.get("enum")
        if isinstance(offered, list) and offered:
            return _if_small(cast("Json", offered[0]))
        for keyword in ("allOf", "anyOf", "oneOf"):
            parts = resolved.get(keyword)
            if isinstance(parts, list) and parts:
                return self._of_parts(keyword, parts, resolved, depth)
        return self._of_type(resolved, depth)

    def _of_parts(self, keyword: str, parts: list[Schema], whole: Mapping[str, Json], depth: int) -> Json:
        own = {key: each for key, each in whole.items() if key != keyword}
        known = [part for each in parts if isinstance(part := self._reader.resolved(each), Mapping)]
        if keyword != "allOf":
            known = [part for part in known if part.get("type") != "null"][:1]
        for part in known:
            own = {**own, **joined(own, part)}
        return self.value(own, depth + 1) if known else None

    def _of_type(self, schema: Mapping[str, Json], depth: int) -> Json:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), "null")
        if kind == "object" or (kind is None and "properties" in schema):
            properties = self._reader.arguments(schema, 0).properties
            return {name: self.value(each, depth + 1) for name, each in properties.items()}
        if kind == "array" or (kind is None and ("items" in schema or "prefixItems" in schema)):
            return self._array(schema, depth)
        if kind in {"integer", "number"}:
            return number_within(schema, whole=kind == "integer")
        if kind == "string":
            form = schema.get("format")
            return OF_FORMAT.get(form, DRY_RUN) if isinstance(form, str) else DRY_RUN
        return False if kind == "boolean" else None

    def _array(self, schema: Mapping[str, Json], depth: int) -> Json:
        first = schema.get("prefixItems")
        if isinstance(first, list) and first:
            return [self.value(each, depth + 1) for each in first[:_ITEMS_MAX]]
        items, least = schema.get("items"), schema.get("minItems")
        count = min(least, _ITEMS_MAX) if isinstance(least, int) and least > 1 else 1
        if self._copies * count > _COPIES_MAX:
            count = 1
        self._copies *= count
        made = [self.value(items, depth + 1)] * count if isinstance(items, Mapping) else []
        self._copies //= count
        return made


def _if_small(value: Json) -> Json:
    return value if is_small(value) else None
