"""Arguments that came as JSON, made what the hints of a function say: dates, enums, dataclasses, sets, tuples.

What a hint does not ask for stays as it came, and so does what cannot be converted: the function then raises an error.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

from ..guest.guest import GUEST
from ..guest.known_modules import KNOWN_MODULES
from ..guest.ownership import is_guest_callable

DEPTH_MAX: Final = 16
_FROM_TEXT: Final[dict[object, Callable[[str], object]]] = {
    dt.date: dt.date.fromisoformat,
    dt.datetime: dt.datetime.fromisoformat,
    dt.time: dt.time.fromisoformat,
    UUID: UUID,
    Fraction: Fraction,
}
_COLLECTIONS: Final[dict[object, Callable[[list[object]], object]]] = {
    set: set,
    frozenset: frozenset,
    AbstractSet: set,
    tuple: tuple,
}


def converted(
    function: Callable[..., object], arguments: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Return the positional and the named arguments for a call of `function`.

    Where an argument must stand before others that were given, and was not, its default stands there.
    """
    hints = _hints(function)
    left = {name: _as_hinted(value, hints.get(name), 0) for name, value in arguments.items()}
    try:
        parameters = list(_signature(function).parameters.values())
    except (TypeError, ValueError, NotImplementedError):
        return [], left
    many = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    rest = left.pop(many, None) if many is not None else None
    extra = _rest(rest, hints.get(many or ""))
    positional: list[object] = []
    left_out: list[object] = []
    for each in parameters:
        by_place = each.kind is each.POSITIONAL_ONLY
        if not (by_place or (extra and each.kind is each.POSITIONAL_OR_KEYWORD)):
            continue
        if each.name in left:
            positional += [*left_out, left.pop(each.name)]
            left_out = []
        elif each.default is each.empty:
            return positional, left  # the function says itself what it lacks
        else:
            left_out.append(each.default)
    return [*positional, *(left_out if extra else ()), *extra], left


def _rest(value: object, hint: object) -> list[object]:
    return [_as_hinted(item, hint, 0) for item in value] if isinstance(value, list | tuple) else []


def _signature(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature. The code may have said itself what it is, in text that the real module would evaluate."""
    if GUEST.full_python:
        return inspect.signature(function)
    return KNOWN_MODULES.signature(function)


def _hints(function: Callable[..., object]) -> Mapping[str, object]:
    """Return the hints as objects. Those that stand as text are evaluated under the rules of the code itself."""
    try:
        if GUEST.full_python:
            return typing.get_type_hints(function, include_extras=True)
        # A function of the code's own may wrap one of the host's, whose globals no source of the code's may run in.
        written = inspect.unwrap(function)
        scope = getattr(written, "__globals__", None) if is_guest_callable(written) else None
        return KNOWN_MODULES.type_hints(function, scope)
    except Exception:  # noqa: BLE001 - a hint may be anything; without hints everything stays as it came
        return {}


def _as_hinted(value: object, hint: object, depth: int) -> object:
    if hint is None or depth > DEPTH_MAX:
        return value
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _as_hinted(value, inner[0], depth + 1)
    if origin is typing.Union or origin is types.UnionType:
        return _as_one_of(value, inner, depth)
    try:
        if isinstance(value, str) and hint in _FROM_TEXT:
            return _FROM_TEXT[hint](value)
        if hint is Decimal and isinstance(value, str | int | float) and not isinstance(value, bool):
            return Decimal(str(value))
        if hint is float and type(value) is int:
            return float(value)
        if hint is int and type(value) is float and value.is_integer():
            return int(value)
    except (ValueError, InvalidOperation, TypeError, OverflowError, ZeroDivisionError):
        return value
    kind = origin or hint
    if isinstance(value, list):
        return _as_collection(value, kind, inner, depth)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _as_member(value, kind)
    if isinstance(value, dict):
        return _as_object(value, kind, inner, depth)
    return value


def _as_one_of(value: object, hints: tuple[object, ...], depth: int) -> object:
    for hint in hints:
        if (hint is type(None) and value is None) or (isinstance(hint, type) and type(value) is hint):
            return value
    for hint in hints:
        if hint is not type(None):
            made = _as_hinted(value, hint, depth + 1)
            if made is not value:
                return made
    return value


def _as_collection(value: list[object], kind: object, inner: tuple[object, ...], depth: int) -> object:
    if kind is tuple and inner and inner[-1] is not ...:
        items = [_as_hinted(item, inner[at] if at < len(inner) else None, depth + 1) for at, item in enumerate(value)]
    else:
        items = [_as_hinted(item, inner[0] if inner else None, depth + 1) for item in value]
    make = _COLLECTIONS.get(kind)
    try:
        return items if make is None else make(items)
    except TypeError:
        return items


def _as_member(value: object, kind: type[Enum]) -> object:
    try:
        return kind(value)
    except ValueError:
        return value


def _as_object(value: dict[str, object], kind: object, inner: tuple[object, ...], depth: int) -> object:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = {each.name: each.type for each in dataclasses.fields(kind)}
        return kind(**{name: _as_hinted(item, _object(hints.get(name)), depth + 1) for name, item in value.items()})
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        own = getattr(kind, "__annotations__", {})
        made: Any = kind
        return made(**{name: _as_hinted(item, _object(own.get(name)), depth + 1) for name, item in value.items()})
    if len(inner) == 2:  # noqa: PLR2004 - keys and values
        return {name: _as_hinted(item, inner[1], depth + 1) for name, item in value.items()}
    return value


def _object(hint: object) -> object:
    """Leave out hints that stand as text."""
    return None if isinstance(hint, str) else hint
