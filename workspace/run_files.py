"""The files of one run, as Python's `open` and `os` need them: read and written in place, piece by piece.

`store.Workspace` writes files whole; code that opens a file expects that what it flushed is there, that two who have
it open see each other's bytes, and that a name may go while the file is open. All paths begin with `/workspace` or
`/tmp`, which is a folder of the run's own beside the workspace, where native code of others does not see it; it is gone
when the run ends. They are judged by `names` and opened by `paths` alone; each change is made under the ledger's lock
and counts.

A file is known by its identity. Its descriptor is kept for a while, and found again by its path: where another file
stands there by then, the answer is ESTALE. What was removed while it is still open counts until it is closed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from .errors import NameRefused, NotAFile, NotFound, Reserved, Unavailable, WorkspaceError
from .names import DEPTH_MAX, RUNS, TEMPORARY_PREFIX, Name, shown, speakable
from .paths import Folder, Root, is_plain, read_at, refusing, write_all

if TYPE_CHECKING:
    from .store import Usage, Workspace

Mode: TypeAlias = Literal["r", "r+", "w", "x", "a"]

HERE = "/workspace"
TEMPORARY = "/tmp"  # noqa: S108 - what code calls it; see `RunFiles`
READ_BYTES_MAX = 4 * 1024 * 1024
"""The most that one reading gives."""
DESCRIPTORS_MAX = 4
"""How many descriptors a run holds; a file that needs another is opened anew by its path."""
_OFFSET_MAX = 1 << 62


@dataclass(frozen=True, slots=True)
class PathStatus:
    """What stands at a path: its identity, size in bytes, and last change in nanoseconds since 1970."""

    identity: str
    is_folder: bool
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> PathStatus:
        """Describe what the kernel says of a plain file or a folder."""
        is_folder = stat.S_ISDIR(status.st_mode)
        return cls(_identity(status), is_folder, 0 if is_folder else status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One entry of a folder."""

    name: str
    status: PathStatus


@dataclass(frozen=True, slots=True)
class PathTarget:
    """Where a path leads: a name below `root`, which is the workspace's or the one beside it."""

    path: str
    name: Name
    root: Root
    is_kept_run: bool = False

    @property
    def is_top(self) -> bool:
        """Whether it is one of the folders that are always there."""
        return is_top(self.path)


def is_top(path: str) -> bool:
    """Return whether a path is one of the folders that are always there."""
    return path in {"/", HERE, TEMPORARY}


class RunFiles:
    """What one run does with files. Safe to call from any thread; `close` ends it and removes the temporary ones.

    Every method raises a `WorkspaceError`, whose `number` is the errno that Python's own would have.
    """

    def __init__(self, workspace: Workspace, owner: str | None = None) -> None:
        self._workspace = workspace
        self._owner = owner
        self._turn = threading.RLock()
        self._handles: OrderedDict[tuple[str, bool], int] = OrderedDict()
        self._temporary: str | None = None
        self._made: list[str] = []
        self._closed = False
        workspace.live.add(self)

    def close(self) -> None:
        """Close all files and remove the temporary ones. May be called twice."""
        with self._turn:
            self._closed = True
            while self._handles:
                os.close(self._handles.popitem()[1])
            self._workspace.live.discard(self)
            self._temporary = None
            while self._made:
                self._workspace.remove_temporary(self._made.pop())

    def holds(self, inode: int) -> bool:  # noqa: ARG002 - of files in an object store it depends on both
        """Return whether one of them is the copy of an object that has this inode number: here there is none."""
        return False

    def removed_bytes(self) -> int:
        """Count the bytes of files that have no name any more and are still open here."""
        found = 0
        for handle in list(self._handles.values()):
            with contextlib.suppress(OSError):
                status = os.fstat(handle)
                found += 0 if status.st_nlink else status.st_size
        return found

    def open(self, path: str, mode: Mode) -> PathStatus:
        """Find, create or empty a plain file, as `open` does in this mode."""
        if mode not in get_args(Mode):
            raise NameRefused(f"The mode {shown(str(mode))} is unknown. Use one of {', '.join(get_args(Mode))}.")
        with self._turn:
            place = self._place(path, is_new=mode in {"w", "x", "a"})
            if place.is_top:
                raise _is_a_folder(path)
            self._bring(place, content=mode in {"r", "r+", "a"})
            if mode == "r":
                handle = self._opened(place, writable=False)
            elif mode == "r+":
                handle = self._opened(self._changeable(place), writable=True)
            else:
                handle = self._opened_for_change(place, mode)
            return PathStatus.of(os.fstat(handle))

    def _opened_for_change(self, place: PathTarget, mode: str) -> int:
        place = self._changeable(place, makes=True)
        name, ledger = place.name, self._workspace.ledger
        with ledger.locked(), refusing(name), place.root.open_folder(name.folder) as folder:
            current = folder.status(name.leaf)
            if current is None:
                with ledger.change(more_bytes=0, more_entries=1):
                    handle = folder.create(name.leaf, os.O_RDWR)
                return self._keep(handle, os.fstat(handle), writable=True)
            if mode == "x":
                raise NotAFile(f"There is a {shown(place.path)} already. Choose another name.", errno.EEXIST)
            handle, status = place.root.open_file(name, os.O_RDWR)
            self._keep(handle, status, writable=True)
            if mode == "w" and status.st_size:
                with ledger.change(more_bytes=-status.st_size, more_entries=0):
                    os.ftruncate(handle, 0)
        return handle

    def read(self, path: str, identity: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes of an open file from `offset` on; fewer at its end, or where it is too much."""
        _judge_number(offset)
        _judge_number(size)
        with self._turn:
            place = self._place(path)
            handle = self._found(place, identity, writable=False)
            with refusing(place.name):
                return read_at(handle, min(size, READ_BYTES_MAX), offset)

    def write(self, path: str, identity: str, offset: int | None, data: bytes) -> int:
        """Write all of `data` at `offset`, or at the end where that is None, and return where it ends.

        Where that is not possible nothing is added to the file.
        """
        if offset is not None:
            _judge_number(offset)
        with self._turn:
            place = self._changeable(self._place(path))
            with self._workspace.ledger.locked(), refusing(place.name):
                handle = self._found(place, identity, writable=True)
                status = os.fstat(handle)
                start = status.st_size if offset is None else offset
                end = start + len(data)
                more = max(0, end - status.st_size) if data else 0
                with self._workspace.ledger.change(more_bytes=more, more_entries=0, is_counted=bool(status.st_nlink)):
                    try:
                        os.lseek(handle, start, os.SEEK_SET)
                        write_all(handle, data)
                    except OSError:
                        if more:
                            os.ftruncate(handle, status.st_size)
                        raise
            return end

    def truncate(self, path: str, identity: str, size: int) -> None:
        """Make an open file this long."""
        _judge_number(size)
        with self._turn:
            place = self._changeable(self._place(path))
            with self._workspace.ledger.locked(), refusing(place.name):
                handle = self._found(place, identity, writable=True)
                status = os.fstat(handle)
                with self._workspace.ledger.change(
                    more_bytes=size - status.st_size, more_entries=0, is_counted=bool(status.st_nlink)
                ):
                    os.ftruncate(handle, size)

    def release(self, identity: str) -> None:
        """Close a file's descriptors."""
        with self._turn:
            for writable in (True, False):
                handle = self._handles.pop((identity, writable), None)
                if handle is not None:
                    os.close(handle)

    def status(self, path: str) -> PathStatus:
        """Look at a plain file or a folder."""
        with self._turn:
            place = self._place(path)
            name = place.name
            if place.is_top or not name.parts:
                return PathStatus(place.path, is_folder=True, size=0, modified_ns=0)
            self._bring(place)
            with refusing(name), place.root.open_folder(name.folder) as folder:
                found = folder.status(name.leaf)
            if found is None:
                raise _not_found(path)
            if not (is_plain(found) or stat.S_ISDIR(found.st_mode)):
                raise NotAFile(f"{shown(path)} is not a regular file. Choose another name.", errno.ELOOP)
            return PathStatus.of(found)

    def list(self, path: str) -> list[FolderEntry]:
        """List the plain files and folders of a folder, sorted by name."""
        with self._turn:
            place = self._place(path)
            if path == "/":
                return [FolderEntry(each[1:], PathStatus(each, True, 0, 0)) for each in (TEMPORARY, HERE)]
            if path == TEMPORARY and self._temporary is None:
                return []
            if place.is_kept_run and not place.name.parts:
                raise _not_found(path)
            if place.name.parts and not self.status(path).is_folder:
                raise NotAFile(f"{shown(path)} is a file, not a folder.", errno.ENOTDIR)
            return sorted(self._entries(place), key=lambda entry: entry.name)

    def _entries(self, place: PathTarget) -> Sequence[FolderEntry]:
        """Return what stands in a folder that is there."""
        name = place.name
        if place.root is self._workspace.root:
            self._workspace.bring_folder(name.parts)
        with refusing(name), place.root.open_folder(name.parts) as folder:
            return [
                FolderEntry(leaf, PathStatus.of(status))
                for leaf, status in folder.entries()
                if (is_plain(status) or stat.S_ISDIR(status.st_mode))
                and speakable(leaf)
                and (name.parts or leaf != RUNS)
            ]

    def make_folder(self, path: str) -> None:
        """Make one folder."""
        with self._turn:
            place = self._place(path, is_new=True)
            if place.is_top:
                raise NotAFile(f"There is a {shown(path)} already.", errno.EEXIST)
            place = self._changeable(place, makes=True)
            name, ledger = place.name, self._workspace.ledger
            with ledger.locked(), refusing(name), place.root.open_folder(name.folder) as folder:
                if folder.status(name.leaf) is not None:
                    raise NotAFile(f"There is a {shown(path)} already. Choose another name.", errno.EEXIST)
                with ledger.change(more_bytes=0, more_entries=1):
                    folder.make(name.leaf)

    def remove(self, path: str) -> None:
        """Remove a plain file."""
        with self._turn:
            place = self._place(path)
            if place.is_top:
                raise _is_a_folder(path)
            place = self._changeable(place)
            name, ledger = place.name, self._workspace.ledger
            with ledger.locked(), refusing(name), place.root.open_folder(name.folder) as folder:
                current = _plain(folder, name, path)
                with ledger.change(more_bytes=-current.st_size, more_entries=-1):
                    folder.unlink(name.leaf)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        with self._turn:
            place = self._place(path)
            place = self._changeable(place)
            if place.is_top:
                raise Reserved(f"{shown(path)} stays. Remove what is in it.", errno.EBUSY)
            name, ledger = place.name, self._workspace.ledger
            with ledger.locked(), refusing(name), place.root.open_folder(name.folder) as folder:
                current = folder.status(name.leaf)
                if current is None:
                    raise _not_found(path)
                if not stat.S_ISDIR(current.st_mode):
                    raise NotAFile(f"{shown(path)} is not a folder.", errno.ENOTDIR)
                with ledger.change(more_bytes=0, more_entries=-1):
                    folder.remove(name.leaf)

    def rename(self, path: str, target: str) -> None:
        """Give a plain file or a folder another name, in place of a file or an empty folder that has it."""
        with self._turn:
            source_place, target_place = self._place(path), self._place(target, is_new=True)
            if source_place.is_top or target_place.is_top:
                raise Reserved(f"{shown(path)} or {shown(target)} stays as it is.", errno.EBUSY)
            source_place = self._changeable(source_place)
            target_place = self._changeable(target_place, makes=True)
            source, goal, ledger = source_place.name, target_place.name, self._workspace.ledger
            with (
                ledger.locked(),
                refusing(source),
                source_place.root.open_folder(source.folder) as folder,
                target_place.root.open_folder(goal.folder) as into,
            ):
                moved = folder.status(source.leaf)
                if moved is None:
                    raise _not_found(path)
                if stat.S_ISDIR(moved.st_mode):
                    self._judge_depth(source_place, goal)
                else:
                    _plain(folder, source, path)
                present = into.status(goal.leaf)
                if present is not None and _identity(present) == _identity(moved):
                    return
                if present is not None and not stat.S_ISDIR(present.st_mode):
                    _plain(into, goal, target)
                freed = 0 if present is None or stat.S_ISDIR(present.st_mode) else present.st_size
                with ledger.change(more_bytes=-freed, more_entries=-(present is not None)):
                    try:
                        folder.rename(source.leaf, goal.leaf, into=into)
                    except OSError as error:
                        if error.errno != errno.EXDEV:
                            raise
                        raise Unavailable(
                            f"{shown(path)} and {shown(target)} are on different file systems. Copy it instead.",
                            errno.EXDEV,
                        ) from None

    @staticmethod
    def _judge_depth(place: PathTarget, goal: Name) -> None:
        """Refuse to move a folder so deep that what it holds could neither be named nor counted."""
        source = place.name.parts
        depth = max((len(found.parts) for found in place.root.walk(source)), default=len(source))
        RunFiles._judge_deepest(depth - len(source) + len(goal.parts))

    @staticmethod
    def _judge_deepest(depth: int) -> None:
        if depth > DEPTH_MAX:
            raise NameRefused("The folder would be too deep there. Move it further up.", errno.ENAMETOOLONG)

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Set when a plain file was last changed; a folder is left as it is."""
        _judge_number(modified_ns)
        with self._turn:
            place = self._changeable(self._place(path))
            if self.status(path).is_folder:
                return
            with refusing(place.name):
                os.utime(self._opened(place, writable=False), ns=(modified_ns, modified_ns))

    def usage(self) -> Usage:
        """How full the workspace is."""
        return self._workspace.usage()

    def waits_at_close(self, path: str) -> bool:  # noqa: ARG002 - of a folder none does
        """Return whether what is written to a file has to be stored when it is closed."""
        return False

    def sync(self, identity: str) -> None:
        """Store what was written to an open file where the workspace keeps its files: in a folder it is there."""

    def settle(self) -> None:
        """Store all that was written where the workspace keeps its files: in a folder it is there."""

    def _bring(self, place: PathTarget, *, content: bool = False) -> None:
        """Bring into the folder what the workspace has at a name, where that is kept elsewhere."""
        if place.root is self._workspace.root:
            self._workspace.bring(place.name.parts, content=content)

    def _place(self, path: str, *, is_new: bool = False) -> PathTarget:
        """Judge a path by its letters. What has a name that nothing can have is not there, where it is not made."""
        try:
            return self._judged_place(path)
        except NameRefused:
            if is_new:
                raise
            raise _not_found(path) from None

    def _judged_place(self, path: str) -> PathTarget:
        if self._closed:
            raise NotFound("The run has ended. Nothing more is done for it.")
        if type(path) is str:
            # Until there is a folder nothing is found in it: this name can be no one's.
            temporary = self._temporary or TEMPORARY_PREFIX
            if path in {"/", HERE}:
                return PathTarget(path, Name(()), self._workspace.root)
            if path == TEMPORARY:
                return PathTarget(path, Name((temporary,)), self._workspace.beside)
            if path.startswith(f"{HERE}/"):
                name = Name.parse(path[len(HERE) + 1 :])
                return self._kept_place(path, name) if name.reserved else self._place_of(path, name)
            if path.startswith(f"{TEMPORARY}/"):
                name = Name.parse(path[len(TEMPORARY) + 1 :])
                if len(name.parts) >= DEPTH_MAX:
                    raise NameRefused(f"{shown(path)} is too deep.", errno.ENAMETOOLONG)
                return PathTarget(path, Name((temporary, *name.parts)), self._workspace.beside)
        raise _not_found(path)

    def _place_of(self, path: str, name: Name) -> PathTarget:
        """Return where a name of the workspace leads."""
        return PathTarget(path, name, self._workspace.root)

    def _kept_place(self, path: str, name: Name) -> PathTarget:
        kept_at = Name(self._workspace.settled_at(name, self._owner))
        self._workspace.bring_kept(kept_at.parts)
        return PathTarget(path, kept_at, self._workspace.beside, is_kept_run=True)

    def _changeable(self, place: PathTarget, *, makes: bool = False) -> PathTarget:
        """Return the place of what is going to be changed; one that it `makes` may need the run's temporary folder."""
        if place.is_kept_run or place.path == "/":
            raise Reserved(f"{shown(place.path)} cannot be changed. Write to a name of your own.")
        if makes and self._temporary is None and place.path.startswith(f"{TEMPORARY}/"):
            self._temporary = self._new_temporary()
            return self._place(place.path)
        return place

    def _new_temporary(self) -> str:
        """Make a folder that is gone when the run ends, and return its name."""
        made = TEMPORARY_PREFIX + secrets.token_hex(8)
        ledger = self._workspace.ledger
        with (
            ledger.locked(),
            refusing(Name((made,))),
            self._workspace.beside.open_folder(()) as top,
            ledger.change(more_bytes=0, more_entries=1),
        ):
            top.make(made)
        self._made.append(made)
        return made

    def _opened(self, place: PathTarget, *, writable: bool) -> int:
        if place.is_kept_run and writable:
            raise Reserved(f"{shown(place.path)} cannot be changed. Write to a name of your own.")
        handle, status = place.root.open_file(place.name, os.O_RDWR if writable else os.O_RDONLY)
        return self._keep(handle, status, writable=writable)

    def _found(self, place: PathTarget, identity: str, *, writable: bool) -> int:
        """Return the descriptor of an open file, opened again by its path where it was let go."""
        for key in ((identity, True), (identity, False)):
            handle = self._handles.get(key)
            if handle is not None and (key[1] or not writable):
                self._handles.move_to_end(key)
                return handle
        try:
            handle = self._opened(place, writable=writable)
        except NotFound:
            raise _replaced(place.path) from None
        if _identity(os.fstat(handle)) != identity:
            raise _replaced(place.path)
        return handle

    def _keep(self, handle: int, status: os.stat_result, *, writable: bool) -> int:
        key = _identity(status), writable
        before = self._handles.pop(key, None)
        if before is not None:
            os.close(before)
        self._handles[key] = handle
        while len(self._handles) > DESCRIPTORS_MAX:
            os.close(self._handles.popitem(last=False)[1])
        return handle


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev:x}.{status.st_ino:x}"


def _plain(folder: Folder, name: Name, path: str) -> os.stat_result:
    """Return the status of a plain file that is to be removed, moved or replaced."""
    current = folder.status(name.leaf)
    if current is None:
        raise _not_found(path)
    if stat.S_ISDIR(current.st_mode):
        raise _is_a_folder(path)
    if not is_plain(current):
        raise NotAFile(f"{shown(path)} is not a regular file with one name. It stays as it is.", errno.ELOOP)
    return current


def _judge_number(number: object) -> None:
    if type(number) is not int or not 0 <= number <= _OFFSET_MAX:
        raise NameRefused("An offset or a size has to be a whole number from 0 up.", errno.EINVAL)


def _not_found(path: object) -> NotFound:
    return NotFound(f"There is no {shown(str(path))} in the workspace. List the files to see what there is.")


def _is_a_folder(path: str) -> NotAFile:
    return NotAFile(f"{shown(path)} is a folder. Name a file in it.", errno.EISDIR)


def _replaced(path: str) -> WorkspaceError:
    return NotFound(f"{shown(path)} was removed or replaced while it was open. Open it again.", errno.ESTALE)
