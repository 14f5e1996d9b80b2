"""Which host calls count as being worked on.

A worker may have a few calls answered at the same time, since each may hold memory and threads of the host. A call that
only waits for an upstream server or a user, holds neither, and steps aside meanwhile: so a hundred calls
of slow tools take as long as the slowest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

CALL_SLOT: ContextVar[Callable[[], AbstractContextManager[None]] | None] = ContextVar("CALL_SLOT", default=None)
"""How the host call that is being answered steps aside."""


@contextmanager
def slot_given_back() -> Iterator[None]:
    """Do not count the current host call while it only waits."""
    slot = CALL_SLOT.get()
    if slot is None:
        yield
        return
    with slot():
        yield
