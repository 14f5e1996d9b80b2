"""Copies files by their descriptors, in the kernel where it can, and compares them."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets

from .changes import Steps
from .names import PART_PREFIX
from .paths import Folder

_CHUNK_BYTES = 1 << 20
_COPY_BYTES = 1 << 24
_sync = getattr(os, "fdatasync", os.fsync)


def copy(source: int, folder: Folder, leaf: str, *, sync: bool) -> Steps[None]:
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


def copy_over(beside: Folder, leaf: str, folder: Folder, to: str) -> None:
    """Copy a staged file to another file system, and let it take its place there. Raises `OSError`."""
    source = beside.open_plain(leaf)
    part = PART_PREFIX + secrets.token_hex(8)
    try:
        for _ in copy(source, folder, part, sync=True):
            pass
        folder.rename(part, to)
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(part)
        raise
    finally:
        os.close(source)


def same_content(one: int, other: int, size: int) -> Steps[bool]:
    """Return whether the first `size` bytes of two open files are the same. Raises `OSError`."""
    for at in range(0, size, _CHUNK_BYTES):
        if os.pread(one, _CHUNK_BYTES, at) != os.pread(other, _CHUNK_BYTES, at):
            return False
        yield
    return True


def whole(handle: int, size: int) -> bytes:
    """Return the first `size` bytes of an open file, or all where it has fewer. Raises `OSError`."""
    data = bytearray()
    while len(data) < size and (more := os.pread(handle, min(_CHUNK_BYTES, size - len(data)), len(data))):
        data += more
    return bytes(data)
