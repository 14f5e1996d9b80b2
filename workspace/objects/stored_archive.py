"""The archive of runs in an object store: several runs are stored at once, and nobody waits for those of another.

A run whose report holds everything waits in memory and is stored after its reply, by one request. Reading a run waits
for that run alone, listing those of an owner for that owner's. Where the store does not take them they go on waiting,
so many at most; then, and until the store takes one again, a run is stored before its reply or its report says why not.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

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
        self._backlog: dict[str, bytes] = {}
        self._storing: dict[str, Future[None]] = {}
        self._new_runs, self._new_bytes = kept, 0

    @property
    def waiting(self) -> int:
        """How many runs were taken and are not stored yet."""
        return len(self._backlog)

    def keep_soon(self, run_id: str, *, owner: str, code: str) -> bool:
        """Take a run that the next `flush` stores, as `RunArchive.keep_soon` does."""
        folder = run_folder(owner, run_id)
        data = code.encode(errors="backslashreplace")
        with self._turn:
            is_full = len(self._backlog) >= WAITING_MAX or len(data) > WAITING_BYTES_EACH
            if self._refused or is_full or folder in self._backlog:
                return False
            self._backlog[folder] = data
        return True

    def flush(self) -> None:
        """Store all runs that wait now, several at once. What the store does not take goes on waiting."""
        waiting = list(self._backlog)
        if self._refused:
            self._store(waiting[:1], again=True)
        self._store(waiting)
        self._tidy()

    def settle(self, owner: str | None = None, folder: str | None = None) -> None:
        """Store what waits before it is read: all of it, the runs of an owner, or the one of a folder's name.

        Raises `Unavailable` where the store does not take what is to be read.
        """
        if owner is None:
            self.flush()
            return
        wanted = [each for each in list(self._backlog) if is_run_of(owner, each) and folder in {None, each}]
        self._store(wanted, again=True)
        for each in wanted:
            if each in self._backlog:
                raise Unavailable(
                    f"What is kept of the run {shown(run_in(each) or each)} waits for the object store, which does not "
                    "take it now. Try again later."
                )

    def _store(self, folders: Sequence[str], *, again: bool = False) -> None:
        """Store those of these runs that wait, or wait for whoever does; `again` also where the last was refused."""
        with self._turn:
            others = [self._storing[each] for each in folders if each in self._storing]
            mine = [each for each in folders if each in self._backlog and each not in self._storing]
            self._storing.update((each, Future()) for each in mine)
        store = partial(self._store_one, again=again)
        try:
            if len(mine) == 1:
                store(mine[0])
            elif mine:
                with ThreadPoolExecutor(AT_ONCE, "sealab archive") as threads:
                    list(threads.map(store, mine))
        finally:
            for each in mine:  # of which a thread that could not be started did none
                self._release(each, stored=False)
        wait(others)

    def _store_one(self, folder: str, *, again: bool) -> None:
        stored = False
        try:
            if again or not self._refused:
                self._put(folder, {"code.py": self._backlog[folder]})
                stored = True
                self._refused = False
        except NameRefused as error:
            stored = True
            _LOG.warning("The run %s could not be kept: %s", run_in(folder), error)
        except WorkspaceError as error:
            if not self._refused:
                _LOG.warning("Runs cannot be kept now, and wait: %s", error)
            self._refused = True
        finally:
            self._release(folder, stored=stored)

    def _release(self, folder: str, *, stored: bool) -> None:
        with self._turn:
            if stored:
                del self._backlog[folder]
            if (waited_for := self._storing.pop(folder, None)) is not None:
                waited_for.set_result(None)

    def _keep_now(self, folder: str, files: dict[str, bytes]) -> None:
        self._put(folder, files)
        self._refused = False
        self._tidy()

    def _put(self, folder: str, files: dict[str, bytes]) -> None:
        self._stored.put(folder, files)
        with self._turn:
            self._new_runs += 1
            self._new_bytes += sum(map(len, files.values()))

    def _tidy(self) -> None:
        """Drop what is too much of what all servers kept."""
        with self._turn:
            if self._new_runs * _LOOKS < self.kept and self._new_bytes * _LOOKS < self.bytes_max:
                return
            self._new_runs = self._new_bytes = 0
        try:
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
