"""Brings what a run wrote to an overlay home into the workspace: all of it, or nothing with the reason.

First everything is copied to files beside the workspace, then the quota is judged for all changes together, and each
file takes its place by `rename(2)`: who reads meanwhile sees the old content or the new one. Where the run only opened
a file for writing, and left it as it was, nothing is done. Of two runs that change one file at a time, the one that
ends last wins. All of that is done in steps, between which neither a thread nor the workspace is held.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

from .changes import REFUSED_MAX, ChangedFile, ChangedFolder, Changes, Steps
from .errors import NotAFile, NotFound, WorkspaceError
from .names import LANDING_PREFIX, PART_PREFIX, Name
from .paths import Folder, WalkedEntry, is_plain, read_at, refusing
from .quota import Part
from .store import Workspace

_CHUNK_BYTES = 1 << 20
_COPY_BYTES = 1 << 24
_sync = getattr(os, "fdatasync", os.fsync)

STORED_BYTES_MAX = 256 * 1024 * 1024
"""The largest file that is put into an object store: it is in memory meanwhile."""

_OVERTAKEN = "another changed it meanwhile, and this run seems only to have opened it"


@dataclass(slots=True)
class Landed:
    """What became of changes: names, and sizes in bytes. `not_kept` says why something stayed behind."""

    new: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    not_kept: dict[str, str] = field(default_factory=dict)
    more_not_kept: int = 0

    @property
    def is_anything(self) -> bool:
        """Whether the workspace is another than before."""
        return bool(self.new or self.changed or self.deleted)

    def note(self, name: str, size: int, *, is_new: bool) -> None:
        """Note a file that took its place; one that was deleted before it did was changed."""
        was_deleted = name in self.deleted
        if was_deleted:
            self.deleted.remove(name)
        (self.new if is_new and not was_deleted else self.changed)[name] = size


def land(workspace: Workspace, changed: ChangedFolder, changes: Changes, *, begun_ns: int) -> Steps[Landed]:
    """Apply changes that a run made which began at `begun_ns`, and say what was done. Each step blocks.

    Raises `WorkspaceError` where they do not all fit the quota, or the disk refuses: then nothing is done. Where the
    disk refuses in the middle, what was not done is in `not_kept`, with what was refused when the changes were read.
    """
    landing = _Landing(workspace, changed, begun_ns)
    landed = Landed(not_kept=dict(changes.refused), more_not_kept=changes.more_refused)
    yield from landing.store(changes, landed) if workspace.is_stored else landing.apply(changes, landed)
    return landed


@dataclass(slots=True)
class KeptFiles:
    """Files of a run that do not come home, in memory; `left_out` says why others are not there."""

    files: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    more_left_out: int = 0


def read_kept(
    workspace: Workspace,
    changed: ChangedFolder,
    changes: Changes,
    *,
    begun_ns: int,
    bytes_max: int,
    files_max: int,
) -> Steps[KeptFiles]:
    """Read what a run wrote, the smallest files first, as far as `bytes_max` and `files_max` go. Each step blocks."""
    landing = _Landing(workspace, changed, begun_ns)
    kept = KeptFiles(left_out=dict(changes.refused), more_left_out=changes.more_refused)
    for file in sorted(changes.files, key=lambda each: each.size):
        name = "/".join(file.parts)
        yield
        try:
            if file.size > bytes_max:
                why = f"its {file.size} bytes are too many to be kept"
            elif len(kept.files) >= files_max:
                why = "there are too many files to keep them all"
            else:
                with changed.open(file) as source:
                    if not (yield from landing.is_as_before(file, source)):
                        kept.files[name] = read_at(source, file.size)
                        bytes_max -= file.size
                continue
        except OSError as error:
            why = error.strerror or "it cannot be read"
        if len(kept.left_out) < REFUSED_MAX:
            kept.left_out[name] = why
        else:
            kept.more_left_out += 1
    return kept


@dataclass(frozen=True, slots=True)
class _Staged:
    file: ChangedFile
    leaf: str
    """Its name beside the workspace."""


_Take = Callable[[ChangedFile, int], Steps[None]]
"""Takes a file that is open. Raises `OSError`, `WorkspaceError`."""


class _Landing:
    def __init__(self, workspace: Workspace, changed: ChangedFolder, begun_ns: int) -> None:
        self._workspace = workspace
        self._changed = changed
        self._begun_ns = begun_ns

    def _was_overtaken(self, file: ChangedFile, source: int) -> bool:
        """Return whether another changed a file since the run began, which itself may only have opened it.

        The kernel copies what is opened for writing, with its time. What the run wrote itself has a time of the run,
        unless it set another.
        """
        if file.modified_ns >= self._begun_ns or self._changed.is_known(file):
            return False  # the second: a session that took it home before has changed it again
        if not self._changed.is_copied_up(source):
            return False
        status = self._status(file.parts)
        return status is not None and status.st_ctime_ns >= self._begun_ns

    def is_as_before(self, file: ChangedFile, source: int) -> Steps[bool]:
        """Return whether an open file of the run is what the workspace has."""
        before = self._before(Name(file.parts))
        if before is None:
            return False
        try:
            return os.fstat(before).st_size == file.size and (yield from _same_content(source, before, file.size))
        finally:
            os.close(before)

    # In a folder.

    def apply(self, changes: Changes, landed: Landed) -> Steps[None]:
        workspace = self._workspace
        with _stage(workspace) as stage, contextlib.ExitStack() as stack:
            self._judge(changes)  # before anything is copied
            staged: list[_Staged] = []
            for file in changes.files:
                yield from self._taken(file, landed, partial(self._stage, stage, staged))
            beside = stack.enter_context(workspace.beside.open_folder((stage,)))
            leaving, staying = yield from self._leaving(changes, landed)
            gone = {each.parts for each in leaving}
            folders = [parts for parts in changes.folders if staying.isdisjoint(_upwards(parts))]
            staged = yield from self._taking_place(staged, gone, staying, landed)
            moves = [Part(partial(self._remove, found, landed), -found.size, -1) for found in leaving]
            yield from self._add_folders(moves, folders, gone)
            yield from self._add_files(moves, staged, gone, beside, landed)
            try:
                yield from workspace.ledger.change_in_steps(moves)
            except WorkspaceError as error:
                if not landed.is_anything:
                    for made in staged:
                        beside.unlink(made.leaf)
                        yield
                    raise
                _note_the_rest(leaving, staged, landed, str(error))
                return
        self._changed.remember(changes)  # for the next call of a session

    def _judge(self, changes: Changes) -> None:
        """Raise `QuotaFull` where what was written would not even fit an empty workspace."""
        ledger = self._workspace.ledger
        written = sum(file.size for file in changes.files)
        entries = len(changes.files) + len(changes.folders)
        if written > ledger.quota_bytes or entries > ledger.files_max:
            with ledger.locked():
                ledger.judge(more_bytes=written, more_entries=entries)

    def _taken(self, file: ChangedFile, landed: Landed, take: _Take) -> Steps[None]:
        """Take a file as `take` does, unless it stays behind, or is as it was before."""
        yield
        try:
            with self._changed.open(file) as source:
                if (yield from self.is_as_before(file, source)):
                    return
                if self._was_overtaken(file, source):
                    landed.not_kept["/".join(file.parts)] = _OVERTAKEN
                    return
                yield from take(file, source)
        except OSError as error:
            landed.not_kept["/".join(file.parts)] = error.strerror or "it cannot be read"

    def _stage(self, stage: str, staged: list[_Staged], file: ChangedFile, source: int) -> Steps[None]:
        """Copy a file to the folder beside the workspace."""
        leaf = secrets.token_hex(8)
        replaces = self._status(file.parts) is not None
        with refusing(Name(file.parts)), self._workspace.beside.open_folder((stage,)) as folder:
            yield from _copy(source, folder, leaf, sync=replaces)
        staged.append(_Staged(file, leaf))

    def _before(self, name: Name) -> int | None:
        """Open what has a name in the workspace now; None where that is nothing, or no plain file."""
        try:
            return self._workspace.root.open_file(name)[0]
        except WorkspaceError:
            return None

    def _taking_place(
        self, staged: list[_Staged], gone: Collection[tuple[str, ...]], staying: set[tuple[str, ...]], landed: Landed
    ) -> Steps[list[_Staged]]:
        """Return the files that may stand where they would; what stands there stays where it is no plain file."""
        taking = []
        for made in staged:
            parts = made.file.parts
            status = None if parts in gone else self._status(parts)
            if not staying.isdisjoint(_upwards(parts[:-1])):
                landed.not_kept["/".join(parts)] = "what has the name of its folder in the workspace is no folder"
            elif status is not None and not is_plain(status):
                why = "what has this name in the workspace is no regular file with one name"
                landed.not_kept["/".join(parts)] = why
            else:
                taking.append(made)
            yield
        return taking

    def _status(self, parts: tuple[str, ...]) -> os.stat_result | None:
        with contextlib.suppress(NotFound, NotAFile), self._workspace.root.open_folder(parts[:-1]) as folder:
            return folder.status(parts[-1])
        return None

    def _leaving(self, changes: Changes, landed: Landed) -> Steps[tuple[list[WalkedEntry], set[tuple[str, ...]]]]:
        """Find what is deleted, the deepest first, and what stays since it is no plain file.

        Raises `WorkspaceError` where the workspace cannot be looked at.
        """
        found: dict[tuple[str, ...], WalkedEntry] = {}
        for each in self._in_the_way(changes):
            if each is not None:
                found[each.parts] = each
            yield
        staying = {each.parts for each in found.values() if not each.is_folder and not each.is_plain}
        for parts in staying:
            del found[parts]
            landed.not_kept["/".join(parts)] = "it is no regular file with one name, so it is not deleted"
        return sorted(found.values(), key=lambda each: -len(each.parts)), staying

    def _in_the_way(self, changes: Changes) -> Iterator[WalkedEntry | None]:
        """Give what is deleted, and None where nothing was found for a while."""
        written = {file.parts for file in changes.files}
        there = written | set(changes.folders)
        for parts in changes.deleted:
            yield from self._below(parts, itself=True)
        for parts in changes.replaced:
            yield from (None if each.parts in there else each for each in self._below(parts))
        for parts in written:
            # A file where a folder was: the folder was deleted.
            yield from self._below(parts, itself=True, folders_alone=True)
            yield None
        for parts in changes.folders:
            yield from self._file_at(parts)
            yield None

    def _below(
        self, parts: tuple[str, ...], *, itself: bool = False, folders_alone: bool = False
    ) -> Iterator[WalkedEntry]:
        with contextlib.suppress(NotFound, NotAFile):
            status = self._status(parts)
            if status is None:
                return
            if stat.S_ISDIR(status.st_mode):
                if itself:
                    yield WalkedEntry(parts, 0, 0, is_folder=True, is_plain=False)
                yield from self._workspace.root.walk(parts)
            elif itself and not folders_alone:
                yield _found(parts, status)

    def _file_at(self, parts: tuple[str, ...]) -> Iterator[WalkedEntry]:
        status = self._status(parts)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            yield _found(parts, status)

    def _add_folders(
        self, moves: list[Part], folders: list[tuple[str, ...]], gone: Collection[tuple[str, ...]]
    ) -> Steps[None]:
        for parts in folders:
            is_new = self._status(parts) is None or parts in gone
            moves.append(Part(partial(self._make_folder, parts), 0, int(is_new)))
            yield

    def _add_files(
        self,
        moves: list[Part],
        staged: list[_Staged],
        gone: Collection[tuple[str, ...]],
        beside: Folder,
        landed: Landed,
    ) -> Steps[None]:
        for made in staged:
            more_bytes = made.file.size
            status = None if made.file.parts in gone else self._status(made.file.parts)
            if status is not None:
                more_bytes -= status.st_size
            moves.append(Part(partial(self._put, made, beside, landed), more_bytes, int(status is None)))
            yield

    def _remove(self, found: WalkedEntry, landed: Landed) -> None:
        name = Name(found.parts)
        with (
            contextlib.suppress(NotFound),
            refusing(name),
            self._workspace.root.open_folder(found.parts[:-1]) as folder,
        ):
            if not found.is_folder:
                folder.unlink(name.leaf)
                landed.deleted.append(str(name))
                return
            try:
                folder.remove(name.leaf)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:  # something in it stays, or was added meanwhile
                    raise

    def _make_folder(self, parts: tuple[str, ...]) -> None:
        with (
            refusing(Name(parts)),
            self._workspace.root.open_folder(parts[:-1]) as folder,
            contextlib.suppress(FileExistsError),
        ):
            folder.make(parts[-1])

    def _put(self, made: _Staged, beside: Folder, landed: Landed) -> None:
        name = Name(made.file.parts)
        with refusing(name), self._workspace.root.open_folder(name.folder) as folder:
            current = folder.status(name.leaf)
            try:
                beside.rename(made.leaf, name.leaf, into=folder)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                _copy_over(beside, made.leaf, folder, name.leaf)
        landed.note(str(name), made.file.size, is_new=current is None)

    # In an object store.

    def store(self, changes: Changes, landed: Landed) -> Steps[None]:
        """Apply changes where the files are in an object store, one after the other."""
        workspace = self._workspace
        self._judge(changes)
        for found in (yield from self._leaving(changes, landed))[0]:
            yield
            if not found.is_folder:
                with contextlib.suppress(NotFound):
                    workspace.delete(str(Name(found.parts)))
                    landed.deleted.append(str(Name(found.parts)))
        for file in changes.files:
            if file.size > STORED_BYTES_MAX:
                why = f"{STORED_BYTES_MAX} bytes are the most that one file may have in an object store"
                landed.not_kept["/".join(file.parts)] = why
            else:
                yield from self._taken(file, landed, partial(self._store_file, landed))
        self._changed.remember(changes)

    def _store_file(self, landed: Landed, file: ChangedFile, source: int) -> Steps[None]:
        name = str(Name(file.parts))
        is_new = self._status(file.parts) is None
        try:
            self._workspace.write(name, read_at(source, file.size))
        except WorkspaceError as error:
            landed.not_kept[name] = str(error)
        else:
            landed.note(name, file.size, is_new=is_new)
        yield


@contextlib.contextmanager
def _stage(workspace: Workspace) -> Iterator[str]:
    """Make a folder beside the workspace, and remove it with what was not moved out of it. Gives its name."""
    name = LANDING_PREFIX + secrets.token_hex(8)
    with refusing(Name((name,))), workspace.beside.open_folder(()) as top:
        top.make(name)
    try:
        yield name
    finally:
        workspace.remove_landing(name)


def _upwards(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Give a name and those of the folders that it lies in."""
    return (parts[:count] for count in range(1, len(parts) + 1))


def _note_the_rest(leaving: list[WalkedEntry], staged: list[_Staged], landed: Landed, why: str) -> None:
    """Note of a change that ended in the middle what was not done; the rest was."""
    left = {"/".join(made.file.parts) for made in staged} - {*landed.new, *landed.changed}
    left |= {"/".join(found.parts) for found in leaving if not found.is_folder} - {*landed.deleted, *landed.changed}
    landed.not_kept.update(dict.fromkeys(sorted(left), why))


def _found(parts: tuple[str, ...], status: os.stat_result) -> WalkedEntry:
    size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    return WalkedEntry(parts, size, status.st_mtime_ns, stat.S_ISDIR(status.st_mode), is_plain(status))


def _copy(source: int, folder: Folder, leaf: str, *, sync: bool) -> Steps[None]:
    """Copy an open file, from its start, to a new one. Raises `OSError`."""
    target = folder.create(leaf)
    try:
        size = os.fstat(source).st_size
        at = 0
        while at < size:
            at += _copied_range(source, target, at, size - at)
            if sync:
                _sync(target)
            yield
    finally:
        os.close(target)


def _copied_range(source: int, target: int, at: int, size: int) -> int:
    """Copy some bytes, in the kernel where it can (copy_file_range(2)), and return how many. Raises `OSError`."""
    try:
        moved = os.copy_file_range(source, target, min(size, _COPY_BYTES), at, at)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}:
            raise
        moved = os.pwrite(target, os.pread(source, min(size, _CHUNK_BYTES), at), at)
    if not moved:
        raise OSError(errno.ESTALE, "it became shorter while it was read")
    return moved


def _copy_over(beside: Folder, leaf: str, folder: Folder, to: str) -> None:
    """Copy a staged file to another file system, and let it take its place there. Raises `OSError`."""
    source = beside.open_plain(leaf)
    part = PART_PREFIX + secrets.token_hex(8)
    try:
        for _ in _copy(source, folder, part, sync=True):
            pass
        folder.rename(part, to)
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(part)
        raise
    finally:
        os.close(source)


def _same_content(one: int, other: int, size: int) -> Steps[bool]:
    """Return whether the first `size` bytes of two open files are the same. Raises `OSError`."""
    for at in range(0, size, _CHUNK_BYTES):
        if os.pread(one, _CHUNK_BYTES, at) != os.pread(other, _CHUNK_BYTES, at):
            return False
        yield
    return True
