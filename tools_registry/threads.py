"""Long work on what servers send, in a thread: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

Checkpoint = Callable[[], None]
"""Called between slices of long work: it lets others run, and raises where the work is to end."""

_T = TypeVar("_T")


class InThread(Protocol):
    """Does work in a thread, and gives it the checkpoint that it calls now and then."""

    def __call__(self, work: Callable[[Checkpoint], _T], /) -> Awaitable[_T]:
        """Return what the work does, and raise what it raises."""


async def in_default_thread(work: Callable[[Checkpoint], _T], /) -> _T:
    """Do work in a thread of the event loop's own, where nothing better is given."""
    return await asyncio.to_thread(work, lambda: None)
