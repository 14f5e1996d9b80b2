"""The files of a run, and those of a dry run: what it changes it finds changed, and the workspace stays as it is.

What it writes lies in a folder of the run's own beside the workspace, the upper layer, which counts against the quota
and is gone when the run ends. A file of the workspace is copied there before the run changes it. What the run removed
is remembered by its name: for that, and all below it, only the upper layer is asked from then on.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import replace

from .errors import NameRefused, NotAFile, NotFound
from .names import DEPTH_MAX, Name, shown
from .paths import Root, is_plain, refusing, write_all
from .run_files import HERE, READ_BYTES_MAX, FolderEntry, Mode, PathStatus, PathTarget, RunFiles, is_top
from .store import File, Listing, Workspace

_PIECE_BYTES = 1024 * 1024


def files_of_run(workspace: Workspace, owner: str | None = None, *, dry_run: bool = False) -> RunFiles:
    """Return what a run of this owner does with the files of a workspace."""
    if dry_run:
        return DryRunFiles(workspace, owner)
    if not workspace.is_stored:
        return RunFiles(workspace, owner)
    from .objects.stored_files import StoredRunFiles
    from .objects.stored_workspace import StoredWorkspace

    assert isinstance(workspace, StoredWorkspace)
    return StoredRunFiles(workspace, owner)


class DryRunFiles(RunFiles):
    """`RunFiles` that change nothing of the workspace but their own layer."""

    def __init__(self, workspace: Workspace, owner: str | None = None) -> None:
        super().__init__(workspace, owner)
        self._upper: str | None = None
        self._removed: set[tuple[str, ...]] = set()

    def write_whole(self, filename: str, data: bytes) -> None:
        """Write a file in place of what stands there, making its folders, as `Workspace.write` does."""
        parts = Name.parse(filename).parts
        with self._turn:
            for depth in range(1, len(parts)):
                if self._state(parts[:depth]) is None:
                    self.make_folder(_path(parts[:depth]))
            opened = self.open(_path(parts), "w")
            self.write(_path(parts), opened.identity, 0, data)
            self.release(opened.identity)

    def own_content(self, filename: str) -> bytes | None:
        """Return what the run wrote to a file, or None for one that it left as it is.

        Raises `NotFound` for one that it removed.
        """
        parts = Name.parse(filename).parts
        with self._turn:
            if not self.hides(parts):
                return None
            content = bytearray()
            opened = self.open(_path(parts), "r")
            while more := self.read(_path(parts), opened.identity, len(content), READ_BYTES_MAX):
                content += more
            self.release(opened.identity)
            return bytes(content)

    def hides(self, parts: tuple[str, ...]) -> bool:
        """Return whether the run changed or removed what the workspace has by this name."""
        with self._turn:
            return self._is_removed(parts) or self._upper_state(parts) is not None

    def list_whole(self, subpath: str) -> Listing:
        """List all files below a folder, as `Workspace.list` does."""
        parts = Name.parse_folder(subpath).parts
        with self._turn:
            own = self._written(parts)
            try:
                listing = self._workspace.list(subpath, owner=self._owner)
            except NotFound:
                if not own:
                    raise
                usage = self.usage()
                listing = Listing(subpath, (), 0, usage.used_bytes, usage.quota_bytes)
            left = [each for each in listing.files if not self.hides(tuple(each.name.split("/")))]
            files = tuple(sorted((*left, *own), key=lambda each: each.name))
            return replace(listing, files=files, count=len(files))

    def delete(self, filename: str) -> None:
        """Delete a file and the folders that it leaves empty, as `Workspace.delete` does."""
        parts = Name.parse(filename).parts
        with self._turn:
            self.remove(_path(parts))
            for depth in range(len(parts) - 1, 0, -1):
                if self.list(_path(parts[:depth])):
                    break
                self.remove_folder(_path(parts[:depth]))

    def _written(self, below: tuple[str, ...]) -> list[File]:
        """Return the files below a folder that the run wrote, by the names that it gave them."""
        if self._upper is None or not self._is_folder(self._upper_state(below)):
            return []
        found = self._workspace.beside.walk((self._upper, *below))
        return [File.of(each._replace(parts=each.parts[1:])) for each in found if each.is_plain]

    def open(self, path: str, mode: Mode) -> PathStatus:
        """Do what `RunFiles.open` does; a file of the workspace that is emptied is not copied first."""
        with self._turn:
            parts = self._parts(path)
            if mode == "w" and parts:
                state = self._state(parts)
                if state is not None and is_plain(state) and self._upper_state(parts) is None:
                    self._remove_name(parts)
            opened = super().open(path, mode)
            if mode != "r" and parts:
                self._remove_name(parts)
            return opened

    def list(self, path: str) -> list[FolderEntry]:
        """List what both layers have in a folder."""
        with self._turn:
            parts = self._parts(path)
            if self._upper is None or parts is None:
                return super().list(path)
            if not self.status(path).is_folder:
                raise NotAFile(f"{shown(path)} is a file, not a folder.", errno.ENOTDIR)
            found: dict[str, FolderEntry] = {}
            if not self._is_removed(parts) and self._is_folder(self._lower_state(parts)):
                below = self._entries(super()._place_of(path, Name(parts)))
                found = {entry.name: entry for entry in below if (*parts, entry.name) not in self._removed}
            if self._is_folder(self._upper_state(parts)):
                found |= {entry.name: entry for entry in self._entries(self._upper_place(path, parts))}
            return sorted(found.values(), key=lambda entry: entry.name)

    def remove(self, path: str) -> None:
        """Remove a plain file from the upper layer, and have that of the workspace be gone for the run."""
        with self._turn:
            parts = self._parts(path)
            if not parts or self.status(path).is_folder or self._upper_state(parts) is not None:
                super().remove(path)
            if parts:
                self._remove_name(parts)

    def remove_folder(self, path: str) -> None:
        """Remove a folder that is empty in both layers."""
        with self._turn:
            parts = self._parts(path)
            if parts:
                self._judge_empty(path)
            super().remove_folder(path)
            if parts:
                self._remove_name(parts)

    def rename(self, path: str, target: str) -> None:
        """Copy what is renamed into the upper layer, and rename it there."""
        with self._turn:
            source, goal = self._parts(path), self._parts(target)
            is_missing = self._is_missing(path) if source is None else self._state(source) is None
            # `super` decides which missing name is reported first.
            if not is_missing and not any(map(is_top, (path, target))):
                if source:
                    self._copy_all(path)
                inside = source is not None and goal is not None and goal[: len(source)] == source
                if goal and not inside and self.status(path).is_folder and self._is_folder(self._state(goal)):
                    self._judge_empty(target)
            super().rename(path, target)
            for parts in filter(None, (source, goal)):
                self._remove_name(parts)

    def _is_missing(self, path: str) -> bool:
        with suppress(NotFound, NotAFile):
            self.status(path)
            return False
        return True

    def _place_of(self, path: str, name: Name) -> PathTarget:
        if self._upper is not None and self.hides(name.parts):
            return self._upper_place(path, name.parts)
        return super()._place_of(path, name)

    def _upper_place(self, path: str, parts: tuple[str, ...]) -> PathTarget:
        return PathTarget(path, Name((self._own_layer(), *parts)), self._workspace.beside)

    def _changeable(self, place: PathTarget, *, makes: bool = False) -> PathTarget:
        place = super()._changeable(place, makes=makes)
        parts = self._parts(place.path)
        if not parts:
            return place
        # The layer is one folder more.
        if len(parts) >= DEPTH_MAX:
            raise NameRefused(f"{shown(place.path)} is too deep for a dry run.", errno.ENAMETOOLONG)
        self._copied(parts)
        return self._upper_place(place.path, parts)

    def _copied(self, parts: tuple[str, ...]) -> None:
        """Copy what the workspace has at a name, and the folders that lead there, into the upper layer."""
        for depth in range(1, len(parts) + 1):
            here = parts[:depth]
            if self._upper_state(here) is None:
                state = self._state(here)
                if state is None:
                    break
                self._copy(here, state)

    def _copy(self, parts: tuple[str, ...], state: os.stat_result) -> None:
        """Copy a plain file, or make a folder like one of the workspace."""
        name, ledger = Name(parts), self._workspace.ledger
        upper = self._own_layer()
        self._workspace.bring(parts, content=True)
        with ledger.locked(), refusing(name), self._workspace.beside.open_folder((upper, *name.folder)) as folder:
            if stat.S_ISDIR(state.st_mode):
                with ledger.change(more_bytes=0, more_entries=1):
                    folder.make(name.leaf)
                return
            source, found = self._workspace.root.open_file(name)
            try:
                with ledger.change(more_bytes=found.st_size, more_entries=1):
                    copy = folder.create(name.leaf, os.O_RDWR)
                    try:
                        while piece := os.read(source, _PIECE_BYTES):
                            write_all(copy, piece)
                        os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
                    finally:
                        os.close(copy)
            finally:
                os.close(source)

    def _copy_all(self, path: str) -> None:
        """Copy a file, or a folder with all that it holds, into the upper layer. Raises `NotFound`."""
        is_folder = self.status(path).is_folder
        parts = self._parts(path)
        assert parts
        self._copied(parts)
        for entry in self.list(path) if is_folder else ():
            self._copy_all(f"{path}/{entry.name}")

    def _own_layer(self) -> str:
        if self._upper is None:
            self._upper = self._new_temporary()
        return self._upper

    def _remove_name(self, parts: tuple[str, ...]) -> None:
        """Ask only the upper layer for a name from now on."""
        self._own_layer()
        self._removed.add(parts)

    def _judge_empty(self, path: str) -> None:
        if self.list(path):
            raise NotAFile(f"{shown(path)} is not empty. Remove what is in it first.", errno.ENOTEMPTY)

    @staticmethod
    def _parts(path: str) -> tuple[str, ...] | None:
        """Return the components of a path below the workspace, or None where it is another place, or kept runs."""
        if path == HERE:
            return ()
        if type(path) is not str or not path.startswith(f"{HERE}/"):
            return None
        try:
            name = Name.parse(path[len(HERE) + 1 :])
        except NameRefused:
            return None
        return None if name.reserved else name.parts

    def _state(self, parts: tuple[str, ...]) -> os.stat_result | None:
        """Return what the run finds at a name, or None."""
        upper = self._upper_state(parts)
        return upper if upper is not None or self._is_removed(parts) else self._lower_state(parts)

    def _upper_state(self, parts: tuple[str, ...]) -> os.stat_result | None:
        return None if self._upper is None else self._state_in(self._workspace.beside, (self._upper, *parts))

    def _lower_state(self, parts: tuple[str, ...]) -> os.stat_result | None:
        self._workspace.bring(parts)
        return self._state_in(self._workspace.root, parts)

    @staticmethod
    def _state_in(root: Root, parts: tuple[str, ...]) -> os.stat_result | None:
        try:
            with root.open_folder(parts[:-1]) as folder:
                return folder.status(parts[-1]) if parts else folder.own_status()
        except (NotFound, NotAFile):
            return None

    @staticmethod
    def _is_folder(state: os.stat_result | None) -> bool:
        return state is not None and stat.S_ISDIR(state.st_mode)

    def _is_removed(self, parts: tuple[str, ...]) -> bool:
        return any(parts[:depth] in self._removed for depth in range(1, len(parts) + 1))


def _path(parts: tuple[str, ...]) -> str:
    return "/".join((HERE, *parts))
