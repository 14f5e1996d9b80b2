"""The files of one run where the workspace is in an object store.

An object cannot be changed in place. So what code writes to an open file goes to the copy in the cache, where every
run of this server finds it at once, and goes to the store as a whole when the file is closed or synced, before any
other operation on its name, and at the latest when the run ends. A run whose last files the store did not take has
failed. Names that are removed, renamed or made go to the store at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import ChangedMeanwhile, NotAFile, NotFound, Reserved, WorkspaceError
from ..names import FOLDER_MARK, Name, shown
from ..run_files import Mode, Place, RunFiles, Status
from .bucket import ABSENT, Object
from .mirror import Parts

if TYPE_CHECKING:
    from .stored_workspace import StoredWorkspace


_ATTEMPTS = 10
"""How often a rename looks again at what it replaces."""


class _GoalChanged(ChangedMeanwhile):
    """What a rename was about to replace became another; nothing was done yet."""


class StoredRunFiles(RunFiles):
    """`RunFiles` whose workspace is a `StoredWorkspace`."""

    def __init__(self, workspace: StoredWorkspace, owner: str | None = None) -> None:
        self._stored = workspace
        self.inodes: dict[int, int] = {}
        """How often each file is open here."""
        self._mine: set[Parts] = set()
        super().__init__(workspace, owner)

    def holds(self, inode: int) -> bool:
        """Return whether the copy of an object that has this inode number is open here."""
        return inode in self.inodes

    def _is_stored(self, place: Place) -> bool:
        return place.root is self._workspace.root and not place.is_top

    def open(self, path: str, mode: Mode) -> Status:
        """Open a file, as `RunFiles.open` does. One that is made with "x" is in the store at once."""
        with self._turn:
            place = self._place(path, is_new=mode in {"w", "x", "a"})
            if not self._is_stored(place):
                return super().open(path, mode)
            parts = place.name.parts
            with self._stored.mirror.names.held(parts):
                if mode == "w":
                    self._bring(place)
                    self._stored.mirror.allow(parts)
                before = None if mode in {"r", "r+"} else self._stored.mirror.inode(parts)
                opened = super().open(path, mode)
                inode = _inode(opened.identity)
                if mode == "w" or (mode in {"x", "a"} and before != inode):
                    self._change(parts, whole=mode == "w")
                self.inodes[inode] = self.inodes.get(inode, 0) + 1
                if mode == "x":
                    self._make_at_once(parts, path)
            return opened

    def _make_at_once(self, parts: Parts, path: str) -> None:
        try:
            self._stored.store_change(parts)
        except ChangedMeanwhile:
            raise NotAFile(f"There is a {shown(path)} already. Choose another name.", errno.EEXIST) from None

    def _change(self, parts: Parts, *, whole: bool = False) -> None:
        self._stored.mirror.begin_change(parts, whole=whole)
        self._mine.add(parts)

    def write(self, path: str, identity: str, offset: int | None, data: bytes) -> int:
        """Write to the copy in the cache; see the head of this module."""
        with self._turn:
            place = self._place(path)
            if not self._is_stored(place):
                return super().write(path, identity, offset, data)
            with self._open_for_change(place, identity):
                return super().write(path, identity, offset, data)

    def truncate(self, path: str, identity: str, size: int) -> None:
        """Make the copy in the cache this long."""
        with self._turn:
            place = self._place(path)
            if not self._is_stored(place):
                super().truncate(path, identity, size)
                return
            with self._open_for_change(place, identity):
                super().truncate(path, identity, size)

    @contextlib.contextmanager
    def _open_for_change(self, place: Place, identity: str) -> Iterator[None]:
        """Note that an open file is changed, by whatever name it has now; one that is removed is nobody's."""
        mirror, inode = self._stored.mirror, _inode(identity)
        parts = place.name.parts
        if mirror.inode(parts) != inode:
            elsewhere = mirror.parts_of(inode)
            if elsewhere is None and mirror.inode(parts) is not None:
                raise ChangedMeanwhile(
                    f"{shown(place.path)} was replaced by another program or server while it was open. Open it again."
                )
            parts = elsewhere or ()
        with mirror.names.held(parts):
            if parts:
                self._change(parts)
            yield

    def release(self, identity: str) -> None:
        """Close a file's descriptors."""
        with self._turn:
            inode = _inode(identity)
            left = self.inodes.get(inode, 0) - 1
            if left > 0:
                self.inodes[inode] = left
            else:
                self.inodes.pop(inode, None)
            super().release(identity)

    def waits_at_close(self, path: str) -> bool:
        """Return whether a file is one of the store's."""
        return self._is_stored(self._place(path))

    def sync(self, identity: str) -> None:
        """Have the store hold what was written to an open file."""
        inode = _inode(identity)
        with self._turn:
            for parts in list(self._stored.mirror.changed):
                if self._stored.mirror.inode(parts) == inode:
                    self._stored.store_change(parts)

    def settle(self) -> None:
        """Have the store hold all that this run wrote. What it does not take is given up, and the first is raised."""
        failed: WorkspaceError | None = None
        with self._turn:
            while self._mine:
                parts = self._mine.pop()
                try:
                    self._stored.store_change(parts)
                except WorkspaceError as error:
                    failed = failed or error
                    self._stored.drop_name(parts)
        if failed is not None:
            raise failed

    def close(self) -> None:
        """End the run's files, as `RunFiles.close` does; `settle` comes before."""
        with contextlib.suppress(WorkspaceError):
            self.settle()
        self.inodes.clear()
        super().close()

    def make_folder(self, path: str) -> None:
        """Make one folder, in the store too."""
        with self._turn:
            place = self._place(path, is_new=True)
            if not self._is_stored(place):
                super().make_folder(path)
                return
            parts = self._changeable(place, makes=True).name.parts
            with self._stored.mirror.names.held(parts):
                self._bring(place)
                if self._status(parts) is not None:
                    raise NotAFile(f"There is a {shown(path)} already. Choose another name.", errno.EEXIST)
                self._judge_folder(place.name.folder)
                self._stored.make_folder(parts)

    def remove(self, path: str) -> None:
        """Remove a plain file, in the store too."""
        with self._turn:
            place = self._place(path)
            if not self._is_stored(place):
                super().remove(path)
                return
            parts = self._changeable(place).name.parts
            with self._stored.mirror.names.held(parts):
                is_new = self._stored.mirror.changed.get(parts, False) is None
                if is_new:
                    self._stored.store_change(parts)
                found = self._file(place)
                self._stored.drop_name(parts)
                self._stored.remove_file(parts, found, keeps_folder=True)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder, in the store too."""
        with self._turn:
            place = self._place(path)
            if not self._is_stored(place):
                super().remove_folder(path)
                return
            parts = self._changeable(place).name.parts
            self._stored.settle_name(parts)
            self._bring(place)
            status = self._status(parts)
            if status is None:
                raise _missing(path)
            if not stat.S_ISDIR(status.st_mode):
                raise NotAFile(f"{shown(path)} is not a folder.", errno.ENOTDIR)
            left = self._stored.bucket.some_below("/".join(parts), 2)
            mark = "/".join((*parts, FOLDER_MARK))
            if any(each.key != mark for each in left):
                raise NotAFile(f"{shown(path)} is not empty. Remove what is in it first.", errno.ENOTEMPTY)
            self._stored.keep_folder(parts[:-1], without=mark)
            if left:
                self._stored.take_out(mark)
            self._stored.mirror.forget(parts)

    def rename(self, path: str, target: str) -> None:
        """Copy objects to their new names and delete the old ones: not at once, and nothing is lost between."""
        with self._turn:
            source, goal = self._place(path), self._place(target, is_new=True)
            if not self._is_stored(source) and not self._is_stored(goal):
                super().rename(path, target)
                return
            if source.is_top or goal.is_top:
                raise Reserved(f"{shown(path)} or {shown(target)} stays as it is.", errno.EBUSY)
            source, goal = self._changeable(source), self._changeable(goal, makes=True)
            if not (self._is_stored(source) and self._is_stored(goal)):
                raise NotAFile(f"{shown(path)} and {shown(target)} are in different places. Copy it.", errno.EXDEV)
            with self._stored.mirror.names.held(source.name.parts, goal.name.parts):
                for _ in range(_ATTEMPTS - 1):
                    with contextlib.suppress(_GoalChanged):
                        self._rename(source, goal)
                        return
                self._rename(source, goal)

    def _rename(self, source: Place, goal: Place) -> None:
        parts, into = source.name.parts, goal.name.parts
        self._stored.settle_name(parts)
        self._stored.settle_name(into)
        self._bring(source)
        status = self._status(parts)
        if status is None:
            raise _missing(source.path)
        self._judge_folder(into[:-1])
        if parts == into:
            return
        self._bring(goal)
        present = self._status(into)
        if stat.S_ISDIR(status.st_mode):
            self._rename_folder(source, goal, present)
            return
        if present is not None and stat.S_ISDIR(present.st_mode):
            raise NotAFile(f"{shown(goal.path)} is a folder. Name a file in it.", errno.EISDIR)
        found = self._file(source)
        replaced = None if present is None else self._stored.mirror.known(into)
        if into[: len(parts) - 1] != parts[:-1]:
            self._stored.keep_folder(parts[:-1], without=found.key)  # first: it may find no room
        try:
            moved = self._stored.copy(found, "/".join(into), ABSENT if replaced is None else replaced.etag, replaced)
        except ChangedMeanwhile as error:
            raise _GoalChanged(str(error)) from None
        self._stored.mirror.move(parts, into, moved)
        self._stored.delete_copied(found)

    def _rename_folder(self, source: Place, goal: Place, present: os.stat_result | None) -> None:
        parts, into = source.name.parts, goal.name.parts
        if into[: len(parts)] == parts:
            raise NotAFile(f"{shown(goal.path)} is within {shown(source.path)}.", errno.EINVAL)
        if present is not None and not stat.S_ISDIR(present.st_mode):
            raise NotAFile(f"{shown(goal.path)} is not a folder.", errno.ENOTDIR)
        mark = "/".join((*into, FOLDER_MARK))
        if any(each.key != mark for each in self._stored.bucket.some_below("/".join(into), 2)):
            raise NotAFile(f"{shown(goal.path)} is not empty. Remove what is in it first.", errno.ENOTEMPTY)
        inside = list(self._stored.bucket.walk("/".join(parts)))
        deepest = max((each.key.count("/") + 1 for each in inside), default=len(parts))
        self._judge_deepest(deepest - len(parts) + len(into))
        self._stored.keep_folder(parts[:-1], without="/".join(parts) + "/")
        had_mark = self._stored.bucket.head(mark) is not None
        has_mark = any(each.key == "/".join((*parts, FOLDER_MARK)) for each in inside)
        if had_mark and has_mark:
            self._stored.stored.count_stored(0, -1)  # one takes the place of the other
        for each in inside:
            own_mark = each.key == "/".join((*parts, FOLDER_MARK))
            condition = None if own_mark else ABSENT  # nobody loses a file that was made there since
            self._stored.copy(each, "/".join(into) + each.key[len("/".join(parts)) :], condition)
        for each in inside:
            self._stored.delete_copied(each)
        self._stored.mirror.forget(parts)
        self._stored.bring(into)

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Look whether the file is there. When an object was changed the store says alone."""
        with self._turn:
            place = self._place(path)
            if not self._is_stored(place):
                super().set_modified(path, modified_ns)
                return
            self._changeable(place)
            self.status(path)

    def _status(self, parts: Parts) -> os.stat_result | None:
        try:
            with self._workspace.root.open_folder(parts[:-1]) as folder:
                return folder.status(parts[-1])
        except NotFound:
            return None

    def _judge_folder(self, parts: Parts) -> None:
        """Raise `NotFound` or `NotAFile` unless this is a folder in which something can be made."""
        if parts:
            self._stored.bring(parts)
        with self._workspace.root.open_folder(parts, shown_as=Name(parts)):
            pass

    def _file(self, place: Place) -> Object:
        """Return the object that is to be removed or moved."""
        self._bring(place)
        status = self._status(place.name.parts)
        found = self._stored.mirror.known(place.name.parts)
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise NotAFile(f"{shown(place.path)} is a folder. Name a file in it.", errno.EISDIR)
        if status is None or found is None:
            raise _missing(place.path)
        return found


def _inode(identity: str) -> int:
    try:
        return int(identity.partition(".")[2], 16)
    except ValueError:
        return -1


def _missing(path: str) -> NotFound:
    return NotFound(f"There is no {shown(path)} in the workspace. List the files to see what there is.")
