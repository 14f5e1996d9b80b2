"""What a session holds: its variables, their kinds, and about how many bytes they take.

Security boundary: the values are hostile. Of built-in types only exact ones are measured, through C functions; what a
library's value takes is asked of the library, in full Python alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import islice
from types import BuiltinFunctionType, CoroutineType, FunctionType, MethodType, ModuleType
from typing import Final, cast

from ..guest.facade import Facade
from ..guest.guest import GUEST
from ..guest.real_classes import derives
from ..guest.spelling import demangle
from ..job import Held
from ..wire.shown_frames import HELD_MAX, NAME_CHARS_MAX
from .disclosure import type_name

NAMES_MAX: Final = 2_000
"""Variables that are looked at."""
SAMPLE: Final = 50
"""Items of a list or dict that are measured, to say what all of them take."""
LEVELS: Final = 3

_NO_DATA: Final = (ModuleType, FunctionType, BuiltinFunctionType, MethodType, CoroutineType, type, Facade)
_LISTS: Final = (list, tuple, set, frozenset)


def held_in(variables: Mapping[str, object], given: Mapping[str, object]) -> tuple[Held, ...]:
    """Return the variables that hold data, the largest first, at most `HELD_MAX`.

    `given` are those that every run begins with.
    """
    found: list[Held] = []
    for name, value in islice(list(variables.items()), NAMES_MAX):
        if type(name) is not str or name.startswith("_") or (name in given and given[name] is value):
            continue
        if not any(derives(type(value), each) for each in _NO_DATA):
            found.append(held(demangle(name), value))
    return tuple(sorted(found, key=lambda each: -each.bytes)[:HELD_MAX])


def held(name: str, value: object) -> Held:
    """Return what a variable holds; raises nothing."""
    kind = type_name(type(value))[:NAME_CHARS_MAX]
    if GUEST.measure is not None:
        try:
            measured = GUEST.measure(value)
        except Exception:  # noqa: BLE001 - a library may raise anything
            measured = None
        if measured is not None:
            return Held(name[:NAME_CHARS_MAX], kind, max(0, measured[0]), measured[1][:NAME_CHARS_MAX])
    count = _count(value)
    return Held(name[:NAME_CHARS_MAX], kind, _bytes(value, LEVELS), "" if count is None else f"{count} items")


def in_words(variables: tuple[Held, ...], least_bytes: int, most: int) -> str:
    """Say the largest variables, from so many bytes on."""
    told = []
    for each in variables[:most]:
        if each.bytes >= least_bytes:
            extent = f"{each.kind}, {each.extent}" if each.extent else each.kind
            told.append(f"{each.name} ({extent}, {each.bytes >> 20} MB)")
    return ", ".join(told)


def _count(value: object) -> int | None:
    kind = type(value)
    if kind is dict or any(kind is each for each in _LISTS):
        return len(cast("list[object]", value))
    return None


def _bytes(value: object, levels: int) -> int:
    """Return about what a value takes; of a container a few items are measured, and others taken to be like them."""
    kind = type(value)
    if kind is dict:
        pairs = cast("dict[object, object]", value)
        sample = list(islice(pairs.items(), SAMPLE))
        inner = sum(_bytes(key, levels - 1) + _bytes(each, levels - 1) for key, each in sample) if levels else 0
        return sys.getsizeof(value) + inner * len(pairs) // max(1, len(sample))
    if any(kind is each for each in _LISTS):
        items = cast("list[object]", value)
        few = list(islice(items, SAMPLE))
        inner = sum(_bytes(each, levels - 1) for each in few) if levels else 0
        return sys.getsizeof(value) + inner * len(items) // max(1, len(few))
    return sys.getsizeof(value) if kind in {str, bytes, bytearray, int, float} else object.__sizeof__(value)
