"""What a run was and what it said, kept whole below `.runs/<run_id>/` for as long as it is among the last ones.

The archive is on the path of every execution, so nothing here waits for the disk: a run's folder is made under another
name and renamed when it is whole, so a crash of the server leaves all of a run or nothing; after a power loss the last
seconds may be missing. It has a budget of its own (`kept` runs, `bytes_max` bytes) beside the workspace's quota.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import deque
from typing import Literal, TypeAlias

from .errors import NameRefused, NotAFile, NotFound, Unavailable
from .paths import RUNS, Folder, Name, refuse, shown
from .store import Workspace

What: TypeAlias = Literal["code.py", "output.txt", "result.json"]

BYTES_MAX = 256 * 1024 * 1024

_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NEW = ".new-"
_NEW_SECONDS = 60
_LOOK_AGAIN = 32
"""After so many runs the folder is looked through anew, for what other processes kept in the meantime."""


class RunArchive:
    """The last `kept` runs of a workspace, the oldest dropped first; the newest is always there."""

    def __init__(self, workspace: Workspace, kept: int = 200, *, bytes_max: int = BYTES_MAX) -> None:
        self.kept = kept
        self.bytes_max = bytes_max
        self._root = workspace.root
        self._turn = threading.Lock()
        self._runs: deque[tuple[str, int]] = deque()
        self._bytes = 0
        self._until_look = 0

    def keep(self, run_id: str, *, code: str, output: str | None = None, result_json: str | None = None) -> None:
        """Keep a run; `output` and `result_json` are given when they were cut for the report.

        Raises `NameRefused` for a bad or taken `run_id`, `Unavailable` when the disk refuses.
        """
        _judge_run_id(run_id)
        contents = {"code.py": code, "output.txt": output, "result.json": result_json}
        files = {leaf: text.encode(errors="backslashreplace") for leaf, text in contents.items() if text is not None}
        with self._turn, self._folder() as folder:
            if self._until_look == 0:
                self._look(folder)
            self._until_look -= 1
            try:
                _put(folder, run_id, files)
            except OSError as error:
                refuse(error, Name((RUNS, run_id)))
            size = sum(map(len, files.values()))
            self._runs.append((run_id, size))
            self._bytes += size
            while len(self._runs) > 1 and (len(self._runs) > self.kept or self._bytes > self.bytes_max):
                oldest, size = self._runs.popleft()
                self._bytes -= size
                _drop(folder, oldest)

    @staticmethod
    def path_of(run_id: str, what: What) -> str:
        """Name a kept file as `Workspace.read` finds it. Raises `NameRefused`."""
        _judge_run_id(run_id)
        return f"{RUNS}/{run_id}/{what}"

    def _folder(self) -> Folder:
        try:
            return self._root.open_folder((RUNS,))
        except NotFound:
            with self._root.open_folder(()) as top, contextlib.suppress(FileExistsError):
                top.make(RUNS)
            return self._root.open_folder((RUNS,))

    def _look(self, folder: Folder) -> None:
        """Learn which runs are there, in the order in which they were kept, and drop what a crash left half made."""
        ages: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for found in self._root.walk((RUNS,)):
            run_id = found.parts[1]
            if len(found.parts) == 2 and found.is_folder:  # noqa: PLR2004 - .runs/<run_id>
                ages[run_id] = found.modified_ns
            sizes[run_id] = sizes.get(run_id, 0) + found.size
        for run_id in [run_id for run_id in ages if run_id.startswith(_NEW)]:
            if time.time() - ages.pop(run_id) / 1e9 > _NEW_SECONDS:
                _drop(folder, run_id)
        known = sorted((run_id for run_id in ages if _RUN_ID.fullmatch(run_id)), key=lambda it: (ages[it], it))
        self._runs = deque((run_id, sizes[run_id]) for run_id in known)
        self._bytes = sum(size for _, size in self._runs)
        self._until_look = _LOOK_AGAIN


def _judge_run_id(run_id: str) -> None:
    if type(run_id) is not str or not _RUN_ID.fullmatch(run_id):
        raise NameRefused(f"{shown(str(run_id))} is no run id. Use the run_id of a report.")


def _put(folder: Folder, run_id: str, files: dict[str, bytes]) -> None:
    new = _NEW + run_id
    folder.make(new)
    try:
        with folder.enter(new) as inside:
            for leaf, data in files.items():
                handle = inside.create(leaf)
                try:
                    rest = memoryview(data)
                    while rest:
                        rest = rest[os.write(handle, rest) :]
                finally:
                    os.close(handle)
        folder.rename(new, run_id)
    except BaseException:
        _drop(folder, new)
        raise


def _drop(folder: Folder, run_id: str) -> None:
    """Remove one run's folder. What is already gone, or was put there by somebody else, is left alone."""
    with contextlib.suppress(OSError, NotFound, NotAFile, Unavailable):
        with folder.enter(run_id) as inside:
            for leaf in inside.names():
                with contextlib.suppress(OSError):
                    inside.unlink(leaf)
        folder.remove(run_id)
