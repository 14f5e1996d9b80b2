"""The random bytes of a run: all of them come from its seed, which the host chose.

They are SHAKE-256 (FIPS 202) of the seed and a number that counts the requests: nobody who lacks the seed can tell them
from those of the machine, and two runs with one seed get the same. `random` is seeded from them too.
"""

from __future__ import annotations

import operator
import os
import random
from typing import Final, SupportsIndex

try:  # OpenSSL's writes to many pages, each of which a worker must first copy
    from _sha3 import shake_256  # type: ignore[import-not-found]  # CPython's own, which has no stubs
except ImportError:  # a build may leave it out
    from hashlib import shake_256

_PART_BYTES: Final = 1 << 24
_SEED_BYTES: Final = 32


class _Source:
    """Where the bytes come from: the machine, until a run begins."""

    __slots__ = ("_key", "_requests")

    def __init__(self) -> None:
        self._key: bytes | None = None
        self._requests = 0

    def begin(self, seed: bytes) -> None:
        self._key = seed
        self._requests = 0

    def take(self, size: int) -> bytes:
        if self._key is None:
            return _of_machine(size)
        self._requests += 1
        number = self._requests.to_bytes(8, "big")
        if size <= _PART_BYTES:
            digest: bytes = shake_256(self._key + number).digest(size)
            return digest
        parts = range(0, size, _PART_BYTES)
        return b"".join(
            shake_256(self._key + number + at.to_bytes(8, "big")).digest(min(_PART_BYTES, size - at)) for at in parts
        )


_of_machine: Final = os.urandom
_source: Final = _Source()


def begin(seed: bytes, *, is_first: bool) -> None:
    """Begin a run. In a session the state of `random` is a variable like others, and goes on."""
    _source.begin(seed)
    if is_first:
        random.seed(seed_number())


def urandom(size: SupportsIndex, /) -> bytes:
    """Return random bytes. Raises as Python's own does."""
    count = operator.index(size)
    if count < 0:
        raise ValueError("negative argument not allowed")
    return _source.take(count)


def seed_number() -> int:
    """Return a number to seed a generator with."""
    return int.from_bytes(_source.take(_SEED_BYTES), "big")
