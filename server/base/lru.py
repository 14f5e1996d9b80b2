"""A dictionary of the entries that were set or used last, up to a number."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(OrderedDict[K, V]):
    """A dictionary that drops the entry that was set or used the longest ago once there are more than `most`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)

    def used(self, key: K) -> V | None:
        """Return the value of a key, None where there is none, and count the key as used."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)
