"""A security boundary: what C code takes out of a container is held until what it calls with it returns.

C code adds, compares or shows an object by the reference that stands in the container. Code that empties the container
there had the memory freed of what was at work (CPython 3.11 to 3.13; the newer ones mended some). What is shown is held
by the function that shows it: there are too many containers, and an error is one of them.
"""

from __future__ import annotations

import collections
import ctypes
import datetime as dt
import json.encoder
import operator
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import GenericAlias, MethodType, UnionType
from typing import Any, Final

from ....guest.type_flags import replace_method

_IS_OLD: Final = sys.version_info < (3, 13)
_REFERENT: Final = 2 * ctypes.sizeof(ctypes.c_void_p)
"""Where `wr_object` stands in a weak reference: behind the count of references and the class."""
_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
_SEQUENCES: Final = frozenset({list, tuple})
_SHOWN_IN_PARTS: Final = (slice, MethodType, UnionType, dt.time, time.struct_time)
"""Classes whose text in C goes on with the object after code that one of its parts called."""
_count_in_c: Final[Callable[..., None]] = vars(collections)["_count_elements"]
_make_in_c: Final[Callable[..., object]] = vars(json.encoder)["c_make_encoder"]
_index: Final[Callable[..., int]] = collections.deque.index
_items: Final[Callable[..., Iterable[Any]]] = collections.deque.__iter__
_shown_alias: Final[Callable[[Any], str]] = GenericAlias.__repr__
_origin, _arguments, _is_unpacked = (
    vars(GenericAlias)[name].__get__ for name in ("__origin__", "__args__", "__unpacked__")
)


def hold() -> None:
    """Let counters, deques, aliases, proxies, texts and JSON hold what they work with."""
    vars(collections)["_count_elements"] = _count
    vars(json.encoder)["c_make_encoder"] = _make_encoder
    replace_method(GenericAlias, "__repr__", _show_alias)
    for cls in _SHOWN_IN_PARTS:
        replace_method(cls, "__repr__", _showing(cls.__repr__))
    if _IS_OLD:
        replace_method(collections.deque, "index", index)
        for proxy in (weakref.ProxyType, weakref.CallableProxyType):
            for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
                replace_method(proxy, name, _comparing(getattr(proxy, name)))


def alone(items: Iterable[Any]) -> Iterator[Any]:
    """Give the items one by one: Python refuses to enter a generator that is at work, as C code could its iterator."""
    for item in items:  # noqa: UP028 - `yield from` would also close what it iterates over
        yield item


def _make_encoder(markers: dict[int, object] | None, /, *arguments: object) -> object:
    """Make a C encoder that always checks for circles: the check holds a reference to each object being encoded."""
    return _make_in_c({} if markers is None else markers, *arguments)


def _count(mapping: Any, iterable: Iterable[Any]) -> None:
    if type(mapping) is collections.Counter and _calls_nothing(mapping, iterable):
        _count_in_c(mapping, iterable)
        return
    get = mapping.get
    for each in iterable:
        mapping[each] = get(each, 0) + 1


def _calls_nothing(counter: collections.Counter[Any], iterable: Iterable[Any]) -> bool:
    """Return whether counting calls no code; without a long look where there is little to count."""
    kind = type(iterable)
    if kind is not str and (kind not in _SEQUENCES or not _PLAIN.issuperset(map(type, iterable))):
        return False
    return not counter or (len(counter) <= len(iterable) and _PLAIN.issuperset(map(type, counter.values())))  # type: ignore[arg-type]  # a sequence


def index(self: collections.deque[Any], value: object, /, *bounds: Any) -> int:
    """Return the first place of the value, between the bounds. Raises ValueError."""
    numbers = [operator.index(bound) for bound in bounds]
    _held = list(_items(self))
    return _index(self, value, *numbers)


def _show_alias(self: GenericAlias, /) -> str:
    arguments = _arguments(self)
    if not any(isinstance(argument, list) for argument in arguments):
        return _shown_alias(self)
    copied = tuple(list.copy(each) if isinstance(each, list) else each for each in arguments)
    star = "*" if _is_unpacked(self) else ""
    return star + _shown_alias(GenericAlias(_origin(self), copied))


def _showing(show: Callable[[Any], str]) -> Callable[[Any], str]:
    def shown(self: Any, /) -> str:
        return show(self)  # the frame holds the object, which the container may not

    shown.__name__ = shown.__qualname__ = show.__name__
    return shown


def _comparing(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compared(self: Any, other: Any, /) -> Any:
        _held = [referent(each) for each in (self, other) if _is_proxy(each)]
        return compare(self, other)

    compared.__name__ = compared.__qualname__ = compare.__name__
    return compared


def referent(proxy: object) -> object:
    """Return what a proxy stands for; None where that is already being freed."""
    place = id(proxy) + _REFERENT
    count = ctypes.c_ssize_t.from_address(ctypes.c_size_t.from_address(place).value)
    return ctypes.py_object.from_address(place).value if count.value > 0 else None


def _is_proxy(each: object) -> bool:
    return type(each) is weakref.ProxyType or type(each) is weakref.CallableProxyType
