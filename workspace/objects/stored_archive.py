"""The archive of runs in an object store: several runs are stored at once, and nobody waits for those of another.

A run whose report holds everything waits in memory and is stored after its reply, by one request. Reading a run waits
for that run alone, listing those of an owner for that owner's. Where the store does not take them they go on waiting,
so many at most; then, and until the store takes one again, a run is stored before its reply or its report says why not.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ..archive import BYTES_MAX, RunArchive
from ..errors import NameRefused, Unavailable, WorkspaceError
from ..names import is_run_of, run_folder, run_in, shown
from .kept_runs import KeptRun

if TYPE_CHECKING:
    from .stored_workspace import StoredWorkspace

AT_ONCE = 8
"""How many of the runs that wait are stored at a time."""
WAITING_MAX = 256
WAITING_BYTES_EACH = 64 * 1024

_LOOK_AGAIN = 32
_ROUNDS = 2
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
        self._there: deque[KeptRun] = deque()
        self._kept_meanwhile: list[KeptRun] = []

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
        self._stored.put(folder, files)
        self._refused = False
        self._note(folder, files)
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
            self._stored.put(folder, {"code.py": data})
            self._note(folder, {"code.py": data})
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

    def _note(self, folder: str, files: dict[str, bytes]) -> None:
        run = KeptRun(folder, sum(map(len, files.values())), tuple(files))
        with self._turn:
            self._there.append(run)
            self._kept_meanwhile.append(run)
            self._bytes += run.size
            self._until_look -= 1

    def _tidy(self) -> None:
        """Drop what is too much, one thread for all; what comes meanwhile in a second round, or by the next thread."""
        for _ in range(_ROUNDS):
            if not self._is_untidy() or not self._tidying.acquire(blocking=False):
                return
            try:
                if self._until_look <= 0:
                    self._look_anew()
                dropped = self._taken_out()
                if dropped:
                    self._stored.drop(dropped)
            except WorkspaceError as error:
                _LOG.warning("Old runs could not be dropped, which is tried again: %s", error)
                self._until_look = 0
                return
            finally:
                self._tidying.release()

    def _is_untidy(self) -> bool:
        with self._turn:
            return self._until_look <= 0 or self._is_too_much()

    def _is_too_much(self) -> bool:
        return len(self._there) > 1 and (len(self._there) > self.kept or self._bytes > self.bytes_max)

    def _taken_out(self) -> Sequence[KeptRun]:
        """Take the oldest out of those that are there, until no more are than may be."""
        found = []
        with self._turn:
            while self._is_too_much():
                found.append(self._there.popleft())
                self._bytes -= found[-1].size
        return found

    def _look_anew(self) -> None:
        """Learn what all servers kept and dropped. What is kept while the store is listed counts as the newest."""
        with self._turn:
            self._kept_meanwhile = []
        listed = self._stored.listed()
        with self._turn:
            known = {each.folder for each in listed}
            self._there = deque((*listed, *(each for each in self._kept_meanwhile if each.folder not in known)))
            self._bytes = sum(each.size for each in self._there)
            self._until_look = _LOOK_AGAIN
