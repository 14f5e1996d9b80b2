"""Lays the zygote's heap out in huge pages: a fork then copies one entry of the page table where it copied 512.

A worker's fork, and its end, cost in proportion to the pages that the zygote holds, most of which the worker never
writes to. CPython's arenas would be scattered between the libraries that are loaded meanwhile. So they are made first,
side by side, and merged at the end: madvise(2), MADV_COLLAPSE, Linux 6.1. Where the
kernel does not do it, nothing but the time changes.

On CPython 3.11 a run takes 0.90 of the CPU time of zygote and workers with it, and one call after another 0.79 of the
time. On 3.12, where objects are immortal, these are 0.86 and 0.96. They are medians of ten servers each in turns, of
200 runs each, as `tests/benchmarks/latency.py` measures them.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import IO

HUGE_PAGE_BYTES = 2 << 20
"""On x86-64, and on arm64 with pages of 4 KB."""

_MADV_COLLAPSE = 25
_ARENA_BYTES = 1 << 20
"""CPython's obmalloc.c, ARENA_SIZE, since 3.10."""
_BLOCK_BYTES = 480
"""Less than the largest that obmalloc.c takes for itself."""
_HEAP_BYTES = 14 << 20
_POOL_BYTES = 1 << 14
_POOL_HEADER_BYTES = 48
_BLOCK_MAX = 512
_POOLS_MAX = 4
"""Pools of one size that are filled at most; where CPython lays out pools differently, none is recognized."""
_SMALLEST: dict[int, Callable[[], object]] = {16: object, 32: partial(int, "1000")}

_kept: list[object] = []


def reserve() -> None:
    """Make the arenas for what will be imported now, in one piece; call it before anything else is imported."""
    blocks = [bytes(_BLOCK_BYTES - bytes.__basicsize__) for _ in range(_HEAP_BYTES // _BLOCK_BYTES)]
    _kept.extend(blocks[:: _ARENA_BYTES // _BLOCK_BYTES - 1])  # one in each, or it would be given back


def fill_pools() -> None:
    """Take what free blocks there are, so that blocks of a size come from the beginning of a new pool from now on.

    They would come from pools all over the heap, each of which a worker would copy, and the zygote after each fork: for
    `1 + 1` a worker copies some 50 pages less of 900 on CPython 3.11, and 60 of 450 on 3.13.
    """
    for size in range(16, _BLOCK_MAX + 1, 16):
        made = partial(bytes, size - bytes.__basicsize__) if size > bytes.__basicsize__ else _SMALLEST[size]
        before = 0
        for _ in range(_POOLS_MAX * _POOL_BYTES // size):
            _kept.append(made())
            at = id(_kept[-1])
            if at == before + size and before % _POOL_BYTES == _POOL_HEADER_BYTES:
                break
            before = at


class HeapMap:
    """Where the heap of this process lies (proc(5), maps), also after it has lost sight of /proc."""

    def __init__(self) -> None:
        self._maps: IO[str] | None = None
        with contextlib.suppress(OSError):
            self._maps = open("/proc/self/maps", encoding="utf-8", errors="replace")  # noqa: SIM115 - `collapse` closes it

    def collapse(self) -> None:
        """Merge what can be merged of it; call it once, when no more is to come."""
        if self._maps is None or sys.platform != "linux":
            return
        madvise = ctypes.CDLL(None).madvise
        with self._maps as maps:
            lines = maps.read().splitlines()
        for line in lines:
            addresses, permissions, _offset, _device, inode, *name = line.split(maxsplit=5)
            if permissions == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
                begin, end = (int(address, 16) for address in addresses.split("-"))
                for page in range(-(-begin // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES, end, HUGE_PAGE_BYTES):
                    if page + HUGE_PAGE_BYTES <= end:
                        madvise(ctypes.c_void_p(page), ctypes.c_size_t(HUGE_PAGE_BYTES), _MADV_COLLAPSE)
