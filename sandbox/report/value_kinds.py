"""What a hostile value really is, read from its class without believing anything that the guest can change.

Nothing here calls guest code, except `field_of` (a property that stands for a field).
"""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import enum
from collections.abc import Callable, Iterator
from typing import cast

from ..guest.real_classes import attribute_of_class, class_dict, derives, mro_of

UNSET = object()
"""What `field_of` returns for a field without a value."""

_ORDINARY_FIELD = dataclasses._FIELD  # type: ignore[attr-defined]  # what sets fields apart from ClassVar and InitVar
_ORDERED = (str, bytes, dt.date, dt.datetime, dt.time, dt.timedelta)

_kind_of_field: dict[type, Callable[[object], object]] = {}
"""How to find what kind of field an instance of a class of fields is, read past anything that code could set."""


def recognise_fields(cls: type) -> None:
    """Take instances of exactly `cls`, a class with a slot `_field_type`, for the fields of dataclasses."""
    _kind_of_field[cls] = cls.__dict__["_field_type"].__get__


recognise_fields(dataclasses.Field)


def is_enum(cls: type) -> bool:
    """Return whether the instances of a class are members of an enum."""
    return derives(cls, enum.Enum)


def dataclass_fields(cls: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields, or None for any other class, one with forged fields included."""
    fields = attribute_of_class(cls, "__dataclass_fields__")
    if type(fields) is not dict or not all(
        type(name) is str and not name.startswith("_") and type(field) in _kind_of_field
        for name, field in fields.items()
    ):
        return None
    return tuple(name for name, field in fields.items() if _kind_of_field[type(field)](field) is _ORDINARY_FIELD)


def tuple_fields(cls: type) -> tuple[str, ...] | None:
    """Return the names of a named tuple's or structseq's members, or None for any other tuple."""
    for base in mro_of(cls):
        attributes = class_dict(base)
        names = attributes.get("__match_args__") if "n_sequence_fields" in attributes else attributes.get("_fields")
        if type(names) is tuple and all(type(name) is str for name in names):
            return names
    return None


def field_of(value: object, name: str) -> object:
    """Return an attribute as Python finds it, but for the object's own `__getattribute__`; `UNSET` without one."""
    try:
        return object.__getattribute__(value, name)
    except BaseException:  # noqa: BLE001 - a property of the guest's own may raise anything
        return UNSET


def order_of(member: object) -> object:
    """Return what members must have in common to have one total order, or None where they have none."""
    cls = type(member)
    if cls is int or cls is bool or (cls is float and member == member):  # noqa: PLR0124 - NaN is in no order
        return "number"
    if any(cls is ordered for ordered in _ORDERED):
        return cls
    if cls is tuple:
        kinds = tuple(order_of(inner) for inner in cast("tuple[object, ...]", member))
        return None if None in kinds else kinds
    return None


def length_of(cls: type, value: object) -> int:
    """Return how many members a sequence of the built-in class `cls` has."""
    try:
        return cast("int", cls.__len__(value))  # type: ignore[attr-defined]  # all that `ITERATE` holds have one
    except OverflowError:
        whole = cast("range", value)
        return (whole[-1] - whole[0]) // whole.step + 1


_DICT: dict[str, str] = {}
_ORDERED_DICT: collections.OrderedDict[str, str] = collections.OrderedDict()
_SEQUENCES: tuple[type, ...] = (
    range,
    collections.deque,
    array.array,
    type(_DICT.keys()),
    type(_DICT.values()),
    type(_DICT.items()),
    type(_ORDERED_DICT.keys()),
    type(_ORDERED_DICT.values()),
    type(_ORDERED_DICT.items()),
)

ITERATE: dict[int, Callable[[object], Iterator[object]]] = {
    id(cls): cls.__iter__  # type: ignore[attr-defined]  # all of these are iterable
    for cls in _SEQUENCES
}
"""How to iterate over a range, deque, array or dict view, by the identity of its class."""
