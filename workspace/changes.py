"""SECURITY BOUNDARY: reads what hostile code wrote to the upper layer of an overlay on the workspace.

Any byte of it may be chosen by an attacker: names, kinds of files, depth, sizes, marks. Nothing that is found by name
is trusted: folders and files are opened relative to an open folder, without following links (`O_NOFOLLOW`) and without
waiting for who has the other end of a FIFO (`O_NONBLOCK`), and the opened handle is judged. Nothing is executed,
renamed or linked out of there; only bytes of regular files are copied. The caller makes sure that no process writes
there meanwhile.

What the marks mean is in the kernel's Documentation/filesystems/overlayfs.rst: a character device 0/0 says that a name
of the workspace was deleted, the extended attribute `user.overlay.opaque` that a folder was replaced.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Self, TypeAlias, TypeVar

from .errors import NameRefused
from .names import DEPTH_MAX, Name, shown

ENTRIES_MAX = 100_000
"""Entries that are looked at; a folder with more is not read at all."""
REFUSED_MAX = 1000
"""Refused names that are remembered one by one."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OPAQUE = "user.overlay.opaque"
_ORIGIN = "user.overlay.origin"
_SPILLED_TO = ".tmp"
_SPILLED = re.compile(r"duckdb_temp_(?:\d+_\d+_)?(?:storage_[A-Z0-9]+-\d+\.tmp|block-\d+\.block|owner)")
"""The names that DuckDB gives such files: `duckdb_temp_19663_0_storage_S32K-0.tmp`."""
_SPILLS = re.compile(r"duckdb_temp_\d+_\d+_owner")
"""What stands in each folder that DuckDB made for them."""
_NOT_WHOLE = frozenset({"user.overlay.metacopy", "user.overlay.redirect"})
_DELETED = (-1,)
_REPLACED = (-2,)
_CHUNK_BYTES = 1 << 20
DIGEST_BYTES = 16

_T = TypeVar("_T")

Steps: TypeAlias = Generator[None, None, _T]
"""Work in steps of some milliseconds, each of which may run in another thread. The generator returns the result."""
Mark = tuple[int, ...]
"""What an entry was when it was read: it is read again only where it is another by now."""


class ChangedFile(NamedTuple):
    """A regular file that was written, or copied up by the kernel because it was opened for writing."""

    parts: tuple[str, ...]
    size: int
    modified_ns: int
    mark: Mark
    content: bytes = b""
    """A digest of what is in it, where a session has it mapped or had: it writes there without a change of any time."""


@dataclass(slots=True)
class Changes:
    """What was changed, by names below the workspace's root. `refused` says why an entry cannot come home."""

    files: list[ChangedFile] = field(default_factory=list)
    folders: list[tuple[str, ...]] = field(default_factory=list)
    deleted: list[tuple[str, ...]] = field(default_factory=list)
    replaced: list[tuple[str, ...]] = field(default_factory=list)
    """Folders of which nothing stays but what stands here."""
    refused: dict[str, str] = field(default_factory=dict)
    more_refused: int = 0
    """How many more are refused than `refused` names."""
    marks: dict[str, Mark] = field(default_factory=dict)
    """Those of deleted files and replaced folders; a file has its own."""

    def refuse(self, parts: tuple[str, ...], why: str) -> None:
        """Note that an entry stays behind."""
        if len(self.refused) < REFUSED_MAX:
            self.refused[_printable("/".join(parts))] = why
        else:
            self.more_refused += 1


class TooManyChanges(Exception):
    """There are more entries than are looked at; nothing was read."""


class ChangedFolder:
    """The upper layer at a path of the host, pinned at opening. Use it as a context; raises `OSError`.

    `known` holds digests of the marks of what was read before, by digests of names: it is left out. What is not there
    any more is forgotten, so that a session keeps no more than stands in its folder, whatever it made and removed.
    `mapped` are the inode numbers of files that a process has mapped, which is stopped now and writes there later
    without a change of any time (mmap(2)): behind their marks, `known` has digests of what was in them.
    """

    def __init__(self, path: str, known: dict[bytes, bytes], mapped: frozenset[int] = frozenset()) -> None:
        self._handle = os.open(path, _FOLDER_FLAGS)
        self._known = known
        self._mapped = mapped
        self._met: set[bytes] = set()
        self._is_whole = True
        self._entries = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def read(self) -> Steps[Changes]:
        """Look at all entries. Raises `TooManyChanges` and `OSError`."""
        changes = Changes()
        self._entries = 0
        self._met, self._is_whole = set(), True
        yield from self._read(self._handle, (), changes)
        for gone in self._known.keys() - self._met if self._is_whole else ():
            del self._known[gone]
        return changes

    def is_known(self, file: ChangedFile) -> bool:
        """Return whether a file of that name was read before."""
        return digest("/".join(file.parts)) in self._known

    def remember(self, changes: Changes) -> None:
        """Leave these changes out from now on."""
        for file in changes.files:
            self._known[digest("/".join(file.parts))] = digest(repr(file.mark)) + file.content
        for name, mark in changes.marks.items():
            self._known[digest(name)] = digest(repr(mark))

    def _remembered(self, name: str) -> bytes:
        key = digest(name)
        self._met.add(key)
        return self._known.get(key, b"")

    def _read(self, folder: int, above: tuple[str, ...], changes: Changes) -> Steps[None]:
        spilled = bool(above) and above[-1].endswith(_SPILLED_TO) and any(map(_SPILLS.fullmatch, os.listdir(folder)))
        for name, status in _entries(folder):
            yield
            self._entries += 1
            if self._entries > ENTRIES_MAX:
                raise TooManyChanges
            parts = (*above, name)
            kind = stat.S_IFMT(status.st_mode)
            if len(parts) > DEPTH_MAX or (why := _why_unspeakable(parts)) is not None:
                changes.refuse(parts, "it is too deep" if len(parts) > DEPTH_MAX else str(why))
            elif kind == stat.S_IFREG:
                # What DuckDB put beside its database, since memory could not hold it, is of no use without its process.
                if not (spilled and _SPILLED.fullmatch(name)):
                    yield from self._note_file(folder, parts, status, changes)
            elif kind == stat.S_IFDIR:
                yield from self._read_folder(folder, parts, changes)
            elif kind == stat.S_IFCHR and status.st_rdev == 0:
                self._note_mark(parts, _DELETED, changes.deleted, changes)
            else:
                changes.refuse(parts, _KINDS.get(kind, "it is no regular file"))

    def _read_folder(self, folder: int, parts: tuple[str, ...], changes: Changes) -> Steps[None]:
        try:
            with _opened(parts[-1], folder) as inside:
                before = len(changes.files)
                changes.folders.append(parts)
                if _attribute(inside, _OPAQUE) == b"y":
                    self._note_mark(parts, _REPLACED, changes.replaced, changes)
                yield from self._read(inside, parts, changes)
                if parts[-1] == _SPILLED_TO and changes.folders[-1] == parts and len(changes.files) == before:
                    changes.folders.pop()
        except OSError as error:
            self._is_whole = False
            changes.refuse(parts, f"it cannot be opened ({error.strerror})")

    def _note_file(self, folder: int, parts: tuple[str, ...], status: os.stat_result, changes: Changes) -> Steps[None]:
        mark: Mark = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known, now, content = self._remembered("/".join(parts)), digest(repr(mark)), b""
        is_mapped, was_mapped = status.st_ino in self._mapped, len(known) > DIGEST_BYTES
        is_marked_so = known[:DIGEST_BYTES] == now
        if is_mapped or (was_mapped and is_marked_so):
            content = yield from _content_digest(parts[-1], folder)
        if not is_marked_so or (was_mapped and known[DIGEST_BYTES:] != content):
            changes.files.append(ChangedFile(parts, status.st_size, status.st_mtime_ns, mark, content))
        elif is_mapped:
            self._known[digest("/".join(parts))] = now + content

    def _note_mark(self, parts: tuple[str, ...], mark: Mark, marked: list[tuple[str, ...]], changes: Changes) -> None:
        name = "/".join(parts)
        if self._remembered(name) != digest(repr(mark)):
            marked.append(parts)
            changes.marks[name] = mark

    @contextlib.contextmanager
    def open(self, file: ChangedFile) -> Iterator[int]:
        """Open a file that was found, if it still is what it was. Raises `OSError`."""
        with contextlib.ExitStack() as stack:
            folder = self._handle
            for part in file.parts[:-1]:
                folder = stack.enter_context(_opened(part, folder))
            handle = _opened_file(file.parts[-1], folder)
            stack.callback(os.close, handle)
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_ino != file.mark[0] or status.st_size != file.size:
                raise OSError(errno.ESTALE, "it changed while it was read")
            if _NOT_WHOLE.intersection(_attributes(handle)):
                raise OSError(errno.EINVAL, "its content lies elsewhere")
            yield handle

    @staticmethod
    def is_copied_up(handle: int) -> bool:
        """Return whether an open file is one of the workspace that the kernel copied, rather than a new one."""
        return _ORIGIN in _attributes(handle)


_KINDS = {
    stat.S_IFLNK: "it is a symbolic link; write a file or a copy",
    stat.S_IFIFO: "it is a pipe",
    stat.S_IFSOCK: "it is a socket",
    stat.S_IFCHR: "it is a device",
    stat.S_IFBLK: "it is a device",
}


def _entries(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                yield entry.name, entry.stat(follow_symlinks=False)


def _why_unspeakable(parts: tuple[str, ...]) -> str | None:
    """Return why no caller could name it, or None."""
    try:
        name = Name.parse("/".join(parts))
    except NameRefused as refused:
        return str(refused)
    return "this name belongs to sealab" if name.reserved or name.parts != parts else None


@contextlib.contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    """Open a folder, though its owner may have closed it to itself. Raises `OSError`."""
    try:
        handle = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except PermissionError:
        _allow(name, folder, 0o700)
        handle = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def digest(text: str) -> bytes:
    """Return what stands for a name or a mark where many are kept: names may have a kilobyte each."""
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=DIGEST_BYTES).digest()


def _content_digest(name: str, folder: int) -> Steps[bytes]:
    """Return a digest of what is in a file. Raises `OSError`."""
    made = hashlib.blake2b(digest_size=DIGEST_BYTES)
    handle = _opened_file(name, folder)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            while data := os.read(handle, _CHUNK_BYTES):
                made.update(data)
                yield
    finally:
        os.close(handle)
    return made.digest()


def _opened_file(name: str, folder: int) -> int:
    try:
        return os.open(name, _FILE_FLAGS, dir_fd=folder)
    except PermissionError:
        _allow(name, folder, 0o600)
        return os.open(name, _FILE_FLAGS, dir_fd=folder)


def _allow(name: str, folder: int, mode: int) -> None:
    """Change the permissions of an entry by a descriptor of its own, so that no link is followed. Raises `OSError`."""
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISLNK(os.fstat(place).st_mode):
            os.chmod(f"/proc/self/fd/{place}", mode)
    finally:
        os.close(place)


def _attribute(handle: int, name: str) -> bytes | None:
    try:
        return os.getxattr(handle, name)
    except OSError:
        return None


def _attributes(handle: int) -> list[str]:
    try:
        return os.listxattr(handle)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise


def _printable(text: str) -> str:
    return shown(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))[1:-1]
