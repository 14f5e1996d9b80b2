"""What a hostile value really is, read from its class without believing anything that the guest can change.

Nothing here calls guest code, except `field_of` (a property that stands for a field). `TEXTS` has the usual text of the
values that have one where JSON has none: dates, durations, numbers, addresses, paths. A subclass's own methods are not
asked.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import pathlib
import uuid
import zoneinfo
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


BITS_SURELY_SHORT = 14_000
"""An integer of so many bits has no more than the 4,300 digits that `str` writes."""

_BITS_AT_ONCE = 200

_days = dt.timedelta.__dict__["days"].__get__
_seconds = dt.timedelta.__dict__["seconds"].__get__
_microseconds = dt.timedelta.__dict__["microseconds"].__get__
_numerator = fractions.Fraction.__dict__["_numerator"].__get__
_denominator = fractions.Fraction.__dict__["_denominator"].__get__


def duration(value: object) -> str:
    """Return a timedelta as an ISO 8601 duration: `PT0S`, `P1DT2H`, `-PT0.5S`."""
    total = (_days(value) * 86_400 + _seconds(value)) * 1_000_000 + _microseconds(value)
    sign = "-" if total < 0 else ""
    seconds, micros = divmod(abs(total), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if seconds or fraction or not (clock or days):
        clock += f"{seconds}{fraction}S"
    return sign + "P" + (f"{days}D" if days else "") + (f"T{clock}" if clock else "")


def fraction(value: object) -> str:
    """Return a Fraction as `3/4`, or `3` where it is whole."""
    numerator, denominator = _numerator(value), _denominator(value)
    if type(numerator) is not int or type(denominator) is not int:
        raise TypeError("a fraction of what are not integers")
    top = decimal_digits(numerator)
    return top if denominator == 1 else f"{top}/{decimal_digits(denominator)}"


def decimal_digits(number: int) -> str:
    """Return an integer's decimal digits, whatever its size.

    `str` refuses more than 4,300 digits (CVE-2020-10735) and takes quadratic time. This splits at powers of two and
    joins with `decimal`, which multiplies by number-theoretic transform (the method of CPython's `_pylong`).
    """
    if number.bit_length() <= BITS_SURELY_SHORT:
        return int.__repr__(number)
    powers: dict[int, decimal.Decimal] = {}
    two = decimal.Decimal(2)

    def convert(part: int, bits: int) -> decimal.Decimal:
        if bits <= _BITS_AT_ONCE:
            return decimal.Decimal(part)
        half = bits >> 1
        high = part >> half
        low = part - (high << half)
        if half not in powers:
            powers[half] = two**half
        return convert(low, half) + convert(high, bits - half) * powers[half]

    # Written out in full, since the guest may have set `decimal.DefaultContext`.
    exact = decimal.Context(
        prec=decimal.MAX_PREC,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[decimal.Inexact],
    )
    with decimal.localcontext(exact):
        digits = f"{convert(abs(number), number.bit_length()):f}"
    return "-" + digits if number < 0 else digits


_BY_CLASS: dict[type, Callable[..., object]] = {
    dt.datetime: dt.datetime.isoformat,
    dt.date: dt.date.isoformat,
    dt.time: dt.time.isoformat,
    dt.timedelta: duration,
    dt.timezone: dt.timezone.__str__,
    zoneinfo.ZoneInfo: zoneinfo.ZoneInfo.__str__,
    decimal.Decimal: decimal.Decimal.__str__,
    fractions.Fraction: fraction,
    uuid.UUID: uuid.UUID.__str__,
    pathlib.PurePath: pathlib.PurePath.__str__,
    ipaddress.IPv4Address: ipaddress.IPv4Address.__str__,
    ipaddress.IPv6Address: ipaddress.IPv6Address.__str__,
    ipaddress.IPv4Network: ipaddress.IPv4Network.__str__,
    ipaddress.IPv6Network: ipaddress.IPv6Network.__str__,
    ipaddress.IPv4Interface: ipaddress.IPv4Interface.__str__,
    ipaddress.IPv6Interface: ipaddress.IPv6Interface.__str__,
}

TEXTS: dict[int, Callable[[object], object]] = {
    id(cls): cast("Callable[[object], object]", speak) for cls, speak in _BY_CLASS.items()
}
