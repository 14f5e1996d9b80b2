"""What a run was and what it said, kept whole for as long as it is among the last ones.

Its owner reads it as `.runs/<run_id>/…` of the workspace. It lies beside the workspace, so that code which sees that
directory itself sees neither its own runs there nor those of others.

The archive is on the path of every execution, so nothing here waits for the disk: a run's folder is made under another
name and renamed when it is whole, so a crash of the server leaves all of a run or nothing; after a power loss the last
seconds may be missing. A run whose report holds everything is kept after its reply (`keep_soon`, `flush`), but
before anybody reads in `.runs`; a crash may lose those that wait. Making and removing folders costs a file system far
more than renaming and overwriting, so once `kept` runs are there the oldest's folder becomes the newest's. It has a
budget of its own (`kept` runs, `bytes_max` bytes) beside the workspace's quota.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from .errors import NameRefused, WorkspaceError
from .names import RUNS, Name, is_run_of, judge_run_id, run_folder, run_in, shown
from .paths import Folder, refusing, write_all
from .store import Workspace

What: TypeAlias = Literal["code.py", "output.txt", "stderr.txt", "result.json", "dry_run.json", "displayed.json"]

BYTES_MAX = 256 * 1024 * 1024

_NEW = ".new-"
_NEW_SECONDS = 60
_LOOK_AGAIN = 32
"""After so many runs the folder is looked through anew, for what other processes kept in the meantime."""
_WAITING_MAX = 64
_WAITING_BYTES_EACH = 64 * 1024
_LOG = logging.getLogger(__name__)


class RunArchive:
    """The last `kept` runs of a workspace (one at least), the oldest dropped first; the newest is always there.

    Safe to call from any thread. Of several processes on one workspace each notices the others' runs now and then, so
    there may be a few more than `kept` for a while.
    """

    def __init__(self, workspace: Workspace, kept: int = 200, *, bytes_max: int = BYTES_MAX) -> None:
        if kept < 1:
            raise ValueError(f"kept is {kept}. Keep one run at least.")
        self.kept = kept
        self.bytes_max = bytes_max
        self._root = workspace.beside
        self._turn = threading.Lock()
        self._runs: deque[tuple[str, int]] = deque()
        self._bytes = 0
        self._until_look = 0
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._refused = False
        workspace.before_runs_are_read(self.settle)

    @property
    def waiting(self) -> int:
        """How many runs were taken and are not kept yet."""
        return len(self._waiting)

    def settle(self, owner: str | None = None, folder: str | None = None) -> None:  # noqa: ARG002 - a folder of files takes no time
        """Keep what waits before it is read: all of it, the runs of an owner, or the one of a folder's name."""
        self.flush()

    def keep_soon(self, run_id: str, *, owner: str, code: str) -> bool:
        """Take a run that the next `flush` keeps; returns at once.

        False where it was not taken: it is large, many wait already, or the last that waited could not be kept. `keep`
        then keeps it or says why not. Raises `NameRefused` for a bad `run_id`.
        """
        folder = run_folder(owner, run_id)
        data = code.encode(errors="backslashreplace")
        if self._refused or len(data) > _WAITING_BYTES_EACH or len(self._waiting) >= _WAITING_MAX:
            return False
        self._waiting.append((folder, data))
        return True

    def flush(self) -> None:
        """Keep all runs that wait. What cannot be kept is logged."""
        with self._turn:
            self._keep_waiting()

    def keep(
        self,
        run_id: str,
        *,
        owner: str,
        code: str,
        output: str | None = None,
        result_json: str | None = None,
        attached: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        """Keep a run of `owner`; `output` and `result_json` are given when they were cut for the report.

        `attached` are files beside them, by plain names; those of a folder beside them have a `/`.

        Raises `NameRefused` for a bad or taken `run_id`, `Unavailable` when the disk refuses.
        """
        folder = run_folder(owner, run_id)
        contents = {"code.py": code, "output.txt": output, "result.json": result_json}
        files = {leaf: text.encode(errors="backslashreplace") for leaf, text in contents.items() if text is not None}
        self._keep_now(folder, {**files, **attached})

    def _keep_now(self, folder: str, files: dict[str, bytes]) -> None:
        with self._turn:
            self._keep_waiting()
            self._keep(folder, files)
            self._refused = False

    @staticmethod
    def path_of(run_id: str, what: What) -> str:
        """Name a kept file as `Workspace.read` finds it for the run's owner. Raises `NameRefused`."""
        return f"{RUNS}/{judge_run_id(run_id)}/{what}"

    def _keep_waiting(self) -> None:
        while self._waiting:
            name, code = self._waiting.popleft()
            try:
                self._keep(name, {"code.py": code})
            except WorkspaceError as error:
                self._refused = True
                _LOG.warning("The run %s could not be kept: %s", run_in(name), error)

    def _keep(self, name: str, files: dict[str, bytes]) -> None:
        size = sum(map(len, files.values()))
        with self._root.open_folder(()) as folder, refusing(Name((RUNS, run_in(name) or name))):
            if self._until_look == 0:
                self._look(folder)
                self._until_look = _LOOK_AGAIN
            self._until_look -= 1
            oldest = self._make_room(folder, size)
            _put(folder, name, files, oldest)
        self._runs.append((name, size))
        self._bytes += size

    def _make_room(self, folder: Folder, size: int) -> str | None:
        """Drop what would be too much, but for the last of it: its folder can be used again."""
        again: str | None = None
        while self._runs and (len(self._runs) >= self.kept or self._bytes + size > self.bytes_max):
            if again is not None:
                drop_folder(folder, again)
            again, freed = self._runs.popleft()
            self._bytes -= freed
        return again

    def _look(self, folder: Folder) -> None:
        """Learn which runs are there, in the order in which they were kept, and drop what a crash left half made."""
        there = {name for name in folder.names() if name.startswith(_NEW) or not name.startswith(".")}
        if self._runs and there == {name for name, _ in self._runs}:
            return  # nobody else kept or dropped any
        ages: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for found in self._root.walk():
            name = found.parts[0]
            if len(found.parts) > 1 or found.is_folder:
                ages[name] = max(ages.get(name, 0), found.modified_ns)
            sizes[name] = sizes.get(name, 0) + found.size
        for name in [name for name in ages if name.startswith(_NEW)]:
            if time.time() - ages.pop(name) / 1e9 > _NEW_SECONDS:
                drop_folder(folder, name)
        known = sorted((name for name in ages if run_in(name) is not None), key=lambda it: (ages[it], it))
        self._runs = deque((name, sizes[name]) for name in known)
        self._bytes = sum(size for _, size in self._runs)


def _put(folder: Folder, name: str, files: dict[str, bytes], again: str | None) -> None:
    """Make a run's folder, out of the folder `again` where there is one. Raises `OSError`, leaving nothing."""
    if folder.status(name) is not None:
        raise NameRefused(f"The run {shown(run_in(name) or name)} is kept already. Give each run an id of its own.")
    new = _NEW + name
    try:
        folder.rename(again, new) if again is not None else folder.make(new)
    except FileNotFoundError:  # another process dropped it first
        folder.make(new)
    try:
        with folder.enter(new) as inside:
            if again is not None:
                for leaf in inside.names():
                    if leaf not in files:
                        _clear(inside, leaf)
            for path, data in files.items():
                write_inside(inside, path, data)
        folder.rename(new, name)
    except BaseException:
        drop_folder(folder, new)
        raise


def write_inside(folder: Folder, path: str, data: bytes) -> None:
    """Write a file of a run, and the folders that its path names. Raises `OSError`."""
    first, _, rest = path.partition("/")
    if rest:
        with contextlib.suppress(FileExistsError):
            folder.make(first)
        with folder.enter(first) as deeper:
            write_inside(deeper, rest, data)
        return
    handle = folder.recreate(first)
    try:
        write_all(handle, data)
        os.ftruncate(handle, len(data))
    finally:
        os.close(handle)


def _clear(folder: Folder, leaf: str) -> None:
    """Remove a file of a run, or a folder with what is in it. Raises `OSError`."""
    status = folder.status(leaf)
    if status is None or not stat.S_ISDIR(status.st_mode):
        folder.unlink(leaf)
        return
    with folder.enter(leaf) as inside:
        for each in inside.names():
            _clear(inside, each)
    folder.remove(leaf)


def drop_folder(folder: Folder, name: str) -> None:
    """Remove one run's folder. What is already gone, or was put there by somebody else, is left alone."""
    with contextlib.suppress(OSError):
        with folder.enter(name) as inside:
            for leaf in inside.names():
                with contextlib.suppress(OSError):
                    _clear(inside, leaf)
        folder.remove(name)


def kept_of(workspace: Workspace, owner: str, *, drops: bool) -> list[str]:
    """Return the ids of the kept runs of an owner, and drop them where it `drops`."""
    workspace.settle_runs()
    kept = getattr(workspace, "kept", None)
    if kept is not None:
        runs = [run for run in kept.listed() if is_run_of(owner, run.folder)]
        if drops:
            kept.drop(runs)
        return [run_in(run.folder) or "" for run in runs]
    with workspace.beside.open_folder(()) as folder:
        mine = [name for name in folder.names() if is_run_of(owner, name)]
        for name in mine if drops else ():
            drop_folder(folder, name)
    return [run_in(name) or "" for name in mine]


def rewrite_kept(workspace: Workspace, changed: Callable[[bytes], bytes], *, changes: bool) -> Iterator[str]:
    """Give the names of kept files that `changed` makes differ, and replace them where it `changes`.

    Names are as their owners read them. What is dropped meanwhile is passed over.
    """
    workspace.settle_runs()
    kept = getattr(workspace, "kept", None)
    if kept is not None:
        yield from kept.rewrite(changed, changes=changes)
        return
    for entry in list(workspace.beside.walk()):
        run_id = run_in(entry.parts[0])
        if run_id is None or not entry.is_plain:
            continue
        try:
            handle, _ = workspace.beside.open_file(Name(entry.parts), os.O_RDWR if changes else os.O_RDONLY)
        except WorkspaceError:
            continue
        with open(handle, "r+b" if changes else "rb", buffering=0) as file:
            before = file.read() or b""
            after = changed(before)
            if after == before:
                continue
            if changes:
                file.seek(0)
                write_all(handle, after)
                file.truncate(len(after))
        yield "/".join((RUNS, run_id, *entry.parts[1:]))
