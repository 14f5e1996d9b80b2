"""A security boundary: `collections.OrderedDict` in Python.

CPython's own, in C, goes on with the node of a key after the `__eq__` or `__hash__` of another key has run, which may
have freed it. This one has no nodes: a dictionary keeps the order in which its keys were set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, MutableMapping
from itertools import starmap
from operator import eq
from reprlib import recursive_repr
from typing import Any, TypeVar, cast

__all__ = ["OrderedDict"]

K = TypeVar("K")
V = TypeVar("V")
_SHOWS_A_DICT = sys.version_info >= (3, 12)
_NOTHING = object()
_set_each: Any = (
    MutableMapping.update
)  # the function itself: once the process is sealed, it works on its own class only


class OrderedDict(dict[K, V]):
    """A dictionary that can move a key to either end.

    `popitem(last=False)` takes constant time on the average. Where a dictionary is emptied at its front, looking for
    the first key passes all those that are gone. So the keys are listed once, last first, with what left its place
    since. `move_to_end(last=False)` takes time in proportion to the length.
    """

    __slots__ = ("__dict__", "__weakref__", "_ahead", "_gone")
    _ahead: list[K] | None
    _gone: set[K]

    def __new__(cls, /, *_arguments: object, **_entries: object) -> OrderedDict[K, V]:
        """Make an empty one, whatever the initializer of a derived class does."""
        made = super().__new__(cls)
        made._ahead = None
        return made

    def __init__(self, other: Any = (), /, **entries: Any) -> None:
        _fill(self, other, entries)

    def update(self, other: Any = (), /, **entries: Any) -> None:
        """Set each entry of a mapping, or of pairs, and each keyword."""
        _fill(self, other, entries)

    def __delitem__(self, key: K, /) -> None:
        super().__delitem__(key)
        _note(self, key)

    def clear(self) -> None:
        """Remove all entries."""
        self._ahead = None
        super().clear()

    def pop(self, key: K, default: Any = _NOTHING) -> Any:
        """Remove a key and return its value, or the default. Raises KeyError where there is neither."""
        if default is _NOTHING:
            value = super().pop(key)
        else:
            value = super().pop(key, cast("V", _NOTHING))
            if value is _NOTHING:
                return default
        _note(self, key)
        return value

    def popitem(self, last: bool = True) -> tuple[K, V]:
        """Remove and return the last entry, or the first. Raises KeyError where there is none."""
        if not len(self):
            raise KeyError("dictionary is empty")
        if last:
            item = super().popitem()
            _note(self, item[0])
            return item
        key = _first(self)
        return key, super().pop(key)

    def move_to_end(self, key: K, last: bool = True) -> None:
        """Move a key to the end, or to the beginning. Raises KeyError where it is missing."""
        if last:
            if _is_last(self, key):  # a comparison that moves keys itself would have the dictionary look forever
                return
            value = super().pop(key)
            _note(self, key)
            super().__setitem__(key, value)
            return
        moved = {key: super().pop(key)}
        self._ahead = None
        moved.update(dict(dict.items(self)))
        super().clear()
        super().update(moved)

    def setdefault(self, key: K, default: Any = None) -> Any:
        """Return the value of a key, which is set to the default if it is missing."""
        if type(self) is OrderedDict:
            return super().setdefault(key, default)
        if key in self:
            return self[key]
        self[key] = default
        return default

    def copy(self) -> OrderedDict[K, V]:
        """Return a shallow copy, of the same class."""
        return type(self)(self)

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is True and isinstance(other, OrderedDict):
            return all(starmap(eq, zip(self, other, strict=False)))
        return same

    def __ne__(self, other: object) -> bool:
        same = self == other
        return same if same is NotImplemented else not same

    __hash__ = None  # as every dictionary

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, dict):
            return NotImplemented
        made = type(self)(self)
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, dict):
            return NotImplemented
        made = type(self)(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Any:
        _fill(self, other, {})
        return self

    @recursive_repr()
    def __repr__(self) -> str:
        name = type(self).__name__
        if not dict.__len__(self):
            return f"{name}()"
        items: Iterable[tuple[K, V]] = self.items()
        return f"{name}({dict(items)!r})" if _SHOWS_A_DICT else f"{name}({list(items)!r})"


# What its slots hold is found again, and no part of a copy.
type.__setattr__(OrderedDict, "__slots__", ())


def _fill(target: OrderedDict[Any, Any], other: Any, entries: dict[str, Any]) -> None:
    if type(target) is OrderedDict:
        dict.update(target, other, **entries)
    else:  # a class of the code's own may have its say on each
        _set_each(target, other, **entries)


def _is_last(target: OrderedDict[K, Any], key: K) -> bool:
    """Return whether a key is at the end already."""
    for each in dict.__reversed__(target):
        return each is key or (hash(each) == hash(key) and each == key)
    return False


def _note(target: OrderedDict[K, Any], key: K) -> None:
    """Take down that a key left its place."""
    ahead = target._ahead
    if ahead is None:
        return
    target._gone.add(key)
    if len(target._gone) > len(ahead):
        target._ahead = None


def _first(target: OrderedDict[K, Any]) -> K:
    ahead = target._ahead
    while ahead:
        key = ahead.pop()
        if key not in target._gone and dict.__contains__(target, key):
            return key
    ahead = [*dict.__iter__(target)]
    ahead.reverse()
    if not ahead:  # a comparison has emptied it
        raise KeyError("dictionary is empty")
    target._ahead, target._gone = ahead, set()
    return ahead.pop()
