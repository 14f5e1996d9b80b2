"""The usual text of the values that have one where JSON has none: dates, durations, numbers, addresses, paths.

`TEXTS` maps the identity of a class to the function that writes its instances; a subclass's own methods are not asked.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import ipaddress
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable
from typing import cast

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
