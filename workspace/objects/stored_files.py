"""The files of one run where the workspace is in an object store.

A stored content cannot be changed. So what code writes to an open file goes to the copy in the cache, where every
run of this server finds it at once, and goes to the store as a whole when the file is closed or synced, before any
other operation on its name, and at the latest when the run ends. A run whose last files the store did not take has
failed. Names that are removed, renamed or made go to the store at once.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from ..errors import ChangedMeanwhile, NotAFile, Reserved, WorkspaceError
from ..names import shown
from ..run_files import Mode, PathStatus, PathTarget, RunFiles
from .stored_names import Parts, Row
from .stored_workspace import StoredWorkspace


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

    def _is_stored(self, place: PathTarget) -> bool:
        return place.root is self._workspace.root and not place.is_top

    def open(self, path: str, mode: Mode) -> PathStatus:
        """Open a file, as `RunFiles.open` does. One that is made with "x" is in the store at once."""
        with self._turn:
            place = self._place(path, is_new=mode in {"w", "x", "a"})
            if not self._is_stored(place):
                return super().open(path, mode)
            parts = place.name.parts
            with self._stored.mirror.locks.held(parts):
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
    def _open_for_change(self, place: PathTarget, identity: str) -> Iterator[None]:
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
        with mirror.locks.held(parts):
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
        """Store what was written to an open file."""
        inode = _inode(identity)
        with self._turn:
            for parts in list(self._stored.mirror.changed):
                if self._stored.mirror.inode(parts) == inode:
                    self._stored.store_change(parts)

    def settle(self) -> None:
        """Store all that this run wrote. What the store refuses is given up, and the first error is raised."""
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

    def _own(self, path: str, *, makes: bool = False) -> Parts | None:
        """Return the name of what is to be changed, where it is one of the store's."""
        place = self._place(path, is_new=makes)
        return self._changeable(place, makes=makes).name.parts if self._is_stored(place) else None

    def make_folder(self, path: str) -> None:
        """Make one folder, for all servers."""
        with self._turn:
            if (parts := self._own(path, makes=True)) is None:
                super().make_folder(path)
                return
            with self._stored.mirror.locks.held(parts):
                self._stored.settle(parts)
                self._stored.names.make_folder("/".join(parts), path)
                self._changed(parts)

    def remove(self, path: str) -> None:
        """Remove a plain file, for all servers."""
        with self._turn:
            if (parts := self._own(path)) is None:
                super().remove(path)
                return
            with self._stored.mirror.locks.held(parts):
                self._stored.remove_file(parts, path)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder, for all servers."""
        with self._turn:
            if (parts := self._own(path)) is None:
                super().remove_folder(path)
                return
            self._stored.settle(parts)
            self._stored.names.remove_folder("/".join(parts), path)
            self._changed(parts)

    def rename(self, path: str, target: str) -> None:
        """Give a file or a folder another name, for all servers at once."""
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
            parts, into = source.name.parts, goal.name.parts
            with self._stored.mirror.locks.held(parts, into):
                self._stored.settle(parts)
                self._stored.settle(into)
                moved, replaced = self._stored.names.rename("/".join(parts), "/".join(into), path, target)
                if not moved.is_folder and parts != into:
                    self._stored.mirror.move(parts, moved)
                self._changed(parts, replaced)
                self._stored.bring(into)

    def _changed(self, parts: Parts, gone: Row | None = None) -> None:
        self._stored.changed(gone)
        self._stored.bring(parts)

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Look whether the file is there: its time is that of its content."""
        with self._turn:
            super().set_modified(path, modified_ns) if self._own(path) is None else self.status(path)


def _inode(identity: str) -> int:
    try:
        return int(identity.partition(".")[2], 16)
    except ValueError:
        return -1
