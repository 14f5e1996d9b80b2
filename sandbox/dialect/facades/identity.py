"""Numbers in place of addresses: what code sees of an object's identity, in `id`, in a hash and in a text.

An object gets its number when one is first asked for, so a second run of a program gives the same. An address differs
from process to process, and with it the order of a set of objects that are hashed by identity.

A number is kept by the address, with a weak reference that shows when another object has taken that place. Objects
that cannot be referred to weakly (lists, dictionaries, tuples, those with `__slots__`) hand their number on to one of
their class that takes their place, as they do with their address in CPython.

What was a key of some table before `show` was called keeps its hash, which is made of its address. Code can reach few
of these, and a set of them alone has an order that differs.
"""

from __future__ import annotations

import asyncio
import asyncio.queues
import gc
import hashlib
import weakref
from collections.abc import Callable, Iterator
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, Final

from ...guest.type_flags import replace_method
from .stand_ins.held_items import referent

_FIRST: Final = 1 << 20
"""The first number of a run. What the zygote hashes has lower ones."""
_OF_ADDRESSES: Final = 1 << 32
"""From here on a number is a hash that was made of an address."""
_PLACE: Final = 0x7F00_0000_0000
_BYTES: Final = 16
_address: Final = id
_referred: Final = weakref.ref
_KEEP_THEIR_HASH: Final = (type, ModuleType, property)
"""Classes whose objects the worker's own code looks up all the time, and that live as long as it."""


class _Numbers:
    __slots__ = ("known", "next")

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, Any]] = {}
        self.next = 0


_numbers: Final = _Numbers()
_of_kept: Final[dict[int, int]] = {}
"""Numbers to show by the hashes that were made of addresses."""
_known: Final = _numbers.known


def begin() -> None:
    """Begin the numbers of a run, or of a session."""
    _numbers.next = _FIRST


def number_of(obj: object, /) -> int:
    """Return the number of an object."""
    address = _address(obj)
    known = _known.get(address)
    if known is not None:
        number, reference = known
        if reference is type(obj) or (type(reference) is _referred and reference() is obj):
            return number
    number = _numbers.next = _numbers.next + 1
    try:
        _known[address] = number, _referred(obj)
    except TypeError:
        _known[address] = number, type(obj)
    return number


def id_of(obj: object, /) -> int:
    """Return the identity of an object.

    This is a number that no other object has at the same time.
    """
    number = number_of(obj)
    if number >= _OF_ADDRESSES:
        if number not in _of_kept:
            _of_kept[number] = _numbers.next = _numbers.next + 1
        number = _of_kept[number]
    return _PLACE + number * _BYTES


id_of.__name__ = id_of.__qualname__ = "id"


def show() -> None:
    """Let no hash and no text of an object show its address."""
    hash_in_c = object.__hash__
    for key in _keys():
        if type(key).__hash__ is hash_in_c and not isinstance(key, _KEEP_THEIR_HASH):
            _known[_address(key)] = hash_in_c(key), type(key)  # it stays, or is freed with the table
    replace_method(object, "__hash__", _hash)
    for kept in _KEEP_THEIR_HASH:
        replace_method(kept, "__hash__", hash_in_c)
    replace_method(MethodType, "__hash__", _hash_of_method)
    for bound in (BuiltinFunctionType, MethodWrapperType):
        replace_method(bound, "__hash__", _hash_of_bound)
    classes: tuple[type, ...] = (
        object, FunctionType, GeneratorType, CoroutineType, AsyncGeneratorType, CodeType, FrameType, memoryview,
        *_of_hashes(),
    )  # fmt: skip
    for cls in classes:
        replace_method(cls, "__repr__", _showing(vars(cls)["__repr__"], _itself))
    for bound in (BuiltinFunctionType, MethodWrapperType):
        replace_method(bound, "__repr__", _showing(vars(bound)["__repr__"], _owner))
    for holder, content in _CONTENT.items():
        replace_method(holder, "__repr__", _showing(vars(holder)["__repr__"], _itself, content))
    vars(asyncio.queues)["id"] = id_of


def _hash_of_bound(self: Any, /) -> int:
    """Return hash(self)."""
    owner = self.__self__
    return hash(self.__name__) if type(owner) is ModuleType else number_of(owner)  # methods may be equal by two names


def _of_hashes() -> set[type]:
    """Return the classes of hashes that have a text of their own: which these are depends on how Python was built."""
    made = (hashlib.new(name) for name in sorted(hashlib.algorithms_guaranteed))
    return {cls for each in made for cls in type(each).__mro__ if cls is not object and "__repr__" in vars(cls)}


_hash: Final = FunctionType(number_of.__code__, number_of.__globals__, "__hash__")
"""The same without a second call."""


def _keys() -> Iterator[object]:
    """Give what tables of this process have as keys, and what weak references refer to: a hash is kept there."""
    for each in gc.get_objects():
        if type(each) in {dict, set, frozenset}:
            for key in list(each):
                yield from _parts(key)
        elif isinstance(each, _referred) and (referent := each()) is not None:
            yield referent


def _parts(key: object) -> Iterator[object]:
    yield key
    if type(key) is tuple:
        for part in key:
            yield from _parts(part)


def _hash_of_method(self: MethodType, /) -> int:
    """Return hash(self)."""
    return hash((number_of(self.__self__), self.__func__))


def _itself(obj: object) -> object:
    return obj


def _owner(function: Any) -> object:
    return function.__self__


def _cell_content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return cell


_CONTENT: Final[dict[type, Callable[[Any], object]]] = {
    weakref.ref: lambda reference: reference(),
    weakref.ProxyType: referent,
    weakref.CallableProxyType: referent,
    CellType: _cell_content,
}


def _showing(show: Callable[[Any], str], *shown: Callable[[Any], object]) -> Callable[[Any], str]:
    """Return what gives the text with numbers in place of the addresses of the objects `shown`."""

    def showing(self: Any, /) -> str:
        text = show(self)
        for find in shown:
            obj = find(self)
            text = text.replace(f"{_address(obj):#x}", f"{id_of(obj):#x}")
        return text

    showing.__name__ = showing.__qualname__ = "__repr__"
    return showing
