"""The cache: a folder of this process that shows the names of a workspace's files, and the content of those in use.

A content never changes under its key, so a copy holds as long as the row of its name has that key. A file whose
content is not here is an empty one of the right length that nobody may read (mode 000): code that sees the folder
itself is refused, and never reads zeros. The content comes under another name and takes its place by `rename(2)`, so a
reader has the old content or the new. Copies that were not used for longest make room for others.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from ..errors import ChangedMeanwhile, NotFound, Unavailable, WorkspaceError
from ..names import PART_PREFIX, Name, shown
from ..paths import FILE_MODE, Folder, Root, refusing, write_all
from .stored_names import Parts, Row

_ATTEMPTS = 10
_FETCH_AGAIN_BYTES = 8 * 1024 * 1024
"""A copy up to this size is fetched anew when its object has changed, so that code which reads it may go on."""


@dataclass(slots=True)
class Copy:
    """What is known of a file, and the inode of what stands for it here."""

    found: Row
    inode: int
    has_content: bool
    used: int = 0


@dataclass(slots=True)
class MirrorChange:
    """What a content that is not in the store yet was made from, and whether it replaces the whole of what is there."""

    base: Row | None
    whole: bool = False


class NameLocks:
    """A lock for each name, held while it is changed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._locks: WeakValueDictionary[Parts, threading.RLock] = WeakValueDictionary()

    @contextlib.contextmanager
    def held(self, *names: Parts) -> Iterator[None]:
        """Hold names against other threads; several in an order that cannot lock up."""
        with self._turn:
            locks = [self._locks.setdefault(parts, threading.RLock()) for parts in sorted(set(names))]
        with contextlib.ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            yield


class Mirror:
    """The cache of one workspace in a folder. `lock` guards the folder; no file is fetched under it.

    `pieces` gives the content of a file, and raises `ChangedMeanwhile` where it is gone; `looked_up` gives what has a
    name now. `is_open` says whether runs have a file of this inode open, which is then not dropped; `bytes_max` bounds
    what is held beside those.
    """

    def __init__(
        self,
        root: Root,
        beside: Root,
        pieces: Callable[[Row], Iterator[bytes]],
        looked_up: Callable[[Parts], Row | None],
        lock: Callable[[], contextlib.AbstractContextManager[None]],
        *,
        bytes_max: int,
        is_open: Callable[[int], bool],
    ) -> None:
        self.locks = NameLocks()
        self.changed: dict[Parts, MirrorChange] = {}
        """Names whose content here is not in the store yet."""
        self._pins = 0
        self._pinning = threading.Lock()
        self._copies: dict[Parts, Copy] = {}
        self._root = root
        self._beside = beside
        self._pieces = pieces
        self._looked_up = looked_up
        self._lock = lock
        self._bytes_max = bytes_max
        self._is_open = is_open
        self._held_bytes = 0
        self._uses = 0

    def pin(self, more: int) -> None:
        """Count the runs that read the folder by themselves: while there are any, nothing is dropped to make room."""
        with self._pinning:
            self._pins += more

    def known(self, parts: Parts) -> Row | None:
        """Return what the file of a name stands for."""
        copy = self._copies.get(parts)
        return None if copy is None else copy.found

    def inode(self, parts: Parts) -> int | None:
        """Return the inode of the file that stands at a name."""
        status = self._status(parts)
        return None if status is None or stat.S_ISDIR(status.st_mode) else status.st_ino

    def size(self, parts: Parts) -> int:
        """Return the bytes of the file that stands at a name; none where there is none."""
        status = self._status(parts)
        return 0 if status is None else status.st_size

    def parts_of(self, inode: int) -> Parts | None:
        """Return the name of a file by its inode."""
        with self._lock():
            return next((parts for parts in (*self._copies, *self.changed) if self.inode(parts) == inode), None)

    def show(self, found: Row) -> None:
        """Show a file or a folder in the folder."""
        parts = found.parts
        if found.is_folder:
            with self._lock(), contextlib.ExitStack() as stack:
                self._folder(parts, stack)
            return
        with self._lock():
            copy = self._copies.get(parts)
            is_held = copy is not None and copy.found == found and copy.inode == self.inode(parts)
            if is_held or parts in self.changed:
                return
            had_content = copy is not None and copy.has_content
            self._place(self._part(found), found, has_content=found.size == 0)
        if had_content and 0 < found.size <= _FETCH_AGAIN_BYTES:
            self.fetch(parts)

    def _part(self, found: Row, pieces: Iterable[bytes] | None = None) -> str:
        """Make a file beside with this content, or one of its length that nobody may read, and return its name."""
        leaf = PART_PREFIX + secrets.token_hex(8)
        with refusing(Name(found.parts)), self._beside.open_folder(()) as top:
            handle = top.create(leaf)
            try:
                if pieces is None:
                    os.ftruncate(handle, found.size)
                    os.fchmod(handle, 0 if found.size else FILE_MODE)
                else:
                    for piece in pieces:
                        write_all(handle, piece)
                os.utime(handle, ns=(found.modified_ns, found.modified_ns))
            except BaseException:
                top.unlink(leaf)
                raise
            finally:
                os.close(handle)
        return leaf

    def forget(self, parts: Parts) -> None:
        """Show nothing at a name, unless something there is not in the store yet."""
        with self._lock():
            if any(each[: len(parts)] == parts for each in self.changed):
                return
            self._remove(parts)

    def show_level(self, parts: Parts, found: Sequence[Row]) -> None:
        """Show these files and folders directly below a name, and nothing else."""
        for row in found:
            self.show(row)
        there = {row.parts[-1] for row in found}
        with self._lock(), contextlib.ExitStack() as stack:
            for name in self._folder(parts, stack).names():
                if name not in there:
                    self.forget((*parts, name))

    def fetch(self, parts: Parts) -> None:
        """Fetch the content of a file. Raises `NotFound` or `Unavailable`."""
        with self.locks.held(parts):
            for _ in range(_ATTEMPTS):
                with self._lock():
                    copy = self._copies.get(parts)
                    if parts in self.changed or copy is None:
                        return
                    self._uses += 1
                    copy.used = self._uses
                    if copy.has_content:
                        return
                try:
                    self._fetch(copy.found)
                except ChangedMeanwhile:
                    self._look_again(parts, copy.found)
            raise ChangedMeanwhile(f"{shown('/'.join(parts))} is being replaced all the time. Try again.")

    def _look_again(self, parts: Parts, before: Row) -> None:
        found = self._looked_up(parts)
        if found is None or found.is_folder:
            self.forget(parts)
            raise NotFound(f"{shown('/'.join(parts))} was deleted meanwhile. List the files to see what there is.")
        if found.blob == before.blob:
            raise Unavailable(
                f"The content of {shown(found.path)} is not in the object store. Ask the operator to put it back."
            )
        self.show(found)

    def _fetch(self, found: Row) -> None:
        self._make_room(found)
        leaf = self._part(found, self._pieces(found))
        with self._lock():
            copy = self._copies.get(found.parts)
            if copy is not None and copy.found == found and found.parts not in self.changed:
                self._place(leaf, found, has_content=True)
                return
        with self._beside.open_folder(()) as top:
            top.unlink(leaf)  # another came here meanwhile, which is looked at next

    def take(self, found: Row, data: bytes) -> None:
        """Show what was just written to the store, with its content. What goes wrong costs a request later."""
        try:
            leaf = self._part(found, [data])
            with self._lock():
                self._place(leaf, found, has_content=True)
        except WorkspaceError:
            self.forget(found.parts)

    def note(self, parts: Parts, found: Row) -> None:
        """Mark the file at a name as what the store has now."""
        with self._lock():
            inode = self.inode(parts)
            self.changed.pop(parts, None)
            self._drop_copy(parts)
            if inode is not None:
                self._add(parts, Copy(found, inode, has_content=True))

    def begin_change(self, parts: Parts, *, whole: bool = False) -> None:
        """Mark the file at a name as about to differ from what the store has."""
        with self._lock():
            change = self.changed.setdefault(parts, MirrorChange(self.known(parts)))
            change.whole |= whole

    def drop_change(self, parts: Parts) -> None:
        """Give up what differs here, and show nothing until the store is asked again."""
        with self._lock():
            self.changed.pop(parts, None)
            self._remove(parts)

    def allow(self, parts: Parts) -> None:
        """Make a file without content one that can be opened, since it is about to be emptied."""
        with self._lock():
            copy = self._copies.get(parts)
            if copy is not None and not copy.has_content:
                with contextlib.suppress(OSError, WorkspaceError), self._root.open_folder(parts[:-1]) as folder:
                    folder.allow(parts[-1], FILE_MODE)

    def move(self, parts: Parts, found: Row) -> None:
        """Show a file under its new name."""
        goal = found.parts
        with self._lock(), refusing(Name(parts)), contextlib.ExitStack() as stack:
            copy = self._copies.get(parts)
            if copy is None:
                return
            self._clear(goal)
            into = self._folder(goal[:-1], stack)
            with self._root.open_folder(parts[:-1]) as folder:
                folder.rename(parts[-1], goal[-1], into=into)
            self._drop_copy(parts)
            self._drop_copy(goal)
            self._add(goal, Copy(found, copy.inode, copy.has_content))

    def _status(self, parts: Parts) -> os.stat_result | None:
        try:
            with self._root.open_folder(parts[:-1]) as folder:
                return folder.status(parts[-1])
        except WorkspaceError:
            return None

    def _folder(self, parts: Parts, stack: contextlib.ExitStack) -> Folder:
        """Open a folder, made with those above it; a file that stands in its way is only a copy."""
        folder = stack.enter_context(self._root.open_folder(()))
        with refusing(Name(parts)):
            for depth, part in enumerate(parts, 1):
                status = folder.status(part)
                if status is not None and not stat.S_ISDIR(status.st_mode):
                    self._judge_unchanged(parts[:depth])
                    self._remove(parts[:depth])
                    status = None
                if status is None:
                    folder.make(part)
                folder = stack.enter_context(folder.enter(part))
        return folder

    def _judge_unchanged(self, parts: Parts) -> None:
        if any(each[: len(parts)] == parts for each in self.changed):
            raise ChangedMeanwhile(
                f"{shown('/'.join(parts))} is being written here, and is something else in the store. Close it first."
            )

    def _place(self, leaf: str, found: Row, *, has_content: bool) -> None:
        """Let a file beside take its place, or remove it; call with the lock held."""
        parts = found.parts
        with refusing(Name(parts)), self._beside.open_folder(()) as beside, contextlib.ExitStack() as stack:
            try:
                self._clear(parts)
                folder = self._folder(parts[:-1], stack)
                beside.rename(leaf, parts[-1], into=folder)
            except BaseException:
                beside.unlink(leaf)
                raise
            status = folder.status(parts[-1])
        self._drop_copy(parts)
        self._add(parts, Copy(found, status.st_ino if status else 0, has_content))

    def _clear(self, parts: Parts) -> None:
        status = self._status(parts)
        if status is not None and stat.S_ISDIR(status.st_mode):
            self._judge_unchanged(parts)
            self._remove(parts)

    def _add(self, parts: Parts, copy: Copy) -> None:
        self._uses += 1
        copy.used = self._uses
        self._copies[parts] = copy
        self._held_bytes += copy.found.size if copy.has_content else 0

    def _drop_copy(self, parts: Parts) -> None:
        copy = self._copies.pop(parts, None)
        if copy is not None and copy.has_content:
            self._held_bytes -= copy.found.size

    def _remove(self, parts: Parts) -> None:
        """Remove what stands at a name with all below it; call with the lock held."""
        status = self._status(parts)
        if status is not None and parts:
            with self._root.open_folder(parts[:-1]) as folder, refusing(Name(parts)):
                if stat.S_ISDIR(status.st_mode):
                    with folder.enter(parts[-1]) as inside:
                        names = inside.names()
                    for name in names:
                        self._remove((*parts, name))
                    folder.remove(parts[-1])
                else:
                    folder.unlink(parts[-1])
        self._drop_copy(parts)

    def _make_room(self, found: Row) -> None:
        """Drop the content of copies that were not used for longest. Raises `Unavailable` for what is too large."""
        if found.size > self._bytes_max:
            raise Unavailable(
                f"{shown(found.path)} has {found.size} bytes, and the cache of this server holds {self._bytes_max}. "
                "Ask the operator to raise WORKSPACE_CACHE_MB.",
                errno.EFBIG,
            )
        with self._lock():
            if self._held_bytes + found.size <= self._bytes_max:
                return
            for parts, copy in () if self._pins else sorted(self._copies.items(), key=lambda item: item[1].used):
                if not copy.has_content or not copy.found.size or parts in self.changed or self._is_open(copy.inode):
                    continue
                self._place(self._part(copy.found), copy.found, has_content=False)
                if self._held_bytes + found.size <= self._bytes_max:
                    return
        raise Unavailable(
            f"The cache of this server, of {self._bytes_max} bytes, is full of files that are in use. Try again later, "
            "or ask the operator to raise WORKSPACE_CACHE_MB."
        )
