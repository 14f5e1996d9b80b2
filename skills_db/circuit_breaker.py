"""Refuses calls at once while a database server is known not to answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import CommitUnknown, DatabaseUnreachable

QUICK_SECONDS = 1.0
"""A server that says no sooner than this is not silent, and may be asked again at once."""
REST_SECONDS = 1.0
"""How long no call tries again after one failed."""


class Silence:
    """Remembers that a server did not answer: until it does, one thread at a time asks it, the others are refused.

    For a moment after a call failed none is tried, so that those that waited for a lock meanwhile do not each ask one
    after another. So the threads that are there for the database are free again, and however many callers wait for
    them, all fail within the time that one answer may take. The next call after the server has come back finds that it
    has.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._changing = threading.Lock()
        self._since: float | None = None
        self._failed_at = 0.0
        self._asking: int | None = None

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Note what comes of the block. Raises `DatabaseUnreachable` where another thread is asking already."""
        asks = self._begin()
        began = time.monotonic()
        try:
            yield
        except (DatabaseUnreachable, CommitUnknown):
            now = time.monotonic()
            if now - began >= QUICK_SECONDS:
                with self._changing:
                    self._failed_at = now
                    self._since = self._since or began
            raise
        else:
            self._since = None
        finally:
            if asks:
                self._asking = None

    def _begin(self) -> bool:
        """Return whether this thread is the one that asks a silent server."""
        with self._changing:
            if self._since is None or self._asking == threading.get_ident():
                return False
            now = time.monotonic()
            if self._asking is not None or now < self._failed_at + REST_SECONDS:
                seconds = now - self._since
                raise DatabaseUnreachable(
                    f"{self._place} has not answered for {seconds:.0f} seconds, so nothing was changed. Try again in a "
                    "moment, or check that the server runs and can be reached."
                )
            self._asking = threading.get_ident()
            return True
