"""A security boundary: what is put into an `array.array` is a plain number before the array looks at its memory.

Written in C, the array finds the place of an item and then asks the value for its number: code that shrinks the array
in `__index__` or `__float__` had it write past its end (CPython 3.11 to 3.13).
"""

from __future__ import annotations

import array
import operator
from collections.abc import Callable, Iterable
from typing import Any, Final

from ....guest.type_flags import replace_method

_PLAIN: Final = frozenset({int, float, bool, str})
_set_item: Final[Callable[..., None]] = array.array.__setitem__
_append: Final[Callable[..., None]] = array.array.append
_extend: Final[Callable[..., None]] = array.array.extend
_from_list: Final[Callable[..., None]] = array.array.fromlist
_insert: Final[Callable[..., None]] = array.array.insert


def convert_first() -> None:
    """Let every method that puts something into an array convert it first."""
    for name, method in (
        ("__setitem__", _set_plain),
        ("append", _append_plain),
        ("extend", _extend_plain),
        ("fromlist", _from_plain_list),
        ("insert", _insert_plain),
    ):
        replace_method(array.array, name, method)


def _set_plain(self: array.array[Any], key: object, value: object, /) -> None:
    if type(value) not in _PLAIN and type(key) is not slice:
        value = _plain(self, value)
    _set_item(self, key, value)


def _append_plain(self: array.array[Any], value: object, /) -> None:
    _append(self, value if type(value) in _PLAIN else _plain(self, value))


def _insert_plain(self: array.array[Any], index: object, value: object, /) -> None:
    _insert(self, index, value if type(value) in _PLAIN else _plain(self, value))


def _extend_plain(self: array.array[Any], values: Iterable[object], /) -> None:
    if isinstance(values, array.array):
        _extend(self, values)
        return
    for value in values:
        _append_plain(self, value)


def _from_plain_list(self: array.array[Any], values: list[object], /) -> None:
    if isinstance(values, list):
        values = [value if type(value) in _PLAIN else _plain(self, value) for value in list.__iter__(values)]
    _from_list(self, values)


def _plain(self: array.array[Any], value: object) -> object:
    """Return the number that the value stands for in this array. Raises `TypeError`, as the array does."""
    code = self.typecode
    if code in "fd":
        return float(value)  # type: ignore[arg-type]  # says what it cannot take
    return value if isinstance(value, str) or code in "uw" else operator.index(value)  # type: ignore[arg-type]  # as above
