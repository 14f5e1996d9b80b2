"""The archive of runs in an object store: several runs are stored at once, and nobody waits for those of another.

A run whose report holds everything waits in memory and is stored after its reply, by one request. Reading a run waits
for that run alone, listing those of an owner for that owner's. Where the store does not take them they go on waiting,
so many at most; then, and until the store takes one again, a run is stored before its reply or its report says why not.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor

from ..archive import BYTES_MAX, RunArchive
from ..errors import NameRefused, Unavailable, WorkspaceError
from ..names import is_run_of, run_folder, run_in, shown
from .stored_workspace import StoredWorkspace

AT_ONCE = 8
"""How many of the runs that wait are stored at a time."""
WAITING_MAX = 256
WAITING_BYTES_EACH = 64 * 1024

_LOOKS = 16
"""What is kept is looked through each time that a part of this much of what may be there came anew."""
_LOG = logging.getLogger(__name__)


class StoredRunArchive(RunArchive):
    """`RunArchive` in the object store: the last `kept` runs of all servers together, and a few more for a while."""

    def __init__(self, workspace: StoredWorkspace, kept: int = 200, *, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(workspace, kept, bytes_max=bytes_max)
        self._stored = workspace.kept
        self._changed = threading.Condition()
        self._backlog: OrderedDict[str, bytes] = OrderedDict()
        self._storing: set[str] = set()
        self._storers = 0
        self._tidying = threading.Lock()
        self._new_runs, self._new_bytes = kept, 0

    @property
    def waiting(self) -> int:
        """How many runs were taken and are not stored yet."""
        with self._changed:
            return len(self._backlog) + len(self._storing)

    def keep_soon(self, run_id: str, *, owner: str, code: str) -> bool:
        """Take a run that the next `flush` stores, as `RunArchive.keep_soon` does."""
        folder = run_folder(owner, run_id)
        data = code.encode(errors="backslashreplace")
        with self._changed:
            is_taken = folder in self._backlog or folder in self._storing
            if self._refused or is_taken or len(data) > WAITING_BYTES_EACH or len(self._backlog) >= WAITING_MAX:
                return False
            self._backlog[folder] = data
        return True

    def flush(self) -> None:
        """Store all runs that wait now, several at once. What the store does not take goes on waiting."""
        with self._changed:
            wanted = {*self._backlog, *self._storing}
            more = min(AT_ONCE - self._storers, len(self._backlog)) - 1
        for _ in range(more):
            threading.Thread(target=self._store_waiting, name="sealab archive", daemon=True).start()
        self._store_waiting()
        with self._changed:
            self._changed.wait_for(lambda: self._is_done_with(wanted))
        self._tidy()

    def _is_done_with(self, wanted: set[str]) -> bool:
        return wanted.isdisjoint(self._storing) and (not self._storers or wanted.isdisjoint(self._backlog))

    def settle(self, owner: str | None = None, folder: str | None = None) -> None:
        """Store what waits before it is read: all of it, the runs of an owner, or the one of a folder's name.

        Raises `Unavailable` where the store does not take what is to be read.
        """
        if owner is None:
            self.flush()
            return
        with self._changed:
            wanted = [each for each in (*self._storing, *self._backlog) if is_run_of(owner, each)]
        if folder is not None:
            wanted = [each for each in wanted if each == folder]
        if len(wanted) < 2:  # noqa: PLR2004 - one needs no threads
            for each in wanted:
                self._settle_one(each)
            return
        with ThreadPoolExecutor(AT_ONCE, "sealab archive") as storing:
            list(storing.map(self._settle_one, wanted))

    def _settle_one(self, folder: str) -> None:
        with self._changed:
            data = self._backlog.pop(folder, None)
            if data is None:
                self._changed.wait_for(lambda: folder not in self._storing)
            else:
                self._storing.add(folder)
        if data is not None:
            self._store(folder, data)
        with self._changed:
            is_there = folder not in self._backlog
        if not is_there:
            raise Unavailable(
                f"What is kept of the run {shown(run_in(folder) or folder)} waits for the object store, which does not "
                "take it now. Try again later."
            )

    def _keep_now(self, folder: str, files: dict[str, bytes]) -> None:
        self._put(folder, files)
        self._refused = False
        self._tidy()

    def _store_waiting(self) -> None:
        """Store one run that waits after the other, until none does or the store takes no more."""
        with self._changed:
            if self._storers >= AT_ONCE:
                return
            self._storers += 1
        try:
            goes_on = True
            while goes_on:
                with self._changed:
                    if not self._backlog:
                        break
                    folder, data = self._backlog.popitem(last=False)
                    self._storing.add(folder)
                goes_on = self._store(folder, data)
        finally:
            with self._changed:
                self._storers -= 1
                self._changed.notify_all()

    def _store(self, folder: str, data: bytes) -> bool:
        """Store a run that was taken; return whether the store answered. Else it waits again, before the others."""
        answered = False
        try:
            self._put(folder, {"code.py": data})
            answered = True
        except NameRefused as error:
            answered = True
            _LOG.warning("The run %s could not be kept: %s", run_in(folder), error)
        except WorkspaceError as error:
            if not self._refused:
                _LOG.warning("Runs cannot be kept now, and wait: %s", error)
        finally:
            with self._changed:
                self._refused = not answered
                self._storing.discard(folder)
                if not answered:
                    self._backlog[folder] = data
                    self._backlog.move_to_end(folder, last=False)
                self._changed.notify_all()
        return answered

    def _put(self, folder: str, files: dict[str, bytes]) -> None:
        self._stored.put(folder, files)
        with self._turn:
            self._new_runs += 1
            self._new_bytes += sum(map(len, files.values()))

    def _tidy(self) -> None:
        """Drop what is too much of what all servers kept, one thread for all."""
        with self._turn:
            is_due = self._new_runs * _LOOKS >= self.kept or self._new_bytes * _LOOKS >= self.bytes_max
        if not is_due or not self._tidying.acquire(blocking=False):
            return
        try:
            with self._turn:
                self._new_runs = self._new_bytes = 0
            there = deque(self._stored.listed())
            size = sum(run.size for run in there)
            dropped = []
            while len(there) > 1 and (len(there) > self.kept or size > self.bytes_max):
                dropped.append(there.popleft())
                size -= dropped[-1].size
            if dropped:
                self._stored.drop(dropped)
        except WorkspaceError as error:
            _LOG.warning("Old runs could not be dropped, which is tried again: %s", error)
            self._new_runs = self.kept
        finally:
            self._tidying.release()
