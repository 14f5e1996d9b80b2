"""A security boundary: `functools.lru_cache` with a bound, in Python.

CPython's own, in C, keeps its ring of results while a key's `__eq__` or `__hash__` runs. Code that calls the function
again from there, or waits there, has it use memory that was freed. Its cache without a bound, and that of size 0, hold
no ring: one is a dictionary, which expects to be changed by a comparison, and the other holds nothing.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, Final

__all__ = ["bounded", "is_bounded", "replace_in_library"]

_BEFORE, _AFTER, _KEY, _RESULT = range(4)
_KEYWORDS: Final = object()
"""Stands in a key between the positional arguments and the keywords."""


class _Key(list[object]):
    """The arguments of a call, hashed once."""

    __slots__ = ("_hash",)

    def __init__(self, arguments: tuple[object, ...]) -> None:
        self._hash = hash(arguments)
        super().__init__(arguments)

    def __hash__(self) -> int:  # type: ignore[override]  # it never changes
        return self._hash


def bounded(
    func: Callable[..., object], maxsize: int, kind: Callable[[type], object] | None = None
) -> Callable[..., Any]:
    """Return a function that keeps the `maxsize` results used last; `kind` gives what distinguishes arguments by type.

    It has `cache_info` and `cache_clear`. All that may run code of the guest (looking up, removing, dropping what was
    kept) happens while the ring is whole, and a result that left the ring meanwhile is not moved in it.
    """
    found: dict[object, list[Any]] = {}
    ring: list[Any] = []
    ring += [ring, ring, None, None]
    hits = misses = 0

    def remembering(*args: Any, **kwargs: Any) -> Any:
        nonlocal hits, misses
        key: object
        if not kwargs and kind is None and len(args) == 1 and (type(args[0]) is int or type(args[0]) is str):
            key = args[0]
        else:
            parts = (*args, _KEYWORDS, *kwargs.items()) if kwargs else args
            key = _Key(parts if kind is None else (_kinds(kind, args, kwargs), *parts))
        kept = found.get(key)
        if kept is not None:
            hits += 1
            before, after, _, result = kept
            if before is not None:
                before[_AFTER], after[_BEFORE] = after, before
                kept[_BEFORE], kept[_AFTER] = ring[_BEFORE], ring
                ring[_BEFORE][_AFTER] = kept
                ring[_BEFORE] = kept
            return result
        misses += 1
        result = func(*args, **kwargs)
        made = [None, None, key, result]
        if found.setdefault(key, made) is made:  # another call may have kept it meanwhile
            made[_BEFORE], made[_AFTER] = ring[_BEFORE], ring
            ring[_BEFORE][_AFTER] = made
            ring[_BEFORE] = made
            while len(found) > maxsize and ring[_AFTER] is not ring:
                oldest = ring[_AFTER]
                ring[_AFTER] = oldest[_AFTER]
                oldest[_AFTER][_BEFORE] = ring
                oldest[_BEFORE] = oldest[_AFTER] = None
                found.pop(oldest[_KEY], None)
                del oldest  # here, where what it held may end, and not where the next takes its name
        return result

    def cache_info() -> object:
        return functools._CacheInfo(hits, misses, maxsize, len(found))

    def cache_clear() -> None:
        nonlocal hits, misses
        hits = misses = 0
        kept = [*found.values()]
        ring[_BEFORE] = ring[_AFTER] = ring
        for each in kept:
            each[_BEFORE] = each[_AFTER] = None
        found.clear()

    remembering.__dict__.update(cache_info=cache_info, cache_clear=cache_clear)
    return remembering


def _kinds(kind: Callable[[type], object], args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[object, ...]:
    return tuple(kind(type(each)) for each in (*args, *kwargs.values()))


_REMEMBERING: Final[CodeType] = bounded(len, 1).__code__


def is_bounded(function: object) -> bool:
    """Return whether `bounded` made a function."""
    return type(function) is FunctionType and function.__code__ is _REMEMBERING


def replace_in_library(classes: Iterator[type], kind: Callable[[type], object]) -> None:
    """Let the caches of the standard library that have a bound be kept in Python too: code can call what has them."""
    found = [each for each in gc.get_objects() if type(each) is functools._lru_cache_wrapper and _is_replaced(each)]
    made = [_remade(each, kind) for each in found]
    replaced = {id(old): new for old, new in zip(found, made, strict=True)}
    for cls in classes:
        for name, member in list(vars(cls).items()):
            if id(member) in replaced:
                type.__setattr__(cls, name, replaced[id(member)])
            elif type(member) is property and id(member.fget) in replaced:
                type.__setattr__(
                    cls, name, property(replaced[id(member.fget)], member.fset, member.fdel, member.__doc__)
                )
    for holder in gc.get_referrers(*found):
        if type(holder) is dict:
            holder.update({key: replaced[id(value)] for key, value in holder.items() if id(value) in replaced})
        elif type(holder) is CellType and id(holder.cell_contents) in replaced:
            holder.cell_contents = replaced[id(holder.cell_contents)]


def _is_replaced(cache: Any) -> bool:
    return bool(cache.cache_info().maxsize) and not cache.__module__.startswith("sealab.")


def _remade(cache: Any, kind: Callable[[type], object]) -> Callable[..., object]:
    parameters = cache.cache_parameters()
    made = bounded(cache.__wrapped__, parameters["maxsize"], kind if parameters["typed"] else None)
    return functools.update_wrapper(made, cache.__wrapped__)
