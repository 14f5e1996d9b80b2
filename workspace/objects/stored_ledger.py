"""The count of a workspace in an object store: what all servers stored, and what this one has beyond that."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from ..errors import Unavailable
from ..paths import Root, WalkedEntry
from ..quota import LOCK_SECONDS, RECOUNT_FULL_SECONDS, Ledger


class StoredLedger(Ledger):
    """`Ledger` whose lock is this process's own. `stored` gives bytes and entries of what is stored.

    `change` counts what is in this server's cache alone: temporary files, and what runs wrote and did not close yet.
    """

    def __init__(
        self,
        root: Root,
        beside: Root,
        stored: Callable[[], tuple[int, int]],
        *,
        quota_bytes: int,
        files_max: int,
        removed_bytes: Callable[[], int],
    ) -> None:
        self._stored = stored
        self._local = threading.RLock()
        self._local_bytes = self._local_entries = 0
        super().__init__(root, beside, quota_bytes=quota_bytes, files_max=files_max, removed_bytes=removed_bytes)

    def _open(self) -> int:
        return -1

    def _note(self, *, changing: bool) -> None:
        pass

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the cache against every other thread, and ask nothing. May be nested. Raises `Unavailable`."""
        if not self._local.acquire(timeout=LOCK_SECONDS):
            raise Unavailable("The workspace is busy with another write. Try again.")
        try:
            yield
        finally:
            self._local.release()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the cache with a count that is fresh, which is asked for before. Raises `Unavailable`."""
        if self._older_than(RECOUNT_FULL_SECONDS):
            self.recount()
        with self.held():
            yield

    def recount(self, visit: Callable[[WalkedEntry], None] = lambda _: None) -> None:  # noqa: ARG002 - files are visited by whoever lists them
        """Ask for the count anew."""
        used_bytes, entries = self._stored()
        with self._local:
            self.used_bytes = max(0, used_bytes + self._local_bytes)
            self.entries = max(0, entries + self._local_entries)
            self._counted_at = time.monotonic()

    def ask_again(self) -> None:
        """Let the next to take the lock ask for the count."""
        self._counted_at = None

    def count_local(self, more_bytes: int, more_entries: int) -> None:
        """Count what the cache has more than the store, or less."""
        with self._local:
            self._local_bytes += more_bytes
            self._local_entries += more_entries
            super()._count(more_bytes, more_entries)

    _count = count_local
