"""Which values may have a form with some key: a table of numbers to which some are added, and from which none goes.

Of many keys of a text nearly all belong to no value. A field of flags, eight bytes a key, says so at two looks each, as
in B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13, 1970; what is left is looked up. A key and a number take twelve bytes in sorted arrays, beside a dictionary for the few
that were added last.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Found = npt.NDArray[np.uint32]

_FLAGS_PER_KEY = 8
_LEAST_BITS = 12
_SECOND = 8
"""Bits of a key below those of its second flag."""
_FEW = 2048
"""So many are kept apart from the sorted ones, or an eighth of these."""


class KeyTable:
    """Keys and the numbers of values. Changed by one thread at a time; others may look meanwhile."""

    def __init__(self) -> None:
        self._flags: tuple[npt.NDArray[np.bool_], int] = (np.zeros(1 << _LEAST_BITS, np.bool_), 64 - _LEAST_BITS)
        self._sorted: tuple[Keys, Found] = (np.empty(0, np.uint64), np.empty(0, np.uint32))
        self._new: dict[int, list[int]] = {}
        self._new_count = 0

    def __len__(self) -> int:
        return len(self._sorted[0]) + self._new_count

    def add(self, keys: Keys, numbers: Found) -> None:
        """Add keys with the numbers of the values whose they are."""
        for key, number in zip(keys.tolist(), numbers.tolist(), strict=True) if len(keys) <= _FEW else ():
            self._new.setdefault(key, []).append(number)
        if len(keys) <= _FEW:
            self._new_count += len(keys)
        if len(keys) > _FEW or self._new_count > max(_FEW, len(self._sorted[0]) // 8):
            self._sort(*((keys, numbers) if len(keys) > _FEW else (keys[:0], numbers[:0])))
        flags, shift = self._flags
        if len(self) * _FLAGS_PER_KEY > len(flags):
            self._grow()
        else:
            _set(flags, shift, keys)

    def _sort(self, keys: Keys, numbers: Found) -> None:
        """Put the new keys, and those given, among the sorted ones."""
        count = sum(map(len, self._new.values()))
        new_keys = np.fromiter((key for key, some in self._new.items() for _ in some), np.uint64, count)
        new_numbers = np.fromiter((number for some in self._new.values() for number in some), np.uint32, count)
        all_keys = np.concatenate([self._sorted[0], new_keys, keys])
        all_numbers = np.concatenate([self._sorted[1], new_numbers, numbers])
        order = np.argsort(all_keys, kind="stable")
        self._sorted = (all_keys[order], all_numbers[order])  # before the new ones go: no reader misses any
        self._new, self._new_count = {}, 0

    def _grow(self) -> None:
        bits = max(_LEAST_BITS, (2 * len(self) * _FLAGS_PER_KEY - 1).bit_length())
        flags = np.zeros(1 << bits, np.bool_)
        _set(flags, 64 - bits, self._sorted[0])
        _set(flags, 64 - bits, np.fromiter(self._new, np.uint64, len(self._new)))
        self._flags = (flags, 64 - bits)

    def held(self, keys: Keys) -> npt.NDArray[np.intp]:
        """Return the places of those keys that are here."""
        flags, shift = self._flags
        places = np.flatnonzero(flags[keys >> np.uint64(shift)])
        some = keys[places]
        places = places[flags[some >> np.uint64(_SECOND) & np.uint64(len(flags) - 1)]]
        some = keys[places]
        known, new = self._sorted[0], self._new
        if len(known):
            is_held = known[np.minimum(np.searchsorted(known, some), len(known) - 1)] == some
        else:
            is_held = np.zeros(len(some), np.bool_)
        if new:
            is_held |= np.fromiter((key in new for key in some.tolist()), np.bool_, len(some))
        found: npt.NDArray[np.intp] = places[is_held]
        return found

    def may_hold(self, key: int) -> bool:
        """Return whether a key may be here."""
        flags, shift = self._flags
        return bool(flags[key >> shift]) and bool(flags[key >> _SECOND & len(flags) - 1])

    def numbers(self, key: int, most: int) -> Iterator[int]:
        """Yield the numbers of up to `most` values that have a key, and perhaps as many more that are new."""
        keys, numbers = self._sorted
        at = int(np.searchsorted(keys, np.uint64(key)))
        end = min(len(keys), at + most)
        while at < end and keys[at] == key:
            yield int(numbers[at])
            at += 1
        yield from self._new.get(key, ())[:most]


def _set(flags: npt.NDArray[np.bool_], shift: int, keys: Keys) -> None:
    flags[keys >> np.uint64(shift)] = True
    flags[keys >> np.uint64(_SECOND) & np.uint64(len(flags) - 1)] = True
