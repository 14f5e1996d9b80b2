"""SECURITY BOUNDARY: the only place where a name becomes an open file or folder. Nothing else here opens anything.

A name was judged by its letters before (`names`); here the kernel judges it, and that has to hold alone. The root is
opened once and pinned as a descriptor. Every later look-up starts at it and may neither leave it nor follow a link:
`openat2(2)` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS`. Where that call is missing (before
Linux 5.6, other systems, seccomp profiles that answer ENOSYS or EPERM), each component is opened on its own with
`O_NOFOLLOW | O_DIRECTORY`. A mount point below the root is the operator's wish and belongs to the workspace.

Then the opened handle is judged, never the name again: a regular file with one link (a second hard link may be a file
from outside), opened with `O_NONBLOCK` so that a FIFO cannot hold the server up. So there is nothing between check and
use that a rename could swap.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn, Self

from .errors import NameRefused, NotAFile, NotFound, Unavailable
from .names import DEPTH_MAX, RUNS, TEMPORARY_PREFIX, Name, shown

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REOPEN_MAX = 100

_Open = Callable[[int, Sequence[str], int], int]

_SYS_OPENAT2 = 437  # the same number on every architecture that took part in the unified table
_UNIFIED = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "loongarch64", "i686", "armv7l"})
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08


class _OpenHow(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _open_by_kernel(root: int, parts: Sequence[str], flags: int) -> int:
    """Open the whole path in one call that can neither leave the root nor follow a link. Raises `OSError`."""
    path = "/".join(parts).encode(errors="surrogateescape") or b"."
    how = _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    while True:
        handle = _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(root),
            path,
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if handle >= 0:
            return int(handle)
        number = ctypes.get_errno()
        if number not in {errno.EINTR, errno.EAGAIN}:
            raise OSError(number, os.strerror(number))


def _open_by_steps(root: int, parts: Sequence[str], flags: int) -> int:
    """Open one component after another, none of which may be a link. Raises `OSError`."""
    folder = root
    try:
        for part in parts[:-1]:
            deeper = os.open(_one(part), _FOLDER_FLAGS, dir_fd=folder)
            if folder != root:
                os.close(folder)
            folder = deeper
        return os.open(_one(parts[-1]) if parts else ".", flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        if folder != root:
            os.close(folder)


_libc = ctypes.CDLL(None, use_errno=True)


def _way_of_opening(root: int) -> _Open:
    """Ask once whether openat2 answers here."""
    if sys.platform == "linux" and platform.machine() in _UNIFIED:
        try:
            os.close(_open_by_kernel(root, (), _FOLDER_FLAGS))
        except OSError:
            return _open_by_steps
        return _open_by_kernel
    return _open_by_steps


class WalkedEntry(NamedTuple):
    """One entry met on a walk. `parts` start at the root; a folder's `size` is 0."""

    parts: tuple[str, ...]
    size: int
    modified_ns: int
    is_folder: bool
    is_plain: bool
    """A regular file with one link: something that `Root.open_file` would open."""


class Folder:
    """An open folder inside the root. Its methods take one component, never a path."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def status(self, leaf: str) -> os.stat_result | None:
        """Look at what stands under this name now, links not followed; None when nothing does."""
        try:
            return os.stat(_one(leaf), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def enter(self, leaf: str) -> Folder:
        """Open the folder of this name. Raises `OSError`, also when it is a link."""
        return Folder(os.open(_one(leaf), _FOLDER_FLAGS, dir_fd=self._handle))

    def make(self, leaf: str) -> None:
        """Make a folder. Raises `OSError`, `FileExistsError` when the name is taken."""
        os.mkdir(_one(leaf), FOLDER_MODE, dir_fd=self._handle)

    def create(self, leaf: str, access: int = os.O_WRONLY) -> int:
        """Create a file that was not there and return its descriptor. Raises `OSError`."""
        flags = access | os.O_CREAT | os.O_EXCL | _FILE_FLAGS
        return os.open(_one(leaf), flags, FILE_MODE, dir_fd=self._handle)

    def recreate(self, leaf: str) -> int:
        """Open a plain file for writing from its start, its content still there, or create it.

        Anything else of this name (a link, a file with a second name) is removed, never written through. Raises
        `OSError`.
        """
        try:
            handle = os.open(_one(leaf), os.O_WRONLY | _FILE_FLAGS, dir_fd=self._handle)
        except FileNotFoundError:
            return self.create(leaf)
        except OSError:
            self.unlink(leaf)
            return self.create(leaf)
        if is_plain(os.fstat(handle)):
            return handle
        os.close(handle)
        self.unlink(leaf)
        return self.create(leaf)

    def rename(self, leaf: str, to: str, *, into: Folder | None = None) -> None:
        """Give an entry another name, here or in the folder `into`, replacing what has it. Raises `OSError`."""
        target = self if into is None else into
        os.rename(_one(leaf), _one(to), src_dir_fd=self._handle, dst_dir_fd=target._handle)

    def read(self, leaf: str) -> bytes:
        """Return the content of a plain file. Raises `OSError`, also when it is anything else."""
        with open(self.open_plain(leaf), "rb") as file:
            return file.read()

    def open_plain(self, leaf: str) -> int:
        """Open a plain file for reading and return its descriptor. Raises `OSError`, also when it is anything else."""
        handle = os.open(_one(leaf), os.O_RDONLY | _FILE_FLAGS, dir_fd=self._handle)
        if is_plain(os.fstat(handle)):
            return handle
        os.close(handle)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))

    def unlink(self, leaf: str) -> None:
        """Remove a file's name; a link is removed itself, never what it leads to. Raises `OSError`."""
        os.unlink(_one(leaf), dir_fd=self._handle)

    def remove(self, leaf: str) -> None:
        """Remove an empty folder. Raises `OSError`."""
        os.rmdir(_one(leaf), dir_fd=self._handle)

    def allow(self, leaf: str, mode: int) -> None:
        """Change the permissions of an entry of a folder that this process alone changes. Raises `OSError`."""
        os.chmod(_one(leaf), mode, dir_fd=self._handle)

    def names(self) -> list[str]:
        """List the names of all entries, in no order."""
        return os.listdir(self._handle)

    def entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """Give the name and the status of each entry, in no order, links not followed; what vanishes is left out."""
        with os.scandir(self._handle) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    yield entry.name, entry.stat(follow_symlinks=False)

    def own_status(self) -> os.stat_result:
        """Look at the folder itself."""
        return os.fstat(self._handle)


def _one(leaf: str) -> str:
    """Pass one component and nothing but. Names were judged before; this holds if that is ever forgotten."""
    if leaf in {"", ".", ".."} or "/" in leaf or "\0" in leaf:
        raise NameRefused(f"{shown(leaf)} is not one component. Pass paths through Name.parse.")
    return leaf


class Root:
    """A folder, pinned at opening, as the workspace's is: renaming it or swapping a link for it later changes nothing.

    It is made with mode 0700 when missing; a root that is itself a link is followed once, here.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            os.makedirs(path, FOLDER_MODE, exist_ok=True)
            self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(
                f"The workspace folder cannot be opened ({error.strerror}). "
                "Give a folder that this user may write, with --home."
            ) from None
        self._open = _way_of_opening(self._handle)

    def close(self) -> None:
        """Close the folder; the root cannot be used after that. May be called twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    @property
    def resolves_by_kernel(self) -> bool:
        """Whether openat2 does the resolving, rather than one component after another."""
        return self._open is _open_by_kernel

    def open_file(
        self, name: Name, flags: int = os.O_RDONLY, *, shown_as: Name | None = None
    ) -> tuple[int, os.stat_result]:
        """Open a plain file: its descriptor, which the caller closes, and what it really is.

        Raises `NotFound`, `NotAFile` or `Unavailable`, which speak of it as `shown_as`.
        """
        shown_as = shown_as or name
        for _ in range(_REOPEN_MAX):
            try:
                handle = self._open(self._handle, name.parts, flags | _FILE_FLAGS)
            except OSError as error:
                refuse(error, shown_as)
            try:
                status = os.fstat(handle)
                if status.st_nlink:
                    judge(status, shown_as)
                    return handle, status
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # replaced or deleted since it was opened: look again
        raise Unavailable(f"{shown(str(shown_as))} is being replaced all the time. Try again.")

    def open_folder(self, parts: Sequence[str], *, shown_as: Name | None = None) -> Folder:
        """Open a folder. Raises `NotFound`, `NotAFile` or `Unavailable`, which speak of it as `shown_as`."""
        try:
            return Folder(self._open(self._handle, parts, _FOLDER_FLAGS))
        except OSError as error:
            refuse(error, shown_as or Name(tuple(parts)))

    def nearest_folder(self, parts: Sequence[str]) -> tuple[Folder, tuple[str, ...]]:
        """Open the deepest folder of `parts` that exists, and say which of them are missing below it."""
        for depth in range(len(parts), -1, -1):
            with contextlib.suppress(NotFound):
                return self.open_folder(parts[:depth]), tuple(parts[depth:])
        raise Unavailable("The workspace folder was removed. Restart sealab to make it anew.")

    def walk(self, parts: tuple[str, ...] = (), *, shown_as: Name | None = None) -> Iterator[WalkedEntry]:
        """Visit every entry below a folder, in no order, links not followed, at most `DEPTH_MAX` deep.

        From above, `.runs` and runs' temporary folders are left out; entries that vanish on the way always are. Raises
        `NotFound`, `NotAFile` or `Unavailable` for the folder itself, and speaks of it as `shown_as`.
        """
        with self.open_folder(parts, shown_as=shown_as) as folder:
            yield from _walk(folder, parts)


def _walk(folder: Folder, parts: tuple[str, ...]) -> Iterator[WalkedEntry]:
    with os.scandir(folder._handle) as entries:
        for entry in entries:
            if not parts and (entry.name == RUNS or entry.name.startswith(TEMPORARY_PREFIX)):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            here = (*parts, entry.name)
            is_folder = stat.S_ISDIR(status.st_mode)
            size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            yield WalkedEntry(here, size, status.st_mtime_ns, is_folder, is_plain(status))
            if is_folder and len(here) < DEPTH_MAX:
                try:
                    deeper = folder.enter(entry.name)
                except OSError:
                    continue
                with deeper:
                    yield from _walk(deeper, here)


def is_plain(status: os.stat_result) -> bool:
    """Return whether this is a regular file with one name."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def judge(status: os.stat_result, name: Name) -> None:
    """Raise `NotAFile` unless this is a regular file with no second name."""
    if stat.S_ISDIR(status.st_mode):
        raise NotAFile(
            f"{shown(str(name))} is a folder. Name a file in it; listing it shows which there are.", errno.EISDIR
        )
    if stat.S_ISLNK(status.st_mode):
        raise NotAFile(f"{shown(str(name))} is a symbolic link, and links are not followed. Choose another name.")
    if not stat.S_ISREG(status.st_mode):
        raise NotAFile(f"{shown(str(name))} is not a regular file. Choose another name.")
    if status.st_nlink > 1:
        raise NotAFile(
            f"{shown(str(name))} is a hard link that something outside may share. "
            "Replace it by a copy, or choose another name."
        )


@contextlib.contextmanager
def refusing(name: Name) -> Iterator[None]:
    """Turn every `OSError` of the body into an error of this folder."""
    try:
        yield
    except OSError as error:
        refuse(error, name)


def refuse(error: OSError, name: Name) -> NoReturn:
    """Turn what the kernel answered into an error of this folder, without any host path."""
    quoted = shown(str(name))
    match error.errno:
        case errno.ENOENT:
            raise NotFound(f"There is no {quoted} in the workspace. List the files to see what there is.") from None
        case errno.ELOOP | errno.EXDEV | errno.ENOTDIR:
            raise NotAFile(
                f"{quoted} leads through a link or a file where a folder should be. "
                "Choose a path made of real folders.",
                error.errno,
            ) from None
        case errno.EISDIR:
            raise NotAFile(
                f"{quoted} is a folder. Name a file in it; listing it shows which there are.", errno.EISDIR
            ) from None
        case errno.ENXIO | errno.ENODEV:
            raise NotAFile(f"{quoted} is not a regular file. Choose another name.") from None
        case errno.ENAMETOOLONG:
            raise NameRefused(
                f"The name {quoted} is too long for this file system. Use a shorter one.", errno.ENAMETOOLONG
            ) from None
        case errno.ENOSPC | errno.EDQUOT:
            raise Unavailable(
                "The disk is full. Delete files, or ask the operator of this machine for space.", errno.ENOSPC
            ) from None
        case _:
            reason = os.strerror(error.errno) if error.errno else "unknown error"
            raise Unavailable(
                f"The operating system refused {quoted} ({reason}). Check the permissions of the workspace folder.",
                error.errno,
            ) from None


def read_at(handle: int, size: int, offset: int = 0) -> bytes:
    """Return `size` bytes of an open file from `offset` on, or fewer at its end. Raises `OSError`."""
    data = os.pread(handle, size, offset)
    pieces, have = [data], len(data)
    while data and have < size:
        data = os.pread(handle, size - have, offset + have)
        pieces.append(data)
        have += len(data)
    return b"".join(pieces) if len(pieces) > 1 else pieces[0]


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data` to a descriptor. Raises `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
