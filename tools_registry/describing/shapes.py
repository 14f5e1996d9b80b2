"""The shape of a JSON value as Python types see it: what schemas are read into, and answers learned as.

A shape is a small immutable tree. `union` and `merged` are commutative, associative and idempotent, but for the order
of literals and keys, which is that in which they were first seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, Union

Literal: TypeAlias = Union[str, int, bool, None]  # noqa: UP007 - beside the recursive aliases below


@dataclass(frozen=True, slots=True)
class Plain:
    """`str`, `int`, `float`, `bool`, `None`, `object` (an unknown value) or `Never` (no value at all)."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few values; `type` goes with each since `1 == True`."""

    values: tuple[tuple[str, Literal], ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object whose keys are data."""

    value: Shape


@dataclass(frozen=True, slots=True)
class RecordField:
    """One key of a record."""

    name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """An object with known keys; it may have others."""

    fields: tuple[RecordField, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A value of one of several shapes; made by `union` alone."""

    shapes: tuple[Shape, ...]


Shape: TypeAlias = Plain | Choice | ListOf | MapOf | ObjectShape | AnyOf

ANY = Plain("object")
NEVER = Plain("Never")
NONE = Plain("None")
STR, INT, FLOAT, BOOL = Plain("str"), Plain("int"), Plain("float"), Plain("bool")


def of_scalar(value: object) -> Shape:
    """Return the shape of a JSON value that holds no others; what is none is `ANY`."""
    match value:
        case None:
            return NONE
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
        case str():
            return STR
        case _:
            return ANY


_ORDER = {name: number for number, name in enumerate(("str", "int", "float", "bool"))}


def choice(values: Iterable[Literal]) -> Shape:
    """Return the shape of a value that is one of these."""
    kept = tuple(dict.fromkeys((type(value).__name__, value) for value in values))
    return Choice(kept) if kept else NEVER


def union(shapes: Iterable[Shape]) -> Shape:
    """Return the shape of a value that has one of these: alternatives once each, None last, records apart."""
    flat: list[Shape] = []
    for shape in shapes:
        flat.extend(shape.shapes if isinstance(shape, AnyOf) else [shape])
    distinct = [shape for shape in dict.fromkeys(flat) if shape != NEVER]
    if ANY in distinct:
        return ANY
    values = [pair for shape in distinct if isinstance(shape, Choice) for pair in shape.values]
    nullable = NONE in distinct or ("NoneType", None) in values
    plain = {shape.name for shape in distinct if isinstance(shape, Plain)}
    # A literal says nothing beside its whole type, and an int is a float to Python's types.
    kept = [pair for pair in dict.fromkeys(values) if pair[0] not in plain | {"NoneType"}]
    rest: list[Shape] = [
        shape
        for shape in distinct
        if not isinstance(shape, Choice) and shape != NONE and not (shape == INT and "float" in plain)
    ]
    if kept:
        rest.append(Choice(tuple(kept)))
    if len(rest) > 1:
        rest.sort(key=_rank)
    if nullable:
        rest.append(NONE)
    if not rest:
        return NEVER
    return rest[0] if len(rest) == 1 else AnyOf(tuple(rest))


def without_none(shape: Shape) -> tuple[Shape, bool]:
    """Return the shape without its None, and whether it had one."""
    if shape == NONE:
        return NEVER, True
    if isinstance(shape, AnyOf) and NONE in shape.shapes:
        return union(each for each in shape.shapes if each != NONE), True
    return shape, False


def merged(first: Shape, second: Shape) -> Shape:
    """Return one shape that fits what either fits, with records and lists melted into one: for learning from answers.

    Keys that only one of two records has become optional; lists have the merged item.
    """
    parts = [*_parts(first), *_parts(second)]
    records = [part for part in parts if isinstance(part, ObjectShape)]
    maps = [part for part in parts if isinstance(part, MapOf)]
    lists = [part for part in parts if isinstance(part, ListOf)]
    rest: list[Shape] = [part for part in parts if not isinstance(part, ObjectShape | MapOf | ListOf)]
    if maps:
        values: list[Shape] = [part.value for part in maps]
        values.extend(field.shape for record in records for field in record.fields)
        rest.append(MapOf(_merged_all(values)))
    elif records:
        rest.append(_merged_records(records))
    if lists:
        rest.append(ListOf(_merged_all(part.item for part in lists)))
    return union(rest)


def _parts(shape: Shape) -> tuple[Shape, ...]:
    return shape.shapes if isinstance(shape, AnyOf) else (shape,)


def _merged_all(shapes: Iterable[Shape]) -> Shape:
    result: Shape = NEVER
    for shape in shapes:
        result = merged(result, shape)
    return result


def _merged_records(records: list[ObjectShape]) -> ObjectShape:
    shapes: dict[str, Shape] = {}
    seen: dict[str, int] = {}
    required: dict[str, bool] = {}
    for record in records:
        for each in record.fields:
            shapes[each.name] = merged(shapes.get(each.name, NEVER), each.shape)
            seen[each.name] = seen.get(each.name, 0) + 1
            required[each.name] = required.get(each.name, True) and each.required
    return ObjectShape(
        tuple(RecordField(name, shapes[name], required[name] and seen[name] == len(records)) for name in shapes)
    )


def _rank(shape: Shape) -> tuple[int, str]:
    """Order alternatives as a reader expects them: plain types, literals, then containers."""
    match shape:
        case Plain(name):
            return _ORDER.get(name, len(_ORDER)), name
        case Choice():
            return 10, ""
        case ListOf():
            return 11, repr(shape)
        case ObjectShape():
            return 12, repr(shape)
        case _:
            return 13, repr(shape)


def to_json(shape: Shape) -> object:
    """Return a shape as JSON, to be kept in a file; `from_json` reads it."""
    match shape:
        case Plain(name):
            return name
        case Choice(values):
            return {"choice": [value for _, value in values]}
        case ListOf(item):
            return {"list": to_json(item)}
        case MapOf(value):
            return {"map": to_json(value)}
        case ObjectShape(fields):
            return {"record": [[each.name, to_json(each.shape), each.required] for each in fields]}
        case AnyOf(shapes):
            return {"one_of": [to_json(each) for each in shapes]}


def from_json(content: object) -> Shape:
    """Read what `to_json` gave. Raises `ValueError` for anything else."""
    match content:
        case str() if content in {"str", "int", "float", "bool", "None", "object", "Never"}:
            return Plain(content)
        case {"choice": list(values)} if all(isinstance(each, str | int | None) for each in values):
            return choice(values)
        case {"list": item}:
            return ListOf(from_json(item))
        case {"map": value}:
            return MapOf(from_json(value))
        case {"record": list(fields)}:
            return ObjectShape(tuple(_field(each) for each in fields))
        case {"one_of": list(shapes)}:
            return union(from_json(each) for each in shapes)
        case _:
            raise ValueError(f"no shape: {json.dumps(content, default=repr)[:80]}")


def _field(content: object) -> RecordField:
    match content:
        case [str(name), shape, bool(required)]:
            return RecordField(name, from_json(shape), required)
        case _:
            raise ValueError("no field of a record")
