"""The count of a workspace in an object store: what all servers counted, and what this one has not written yet."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from ..errors import QuotaFull, Unanswered, Unavailable
from ..paths import Found, Root
from ..quota import LOCK_SECONDS, RECOUNT_FULL_SECONDS, Ledger
from .counts import Counts

_NEARLY_FULL = 0.9
LISTING_SECONDS = 60.0
"""How old a listing may be before anything is refused; each costs a request for a thousand objects."""


class StoredLedger(Ledger):
    """`Ledger` whose lock is this process's own, and whose count `counts` keeps for all servers.

    `change` counts what is in this server's cache alone: temporary files, and what runs wrote and did not close yet.
    `claimed` is the way to write to the store. `listed` gives the bytes and the number of all objects.
    """

    def __init__(
        self,
        root: Root,
        beside: Root,
        counts: Counts,
        listed: Callable[[], tuple[int, int]],
        *,
        quota_bytes: int,
        files_max: int,
        removed_bytes: Callable[[], int],
    ) -> None:
        self._counts = counts
        self._listed = listed
        self._local = threading.RLock()
        self._holder: int | None = None
        self._depth = 0
        self._listing = threading.Lock()
        self._looks_full = False
        self._local_bytes = self._local_entries = 0
        self._asked_at: float | None = None
        self._listed_at: float | None = None
        super().__init__(root, beside, quota_bytes=quota_bytes, files_max=files_max, removed_bytes=removed_bytes)

    def _open(self) -> int:
        return -1

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the cache against every other thread, and ask nothing. May be nested. Raises `Unavailable`."""
        if not self._local.acquire(timeout=LOCK_SECONDS):
            raise Unavailable("The workspace is busy with another write. Try again.")
        self._holder = threading.get_ident()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._holder = None
            self._local.release()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the cache with a count that is fresh, which is asked for before. Raises `Unavailable`."""
        if self._holder != threading.get_ident():
            self._freshen()
        with self.held():
            yield

    def _freshen(self) -> None:
        """Ask for the count where it is old, and list where it says that there is hardly any room. Nothing is held."""
        if self._is_old():
            self._ask()
        if self._looks_full and self._listing.acquire(blocking=False):
            try:
                self._list_when_old()
                self._looks_full = False
            finally:
                self._listing.release()
            if self._is_old():
                self._ask()

    def _is_old(self) -> bool:
        return self._asked_at is None or time.monotonic() - self._asked_at > RECOUNT_FULL_SECONDS

    def _ask(self) -> None:
        """Ask for the count, and list where nobody ever did; call that with nothing held."""
        stored_bytes, entries, _, is_known = self._counts.used()
        if not is_known and self._holder != threading.get_ident():
            if not self._listing.acquire(timeout=LOCK_SECONDS):
                raise Unavailable("The files of the workspace are being counted for the first time. Try again later.")
            try:
                if not self._counts.used()[3]:
                    self.recount_objects()
            finally:
                self._listing.release()
            stored_bytes, entries, _, _ = self._counts.used()
        with self._local:
            self.used_bytes = max(0, stored_bytes + self._local_bytes)
            self.entries = max(0, entries + self._local_entries)
            self._asked_at = time.monotonic()
            self._looks_full = self._looks_full or (
                self.used_bytes > self.quota_bytes * _NEARLY_FULL or self.entries > self.files_max * _NEARLY_FULL
            )

    def recount_objects(self, found: tuple[int, int] | None = None, version: int | None = None) -> None:
        """Count what a listing found that was begun at a version of the count, or list now."""
        if found is None or version is None:
            version = self.version()
            found = self._listed()
        self._counts.recounted(version, *found)
        self._listed_at = time.monotonic()
        self._asked_at = None

    def version(self) -> int:
        """Return the version of the count, for a listing that begins now."""
        return self._counts.used()[2]

    def recount(self, visit: Callable[[Found], None] = lambda _: None) -> None:  # noqa: ARG002 - objects are visited by whoever lists them
        """Ask for the count anew; the objects themselves are counted when one lists them."""
        self._ask()

    @contextlib.contextmanager
    def change(self, *, more_bytes: int, more_entries: int, is_counted: bool = True) -> Iterator[None]:
        """Do a change of this size in the cache; call with the lock held. Raises `QuotaFull` before it is done."""
        self.judge(more_bytes=more_bytes, more_entries=more_entries)
        yield
        if is_counted:
            self.count_local(more_bytes, more_entries)

    def judge(self, *, more_bytes: int, more_entries: int) -> None:
        """Raise `QuotaFull` where there is no room for a change of this size; call with the lock held.

        What other programs removed from the bucket is found when the next takes the lock: nothing is listed under it.
        """
        if self._asked_at is None or self._too_much(more_bytes, more_entries):
            self._ask()
        reason = self._too_much(more_bytes, more_entries)
        if reason:
            self._looks_full = True
            raise QuotaFull(f"{reason} Nothing was written. Delete files that are no longer needed, or write less.")

    def give_back(self, *, entries: int, bytes_: int = 0) -> None:
        """Count what is gone from the cache."""
        self.count_local(-bytes_, -entries)

    def count_local(self, more_bytes: int, more_entries: int) -> None:
        """Count what the cache has more than the store, or less."""
        with self._local:
            self._local_bytes += more_bytes
            self._local_entries += more_entries
            self.used_bytes = max(0, self.used_bytes + more_bytes)
            self.entries = max(0, self.entries + more_entries)

    def ask_again(self) -> None:
        """Have the next to take the lock ask for the count."""
        self._asked_at = None

    def count_stored(self, more_bytes: int, more_entries: int) -> None:
        """Count what was removed from the store."""
        self._counts.finish(None, more_bytes, more_entries)
        self._asked_at = None

    @contextlib.contextmanager
    def claimed(self, more_bytes: int, more_entries: int, *, of_cache: bool = False) -> Iterator[None]:
        """Do a change of this size in the store, with nothing locked. Raises `QuotaFull` before it is done.

        `of_cache` says that the cache has it already, so that it is counted there no more.
        """
        claim = None
        if more_bytes > 0 or more_entries > 0:
            claim = self._claim(more_bytes, more_entries)
        try:
            yield
        except Unanswered:
            raise  # it may have been done: the claim counts until it expires
        except BaseException:
            if claim is not None:
                self._counts.finish(claim, 0, 0)
            raise
        self._counts.finish(claim, more_bytes, more_entries)
        with self._local:
            if of_cache:
                self._local_bytes -= more_bytes
                self._local_entries -= more_entries
            self._asked_at = None

    def _claim(self, more_bytes: int, more_entries: int) -> int:
        for is_last in (False, True):
            claim = self._counts.claim(more_bytes, more_entries, bytes_max=self.quota_bytes, entries_max=self.files_max)
            if claim is not None:
                return claim
            if not is_last:
                self._list_when_old()
        self._asked_at = None
        used_bytes, entries, _, _ = self._counts.used()
        free = max(0, self.quota_bytes - used_bytes)
        raise QuotaFull(
            f"The workspace is full: {more_bytes} more bytes were needed, {free} of {self.quota_bytes} are free, and "
            f"{entries} of {self.files_max} files are there. Nothing was written. Delete files that are no longer "
            "needed, or write less."
        )

    def _list_when_old(self) -> None:
        if self._listed_at is None or time.monotonic() - self._listed_at > LISTING_SECONDS:
            self.recount_objects()
