"""`itertools` with what later versions of Python have added."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from typing import Generic, Self, TypeVar

T = TypeVar("T")

__all__: list[str] = []

if sys.version_info < (3, 12):
    __all__ += ["batched"]


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
        batch = tuple(itertools.islice(self._items, self._n))
        if not batch:
            raise StopIteration
        return batch
