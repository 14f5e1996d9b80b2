"""Security boundary: `str.format` whose attribute look-ups are judged.

A template without look-ups cannot reach an attribute and goes to CPython's own `str.format` at full speed. The others
are evaluated here (Library Reference, Format String Syntax), every attribute through the function that is passed in.
Nothing here calls a method that guest code could replace: `string.Formatter` is an ordinary class.
"""

from __future__ import annotations

import builtins
from _string import (  # type: ignore[import-not-found]  # typeshed does not know the module behind `string`
    formatter_field_name_split,
    formatter_parser,
)
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, cast

_format_plain = str.format
_format_map_plain = str.format_map
_exact = str.__str__
_NESTING_MAX: Final = 2
_REMEMBERED_MAX: Final = 512
_has_lookups: dict[str, bool] = {}

ReadAttribute: TypeAlias = Callable[[object, str], object]
"""Reads an attribute by its name, and judges it: `guards.guarded_getattr`."""


def format_string(
    template: str, args: Sequence[object], kwargs: Mapping[str, object], read_attribute: ReadAttribute
) -> str:
    """Return `template.format(*args, **kwargs)`. Raises what `str.format` raises, and `SecurityError`."""
    text = _exact(template)
    if not has_lookups(text):
        return _format_plain(text, *args, **kwargs)
    return _Fields(args, kwargs, read_attribute).fill(text, _NESTING_MAX)


def format_string_map(template: str, mapping: Mapping[str, object], read_attribute: ReadAttribute) -> str:
    """Return `template.format_map(mapping)`. Raises what `str.format_map` raises, and `SecurityError`."""
    text = _exact(template)
    if not has_lookups(text):
        return _format_map_plain(text, mapping)
    return _Fields(None, mapping, read_attribute).fill(text, _NESTING_MAX)


def has_lookups(template: str) -> bool:
    """Return whether a field of `template` reads an attribute or an item (`{0.x}`, `{a[0]}`), at any depth."""
    if "." not in template and "[" not in template:
        return False
    known = _has_lookups.get(template)
    if known is None:
        if len(_has_lookups) >= _REMEMBERED_MAX:
            _has_lookups.clear()
        known = _has_lookups[template] = _looks_up(template, _NESTING_MAX)
    return known


def _looks_up(template: str, depth: int) -> bool:
    if depth < 0:
        return True
    try:
        parts = list(formatter_parser(template))
    except ValueError:
        return True  # CPython reads the fields before the faulty one, and an error can carry what was read
    return any(
        field is not None and ("." in field or "[" in field or _looks_up(spec or "", depth - 1))
        for _literal, field, spec, _conversion in parts
    )


class _Fields:
    """The arguments of one call, and the automatic numbering of its fields."""

    def __init__(
        self, args: Sequence[object] | None, kwargs: Mapping[str, object], read_attribute: ReadAttribute
    ) -> None:
        self._args = args
        self._kwargs = kwargs
        self._read_attribute = read_attribute
        self._next = 0
        self._manual = False

    def fill(self, template: str, depth: int) -> str:
        if depth < 0:
            raise ValueError("Max string recursion exceeded")
        return "".join(self._pieces(template, depth))

    def _pieces(self, template: str, depth: int) -> Iterable[str]:
        for literal, field, spec, conversion in formatter_parser(template):
            yield literal
            if field is not None:
                value = _converted(self._value(field), conversion)
                yield builtins.format(value, self.fill(spec, depth - 1) if spec and "{" in spec else spec or "")

    def _value(self, field: str) -> object:
        first, rest = formatter_field_name_split(field)
        value = self._argument(first)
        for is_attribute, key in rest:
            value = self._read_attribute(value, cast("str", key)) if is_attribute else value[key]  # type: ignore[index]  # Python says what cannot be indexed
        return value

    def _argument(self, key: int | str) -> object:
        if key == "":
            key = self._automatic()
        elif type(key) is int:
            self._number_by_hand()
        if type(key) is not int:
            return self._kwargs[cast("str", key)]
        if self._args is None:
            raise ValueError("Format string contains positional fields")
        if key >= len(self._args):
            raise IndexError(f"Replacement index {key} out of range for positional args tuple")
        return self._args[key]

    def _automatic(self) -> int:
        if self._manual:
            raise ValueError("cannot switch from manual field specification to automatic field numbering")
        self._next += 1
        return self._next - 1

    def _number_by_hand(self) -> None:
        if self._next:
            raise ValueError("cannot switch from automatic field numbering to manual field specification")
        self._manual = True


def _converted(value: object, conversion: str | None) -> object:
    match conversion:
        case None:
            return value
        case "s":
            return str(value)
        case "r":
            return repr(value)
        case "a":
            return ascii(value)
        case _:
            raise ValueError(f"Unknown conversion specifier {conversion!r}")
