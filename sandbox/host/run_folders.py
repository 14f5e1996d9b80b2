"""Security boundary: the folders on the host's disk to which workers of full Python write, through `confine.overlay`.

A worker has one of its own: what it changed of the workspace, and its directory for temporary files. The host only
looks at sizes there while the worker lives: it opens directories, relative to descriptors and without following links,
and no file. It reads files once all processes of the worker are gone, or stopped. A worker that holds more than is
allowed is ended.

What has no name there, since it was removed or never had one (O_TMPFILE), is found by what the worker has open or
mapped. Nothing else keeps a file: the filter allows no descriptor to be sent (SCM_RIGHTS), no io_uring, no table of
descriptors for one thread, and no sendfile(2), which waits for a pipe. For each look the worker is stopped, so that
nothing moves behind the look. Record locks, which no control group counts (CVE-2022-0480), are counted there too.

A look comes only so often, so the disk itself is watched: before it is full, or has no inodes left, every worker ends
that wrote since its share of the disk began to go. How often it is looked at follows from how much is free, and from
how fast memory can be written and files can be made; nothing takes disk faster, since the filter allows no
fallocate(2). No kernel bounds that for users who own nothing of the machine: project quotas and images on loop devices
need its administrator.

The folder is removed with its worker. Each is locked (flock(2)) by the process that made it: a folder without a lock is
left by a killed server, one with a lock is in use.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from ..confine import layout
from ..confine.overlay import SCRATCH, UPPER, WORK
from ..confine.privileges import NOBODY
from ..errors import WorkerLost
from ..job import WrittenFolder
from .process_state import HeldFiles, held_files

ENTRIES_MAX = 100_000
"""Files and folders that one worker may hold."""
DEPTH_MAX = 64
"""Folders one in the other; deeper ones are not looked into, so nobody may have them."""
LOCKS_MAX = 1_000
"""Record locks that one worker may hold (fcntl(2), F_SETLK): a database takes a few for each connection."""
DISK_RESERVE_BYTES = 1_000_000_000
"""Where less of the disk is free, or less than half of what was free before its run, a worker is ended that writes."""
DISK_RESERVE_FILES = 100_000
"""So it is where fewer files can still be made there, or fewer than half of those that could be made before its run."""
_FASTEST_BYTES = 10_000_000_000
"""What all workers together can write in a second at most: that is memory, from which the kernel writes later."""
_FASTEST_FILES = 1_000_000
"""How many files they can make in a second at most."""
_DISK_LOOK_SECONDS = (0.02, 1.0)

_INNER = "runs"
_NEW_SECONDS = 60.0
_FIRST_LOOK_SECONDS = 0.2
_LOOK_SECONDS = 0.25
_FREQUENT_LOOKS = 120
_LATER_LOOK_SECONDS = 1.0
"""A worker that lives so long is a session, and idle most of the time."""
_LOOKING_SHARE = 5
"""A look that takes long is followed by a pause so many times as long."""
_LARGEST_SHARE = 0.95
"""The share of one file of what a worker may hold is nine tenths, in MiB (RLIMIT_FSIZE)."""
_BLOCK_BYTES = 512  # of st_blocks, stat(2)
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REMOVED_DEPTH = 32
PREPARE_AGAIN_SECONDS = (1.0, 5.0, 15.0, 60.0)
"""How long after `prepare` failed it is due again; the last one holds for all that follow."""
_TRIES = 3
_TRIALS_MAX = 2

_LOOKING = ThreadPoolExecutor(max_workers=2, thread_name_prefix="run folders")
_REMOVING = ThreadPoolExecutor(max_workers=2, thread_name_prefix="old run folders")
"""Apart from the others: to remove what one worker wrote takes long, and the limits of others hold meanwhile."""
_NO_INODES = 1 << 62
"""How many files can be made where a file system counts none (statvfs(3) says 0)."""
_LOG = logging.getLogger(__name__)


class RunFolders:
    """The folders of one pool's workers, below `folder`; each may hold `bytes_max` bytes."""

    def __init__(self, folder: str, bytes_max: int) -> None:
        self._outer = folder
        self.path = os.path.join(folder, _INNER)
        self.bytes_max = bytes_max
        self._trials: list[RunFolder] = []
        self._removing: set[Future[None]] = set()
        self._alive: set[RunFolder] = set()
        self._watches: set[FolderWatch] = set()
        self._disk_timer: asyncio.TimerHandle | None = None
        self.problem: str | None = None
        """Why none can be made, as of the last `prepare`; None where they can."""
        self._failures = 0
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        """Whether `prepare` failed, and may be tried again by now."""
        return self.problem is not None and time.monotonic() >= self._due

    def prepare(self) -> bool:
        """Make the folder that holds them, and remove what servers left that are gone; return whether that worked.

        Where it did not, `problem` says why, and it is due again after `PREPARE_AGAIN_SECONDS`.
        """
        try:
            self._prepare()
        except OSError as error:
            seconds = PREPARE_AGAIN_SECONDS[min(self._failures, len(PREPARE_AGAIN_SECONDS) - 1)]
            self._failures += 1
            self._due = time.monotonic() + seconds
            self.problem = f"the folder for what code writes cannot be made or used: {error.strerror}"
            _LOG.warning(
                "Full Python sees the workspace read-only, until it is tried again in %g s: %s", seconds, error
            )
            return False
        if self.problem is not None:
            _LOG.warning("Full Python can write to the workspace again.")
        self._failures, self.problem = 0, None
        return True

    def _prepare(self) -> None:
        """Make the folder. Raises OSError.

        Only its owner may enter it, whatever the rights are of what hostile code puts there. Workers of a root user are
        nobody, and reach it by a mount.
        """
        os.makedirs(self._outer, 0o700, exist_ok=True)
        os.chmod(self._outer, 0o700)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path, 0o711)
        os.chmod(self.path, 0o711)  # noqa: S103 - entered by name alone, and that from the mount
        _REMOVING.submit(self._remove_abandoned)

    def trial(self) -> RunFolder:
        """Make the folder in which a zygote tries whether workers can write to the workspace. Raises `WorkerLost`.

        Two of them are there at most: one zygote may start while another takes over.
        """
        self._trials.append(self.make())
        while len(self._trials) > _TRIALS_MAX:
            self._trials.pop(0).remove_soon()
        return self._trials[-1]

    def make(self) -> RunFolder:
        """Make the folder of one worker. Blocks for less than a millisecond. Raises `WorkerLost`."""
        name = secrets.token_hex(8)
        path = os.path.join(self.path, name)
        try:
            os.mkdir(path, 0o700)
            try:
                handle = _furnished(path)
            except OSError:
                with contextlib.suppress(OSError), _opened(self.path) as inner:
                    _removed(inner, name)
                raise
        except OSError as error:
            raise WorkerLost(f"There is no place for what code writes: {error.strerror}.") from None
        made = RunFolder(name, path, handle, self)
        self._alive.add(made)
        return made

    def watch_disk_for(self, watch: FolderWatch) -> None:
        """Notify a watch when the disk is nearly full, until it is `drop`ped."""
        self._watches.add(watch)
        if self._disk_timer is None:
            self._look_at_disk()

    def drop(self, watch: FolderWatch) -> None:
        """Stop notifying a watch."""
        self._watches.discard(watch)

    def _look_at_disk(self) -> None:
        self._disk_timer = None
        for watch in list(self._watches):  # they may be on several file systems, and there are few
            watch.look_at_disk()
        if self._watches:
            shortest, longest = _DISK_LOOK_SECONDS
            seconds = min(max(min(watch.spare_seconds for watch in self._watches), shortest), longest)
            self._disk_timer = asyncio.get_running_loop().call_later(seconds, self._look_at_disk)

    def remove_soon(self, folder: RunFolder) -> None:
        """Remove a folder whose worker is gone."""
        if folder in self._alive:
            self._alive.discard(folder)
            removing = _REMOVING.submit(self._remove, folder)
            self._removing.add(removing)
            removing.add_done_callback(self._removing.discard)

    async def aclose(self) -> None:
        """Remove all that are left; their workers are gone."""
        for folder in list(self._alive):
            self.remove_soon(folder)
        removing = list(self._removing)
        if removing:
            await asyncio.to_thread(wait, removing)

    def _remove(self, folder: RunFolder) -> None:
        try:
            with _opened(self.path) as inner:
                for attempt in range(_TRIES):
                    if _removed(inner, folder.name):
                        return
                    time.sleep(0.1 * (attempt + 1))  # a worker whose zygote died may be ending still
            _LOG.warning("A folder that code wrote to could not be removed; the next start of the server tries again.")
        except OSError as error:
            _LOG.warning("A folder that code wrote to could not be removed: %s", error)
        finally:
            folder.close()

    def _remove_abandoned(self) -> None:
        with contextlib.suppress(OSError), _opened(self.path) as inner:
            for name in os.listdir(inner):
                with contextlib.suppress(OSError), _opened(name, inner) as found:
                    if time.time() - os.fstat(found).st_ctime > _NEW_SECONDS:
                        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        _removed(inner, name)


def _furnished(path: str) -> int:
    """Lock a new folder, make its parts, and return its descriptor. Raises OSError."""
    handle = os.open(path, _FOLDER_FLAGS)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for part in (UPPER, WORK, SCRATCH):
            os.mkdir(part, 0o700, dir_fd=handle)
            if os.geteuid() == 0:
                os.chown(part, NOBODY, NOBODY, dir_fd=handle)
        if os.geteuid() == 0:
            os.chown(handle, NOBODY, NOBODY)
    except OSError:
        os.close(handle)
        raise
    return handle


@dataclass(eq=False, slots=True)
class RunFolder:
    """The folder of one worker; `handle` is its descriptor, which holds the lock."""

    name: str
    path: str
    handle: int
    all: RunFolders
    known: dict[bytes, bytes] = field(default_factory=dict)
    made_ns: int = field(default_factory=time.time_ns)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def written(self, pid: int | None) -> WrittenFolder:
        """Return what the worker changed of the workspace, to be read when its processes are gone or stopped.

        `pid` is that of the stopped one that goes on. Raises OSError where it cannot be seen what that has mapped.
        """
        return WrittenFolder(os.path.join(self.path, UPPER), self.known, self.made_ns, frozenset(_held(pid).mapped))

    def is_changed(self) -> bool:
        """Return whether the worker changed anything in the workspace, or whether that cannot be seen."""
        try:
            with _opened(UPPER, self.handle) as upper, os.scandir(upper) as entries:
                return next(entries, None) is not None
        except OSError:
            return True  # whoever reads it says why it cannot be read

    def remove_soon(self) -> None:
        """Remove it: its worker is gone."""
        self.all.remove_soon(self)

    def close(self) -> None:
        """Close the descriptor, once nobody looks."""
        with self._turn:
            self._closed = True
            os.close(self.handle)

    def excess(self, pid: int | None) -> str | None:
        """Return which bound it, or the unlinked files that the stopped process `pid` holds, exceeds; else None."""
        with self._turn:  # its number must not be another's by then
            return None if self._closed else self._excess(_held(pid))

    def _excess(self, held: HeldFiles) -> str | None:
        if held.locks > LOCKS_MAX:
            return f"it held more than {LOCKS_MAX} locks on files"
        try:
            used = _Usage(self.all.bytes_max)
            used.add_removed(held.removed.values())
            used.add(self.handle, DEPTH_MAX)
        except _TooMuchError as excess:
            return str(excess)
        return None

    def times(self) -> tuple[int, ...]:
        """Return when something was last made or removed directly in its places, in nanoseconds; code sets none of it.

        It is a change of these that shows that code wrote anything: neither place is there for anything else.
        """
        return tuple(os.stat(part, dir_fd=self.handle).st_ctime_ns for part in (UPPER, SCRATCH))

    def free_bytes(self) -> int:
        """Return how much of its disk is free."""
        status = os.fstatvfs(self.handle)
        return status.f_bavail * status.f_frsize

    def free_files(self) -> int:
        """Return how many files can still be made on its disk."""
        status = os.fstatvfs(self.handle)
        return status.f_favail if status.f_files else _NO_INODES


Stopped = Callable[[], AbstractAsyncContextManager[int | None]]
"""Stops a worker for as long as the context lasts, and gives the process that runs its code; None where that ended.

Raises TimeoutError where it does not stop."""


class FolderWatch:
    """Looks at a folder while its worker lives, for the first time after a moment: most runs are over by then.

    It calls `on_excess` once where the worker holds too much.
    """

    def __init__(self, folder: RunFolder, stopped: Stopped, on_excess: Callable[[str], None]) -> None:
        self._folder = folder
        self._stopped = stopped
        self._on_excess = on_excess
        self._times = folder.times()
        self._least_bytes = min(DISK_RESERVE_BYTES, folder.free_bytes() // 2)
        self._least_files = min(DISK_RESERVE_FILES, folder.free_files() // 2)
        self.spare_seconds = 0.0
        """How soon, at the least, so much of the disk can be taken, by whomever, that it is ended for that."""
        self._looking = asyncio.create_task(self._look_again_and_again())
        folder.all.watch_disk_for(self)

    def stop(self) -> None:
        """Look no more."""
        self._looking.cancel()
        self._folder.all.drop(self)

    def look_at_disk(self) -> None:
        """End the worker where the disk is nearly full and it writes. Asks the file system, and no disk."""
        try:
            spare_bytes = max(self._folder.free_bytes() - self._least_bytes, 0)
            spare_files = max(self._folder.free_files() - self._least_files, 0)
            self.spare_seconds = min(spare_bytes / _FASTEST_BYTES, spare_files / _FASTEST_FILES)
            if (spare_bytes and spare_files) or self._folder.times() == self._times:
                return
            if spare_files:
                left = f"the disk was nearly full, with {self._least_bytes // 1_000_000} MB free"
            else:
                left = f"the disk had no room for more than {self._least_files} files"
            allowed = self._folder.all.bytes_max // 1_000_000
            excess = f"{left}, while it wrote files (SCRATCH_MB allows {allowed} MB, where there is room)"
        except OSError as error:
            excess = f"its files cannot be looked at ({error})"
        self._end(excess)

    def _end(self, excess: str) -> None:
        self.stop()
        self._on_excess(excess)

    async def _look_again_and_again(self) -> None:
        await asyncio.sleep(_FIRST_LOOK_SECONDS)
        for looks in itertools.count(1):
            began = time.monotonic()
            try:
                async with self._stopped() as pid:
                    loop = asyncio.get_running_loop()
                    excess = await loop.run_in_executor(_LOOKING, self._folder.excess, pid)
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody knows what the worker holds
                excess = f"its files cannot be looked at ({error})"
            if excess is not None:
                self._end(excess)
                return
            pause = _LOOK_SECONDS if looks < _FREQUENT_LOOKS else _LATER_LOOK_SECONDS
            await asyncio.sleep(max(pause, (time.monotonic() - began) * _LOOKING_SHARE))


def _held(pid: int | None) -> HeldFiles:
    """Return what a stopped process holds of its folder, or nothing where none goes on. Raises OSError."""
    return HeldFiles() if pid is None else held_files(pid, (layout.WORKSPACE, layout.SCRATCH), LOCKS_MAX)


class _TooMuchError(Exception):
    """A worker holds too much; the message says what."""


class _Usage:
    """Sums up what a folder holds, and raises `_TooMuchError` as soon as it is too much."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries = 0

    def add_removed(self, sizes: Iterable[int | None]) -> None:
        """Add what has no name any more; of a size that cannot be seen, as much as one file may have."""
        largest = int(self._bytes_max * _LARGEST_SHARE)
        self._add_bytes(sum(largest if size is None else size for size in sizes))

    def _add_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._bytes_max:
            raise _TooMuchError(f"it wrote more than {self._bytes_max // 1_000_000} MB of files (SCRATCH_MB)")

    def add(self, folder: int, depth: int) -> None:
        """Add what is in an open folder."""
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                self._entries += 1
                self._add_bytes(status.st_blocks * _BLOCK_BYTES)
                if self._entries > ENTRIES_MAX:
                    raise _TooMuchError(f"it made more than {ENTRIES_MAX} files and folders")
                if stat.S_ISDIR(status.st_mode):
                    if not depth:
                        raise _TooMuchError(f"it made folders more than {DEPTH_MAX} deep")
                    with (
                        contextlib.suppress(FileNotFoundError, NotADirectoryError),
                        _opened(entry.name, folder) as deeper,
                    ):
                        self.add(deeper, depth - 1)


@contextlib.contextmanager
def _opened(name: str, folder: int | None = None) -> Iterator[int]:
    """Open a folder without following a link, though its owner may have closed it to itself. Raises OSError."""
    try:
        handle = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except PermissionError:
        # By its descriptor: a name could lead elsewhere by now.
        place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{place}", 0o700)
            handle = os.open(".", _FOLDER_FLAGS, dir_fd=place)
        finally:
            os.close(place)
    try:
        yield handle
    finally:
        os.close(handle)


def _removed(parent: int, name: str) -> bool:
    """Remove a folder and all that is in it, however deep; return whether it is gone. Links are not followed."""
    waiting = [name]
    while waiting:
        top = waiting[-1]
        deep: list[str] = []
        _empty(parent, top, parent, _REMOVED_DEPTH, deep)
        if deep:
            waiting += deep
            continue
        waiting.pop()
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(top, dir_fd=parent)
            except OSError:
                return False
    return True


def _empty(folder: int, name: str, parent: int, depth: int, deep: list[str]) -> None:
    """Remove what is in a folder; what is too deep is moved up to `parent`, and its name added to `deep`."""
    with contextlib.suppress(FileNotFoundError), _opened(name, folder) as inside:
        for leaf, is_folder in _entries(inside):
            if not is_folder:
                with contextlib.suppress(OSError):
                    os.unlink(leaf, dir_fd=inside)
                continue
            if not depth:
                moved = f"{secrets.token_hex(8)}.deep"
                with contextlib.suppress(OSError):
                    with _opened(leaf, inside):
                        pass  # a folder that is moved is written to: its owner must be let
                    os.rename(leaf, moved, src_dir_fd=inside, dst_dir_fd=parent)
                    deep.append(moved)
                continue
            _empty(inside, leaf, parent, depth - 1, deep)
            with contextlib.suppress(OSError):
                os.rmdir(leaf, dir_fd=inside)


def _entries(folder: int) -> list[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
