"""A security boundary: `itertools` that hold what they are at work on; with what later versions of Python have added.

Written in C, `chain` and its kind call an iterator that stands in a field of their own, and empty the field when it
ends. Code that was called there could enter them again and have the iterator freed that was at work; others did so to
a total or a number (CPython 3.11 to 3.13). What calls no code is passed on as it is.
"""

from __future__ import annotations

import collections
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import FunctionType, GeneratorType
from typing import Any, Final, Generic, Self, TypeVar

from ....guest.type_flags import remove_methods, replace_method
from .held_items import alone

T = TypeVar("T")

__all__ = ["accumulate", "batched", "chain", "count", "cycle", "islice", "pairwise", "zip_longest"]

_SEQUENCES: Final = (list, tuple, str, bytes, bytearray, collections.deque)
_TABLES: Final[tuple[Any, ...]] = (dict, type({}.keys()), type({}.values()), type({}.items()), set, frozenset)
_QUIET: Final = frozenset(
    {
        *_SEQUENCES,
        *_TABLES,
        range,
        itertools.repeat,
        GeneratorType,  # Python refuses to enter one that is at work
        *(type(iter(kind())) for kind in _SEQUENCES),
        *(type(iter(kind)) for kind in (range(0), range(1 << 80))),
        *map(type, map(iter, (dict[Any, Any](), dict[Any, Any]().values(), dict[Any, Any]().items(), set[Any]()))),
    }
)
"""Classes whose objects call no code while they are iterated over."""
_PLAIN: Final = frozenset({int, float, bool, complex, str, Decimal, Fraction, type(None)})
"""Classes whose addition calls no code."""
_real: Final[Any] = itertools
_make_chain: Final[Callable[..., Any]] = itertools.chain.__new__
_chain_each: Final[Callable[..., Any]] = vars(itertools.chain)["from_iterable"].__get__
_make_zip: Final[Callable[..., Any]] = itertools.zip_longest.__new__
_make_total: Final[Callable[..., Any]] = itertools.accumulate.__new__
_make_count: Final[Callable[..., Any]] = itertools.count.__new__


class _Held(Generic[T]):
    """Gives what an iterator gives, and holds it while it is at work: its class finds `__next__` in the object."""

    __slots__ = ("__next__",)
    __next__: Callable[[], T]

    def __init__(self, items: Iterable[T]) -> None:
        self.__next__ = partial(next, iter(items))  # it is a slot

    def __iter__(self) -> Self:
        return self


class _Later(Generic[T]):
    """Is iterated over so."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items

    def __iter__(self) -> _Held[T]:
        return _Held(self._items)


def _each_held(iterables: Iterable[Iterable[T]]) -> Iterator[Iterable[T]]:
    for each in iterables:
        yield each if type(each) in _QUIET else _Later(each)


class chain(_real.chain):  # type: ignore[misc]  # noqa: N801 - Python's own spelling
    """Gives the items of the first iterable, then those of the second, and so on."""

    __slots__ = ("_source",)

    def __new__(cls, *iterables: Iterable[Any]) -> Any:
        """Chain these iterables."""
        if not _QUIET.issuperset(map(type, iterables)):
            iterables = tuple(_each_held(iterables))
        return _make_chain(cls, *iterables)

    @classmethod
    def from_iterable(cls, iterable: Iterable[Iterable[Any]], /) -> Any:
        """Chain the iterables that an iterable gives."""
        source = _each_held(iter(iterable))
        held: type = cls
        made = _chain_each(None, cls if issubclass(held, chain) else chain)(source)
        made._source = source
        return made

    def __setstate__(self, state: tuple[Any, ...], /) -> None:
        source, *active = state
        self._source = _each_held(source)
        super().__setstate__((self._source, *map(_Held, active)))


def _keeping(real: Any) -> Any:
    """Return a class of iterators that keep the one that they take items from as long as they live."""
    make: Callable[..., Any] = real.__new__

    class Kept(real):  # type: ignore[misc]  # a class that is made of another
        __slots__ = ("_source",)

        def __new__(cls, iterable: Iterable[object], *arguments: Any, **keywords: Any) -> Any:
            source = iter(iterable)
            made = make(cls, source, *arguments, **keywords)
            made._source = source
            return made

    Kept.__name__ = Kept.__qualname__ = real.__name__
    Kept.__new__.__qualname__ = f"{real.__name__}.__new__"
    Kept.__doc__ = real.__doc__
    return Kept


islice, cycle, pairwise = map(_keeping, (itertools.islice, itertools.cycle, itertools.pairwise))


class zip_longest(_real.zip_longest):  # type: ignore[misc]  # noqa: N801 - Python's own spelling
    """Gives tuples of the first items, of the second ones and so on, up to the end of the longest iterable."""

    __slots__ = ()

    def __new__(cls, *iterables: Iterable[Any], fillvalue: object = None) -> Any:
        """Put `fillvalue` in place of what is missing."""
        parts = (each if type(each) in _QUIET else alone(iter(each)) for each in iterables)
        return _make_zip(cls, *parts, fillvalue=fillvalue)


class accumulate(_real.accumulate):  # type: ignore[misc]  # noqa: N801 - Python's own spelling
    """Gives the sums of the first items, or what another function makes of two."""

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Any], func: Callable[..., Any] | None = None, *, initial: object = None) -> Any:
        """Begin with `initial`, where it is not None."""
        if func is None:
            items = tuple(iterable) if type(iterable) is list else iterable  # a list may get others
            if type(items) in {tuple, range} and _PLAIN.issuperset(map(type, (initial, *items))):
                return _make_total(cls, items, initial=initial)
            func = _add
        elif type(func) is not FunctionType:
            func = _holding(func)
        return _make_total(cls, iterable, func, initial=initial)


def _add(total: Any, item: Any) -> Any:
    return total + item  # the frame holds both


def _holding(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda total, item: function(total, item)  # noqa: PLW0108 - its frame holds both


class count(_real.count):  # type: ignore[misc]  # noqa: N801 - Python's own spelling
    """Gives a number and then one that is `step` more, and so on. Numbers of other classes come from a generator."""

    __slots__ = ()

    def __new__(cls, start: Any = 0, step: Any = 1) -> Any:
        """Begin at `start`. Raises TypeError for what is not a number."""
        made = _make_count(cls, start, step)
        return made if type(start) in _PLAIN and type(step) in _PLAIN else _counted(start, step)


def _counted(number: Any, step: Any) -> Iterator[Any]:
    while True:
        yield number
        number = number + step  # not in place, which an object may do otherwise


if sys.version_info >= (3, 12):
    batched = _keeping(itertools.batched)
else:

    class batched(Generic[T]):  # noqa: N801 - Python's own spelling
        """Gives tuples of `n` items, the last one maybe shorter."""

        __slots__ = ("_items", "_n")

        def __init__(self, iterable: Iterable[T], n: int) -> None:
            if n < 1:
                raise ValueError("n must be at least one")
            self._items = iter(iterable)
            self._n = n

        def __iter__(self) -> Self:
            return self

        def __next__(self) -> tuple[T, ...]:
            batch = tuple(islice(self._items, self._n))
            if not batch:
                raise StopIteration
            return batch


def hold() -> None:
    """Never hand out the iterators below these classes, and let the elements of a counter be chained so."""
    vars(collections)["_chain"] = chain
    replace_method(itertools.chain, "from_iterable", chain.__dict__["from_iterable"])
    newer = () if sys.version_info < (3, 12) else (batched,)
    for cls in (accumulate, chain, count, cycle, islice, pairwise, zip_longest, *newer):
        remove_methods(cls.__base__, ["__new__"])  # a class of the code's own would find it by `super`
