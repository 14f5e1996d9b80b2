"""What the workspace holds, counted once and then kept in step by every process that has it open.

The count is kept in a small file, whose `flock(2)` is also the lock under which anything is changed. It lies beside the
workspace: code that sees the workspace could lock it with no right but to read. A process that is killed in the middle
of a change leaves the ledger marked as changing. The next process that takes the lock counts the files anew. What other
programs add or remove by hand, and what is missing of a change in steps that a process was killed in, is noticed within
`RECOUNT_SECONDS`, and within `RECOUNT_FULL_SECONDS` before anything is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

from .errors import NotAFile, NotFound, QuotaFull, Unavailable
from .names import PART_PREFIX, TEMPORARY_PREFIX, Name
from .paths import Root, WalkedEntry, refusing

RECOUNT_SECONDS = 30.0
RECOUNT_FULL_SECONDS = 1.0
LOCK_SECONDS = 20.0
_STEP_SECONDS = 0.005
"""How long a change of many parts holds the lock at a time."""

LEDGER = Name((".ledger",))
_RECORD = struct.Struct("<8sQQB")
_MAGIC = b"sealab-1"


class Part(NamedTuple):
    """A part of a change: what does it, and by how much the workspace grows."""

    act: Callable[[], None]
    more_bytes: int
    more_entries: int


class Ledger:
    """The bytes and entries (files and folders together) of the workspace `root`, and the lock on changing them.

    Runs' temporary folders, which lie in `beside`, count as well.

    Threads and processes take turns; `locked` waits at most `LOCK_SECONDS`. The ledger's file lies in `beside`.
    `removed_bytes` counts what has no name any more and takes room all the same.
    """

    def __init__(
        self,
        root: Root,
        beside: Root,
        *,
        quota_bytes: int,
        files_max: int,
        removed_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        self._removed_bytes = removed_bytes
        self.quota_bytes = quota_bytes
        self.files_max = files_max
        self.used_bytes = 0
        self.entries = 0
        self._root = root
        self._beside = beside
        self._pending_bytes = self._pending_entries = 0
        self._turn = threading.Lock()
        self._counted_at: float | None = None
        self._handle = self._open()

    def _open(self) -> int:
        with refusing(LEDGER), self._beside.open_folder(()) as folder, contextlib.suppress(FileExistsError):
            os.close(folder.create(LEDGER.leaf))
        try:
            return self._beside.open_file(LEDGER, os.O_RDWR)[0]
        except (NotAFile, NotFound):
            raise Unavailable(
                f"{LEDGER} beside the workspace is not sealab's own file. Remove it and start again."
            ) from None

    def close(self) -> None:
        """Close the file. May be called twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the workspace against every other thread and process, with `used_bytes` and `entries` up to date.

        Raises `Unavailable` when another process holds it for too long.
        """
        deadline = time.monotonic() + LOCK_SECONDS
        if not self._turn.acquire(timeout=LOCK_SECONDS):
            raise Unavailable("The workspace is busy with another write. Try again.")
        try:
            self._lock_file(deadline)
            try:
                self._catch_up()
                yield
            finally:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        finally:
            self._turn.release()

    def _lock_file(self, deadline: float) -> None:
        pause = 0.0005
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable("Another sealab process holds the workspace. Try again, or end it.") from None
                time.sleep(pause)
                pause = min(pause * 2, 0.02)
            except OSError as error:
                raise Unavailable(
                    f"The workspace cannot be locked ({error.strerror}). Put it on a file system with locks."
                ) from None
            else:
                return

    def _catch_up(self) -> None:
        record = os.pread(self._handle, _RECORD.size + 1, 0)
        if len(record) == _RECORD.size and not self._older_than(RECOUNT_SECONDS):
            magic, used_bytes, entries, changing = _RECORD.unpack(record)
            if magic == _MAGIC and not changing:
                self.used_bytes, self.entries = used_bytes, entries
                return
        self.recount()

    def _older_than(self, seconds: float) -> bool:
        return self._counted_at is None or time.monotonic() - self._counted_at > seconds

    def _note(self, *, changing: bool) -> None:
        with refusing(LEDGER):
            os.pwrite(self._handle, _RECORD.pack(_MAGIC, self.used_bytes, self.entries, changing), 0)

    def recount(self, visit: Callable[[WalkedEntry], None] = lambda _: None) -> None:
        """Count every file; call with the lock held. What a killed write left behind is removed on the way.

        `visit` is shown every entry of the workspace; runs' temporary files, which lie beside it, count as well.
        Takes about 10 ms for a thousand files.
        """
        used_bytes = entries = 0
        leftovers = []
        for found in self._root.walk():
            if found.parts[-1].startswith(PART_PREFIX):
                leftovers.append(found.parts)
                continue
            used_bytes += found.size
            entries += 1
            visit(found)
        for found in self._temporary():
            used_bytes += found.size
            entries += 1
        for parts in leftovers:
            with contextlib.suppress(OSError, NotFound, NotAFile), self._root.open_folder(parts[:-1]) as folder:
                folder.unlink(parts[-1])
        self.used_bytes, self.entries = used_bytes + self._pending_bytes, entries + self._pending_entries
        self._counted_at = time.monotonic()
        self._note(changing=False)

    def _temporary(self) -> Iterator[WalkedEntry]:
        """Visit the runs' temporary folders and what is in them."""
        with self._beside.open_folder(()) as top:
            folders = [name for name in top.names() if name.startswith(TEMPORARY_PREFIX)]
        for name in folders:
            yield WalkedEntry((name,), 0, 0, is_folder=True, is_plain=False)
            yield from self._beside.walk((name,))

    @contextlib.contextmanager
    def change(self, *, more_bytes: int, more_entries: int, is_counted: bool = True) -> Iterator[None]:
        """Do a change of this size; call with the lock held. Negative numbers give back.

        Of a file that has no name any more nothing is counted: there only has to be room.

        Raises `QuotaFull` before anything is done. When the body raises, the next to take the lock counts anew.
        """
        self.judge(more_bytes=more_bytes, more_entries=more_entries)
        if not is_counted:
            yield
            return
        self._note(changing=True)
        yield
        self._count(more_bytes, more_entries)

    def _count(self, more_bytes: int, more_entries: int) -> None:
        self.used_bytes = max(0, self.used_bytes + more_bytes)
        self.entries = max(0, self.entries + more_entries)
        self._note(changing=False)

    def change_in_steps(self, parts: Sequence[Part]) -> Generator[None, None, None]:
        """Do a change of many parts, which is counted first, in steps between which others take the lock.

        Raises as `change`, and as a part does, after which the rest is not done.
        """
        more_bytes, more_entries = sum(part.more_bytes for part in parts), sum(part.more_entries for part in parts)
        with self.locked():
            self.judge(more_bytes=more_bytes, more_entries=more_entries)
            self._count(more_bytes, more_entries)
            self._pending(more_bytes, more_entries)
        at = 0
        try:
            while at < len(parts):
                yield
                with self.locked():
                    end = time.monotonic() + _STEP_SECONDS
                    for part in parts[at:]:
                        part.act()
                        self._pending(-part.more_bytes, -part.more_entries)
                        at += 1
                        if time.monotonic() > end:
                            break
        finally:
            if at < len(parts):
                with self.locked():
                    self._pending(
                        -sum(part.more_bytes for part in parts[at:]), -sum(part.more_entries for part in parts[at:])
                    )
                    self._note(changing=True)

    def _pending(self, more_bytes: int, more_entries: int) -> None:
        """Note what is counted and not done yet; call with the lock held."""
        self._pending_bytes += more_bytes
        self._pending_entries += more_entries

    def judge(self, *, more_bytes: int, more_entries: int) -> None:
        """Raise `QuotaFull` where there is no room for a change of this size; call with the lock held."""
        if self._too_much(more_bytes, more_entries) and self._older_than(RECOUNT_FULL_SECONDS):
            self.recount()
        reason = self._too_much(more_bytes, more_entries)
        if reason:
            raise QuotaFull(f"{reason} Nothing was written. Delete files that are no longer needed, or write less.")

    def give_back(self, *, entries: int, bytes_: int = 0) -> None:
        """Count what is gone; call with the lock held."""
        if entries:
            self._count(-bytes_, -entries)

    def _too_much(self, more_bytes: int, more_entries: int) -> str | None:
        used_bytes = self.used_bytes + self._removed_bytes() if more_bytes > 0 else 0
        if more_bytes > 0 and used_bytes + more_bytes > self.quota_bytes:
            free = max(0, self.quota_bytes - used_bytes)
            return f"The workspace is full: {more_bytes} more bytes were needed, {free} of {self.quota_bytes} are free."
        if more_entries > 0 and self.entries + more_entries > self.files_max:
            return f"The workspace holds {self.entries} files and folders; {self.files_max} are allowed."
        return None
