"""A folder for the cache of one process, empty when it starts and gone when it ends, also after a crash."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from ..errors import Unavailable
from ..store import BESIDE

FOLDER = "workspace-cache"
_LOCK = ".lock"


def cache_folder(home: Path) -> Path:
    """Return where the cache of this process lies below a home."""
    return home / FOLDER / str(os.getpid())


class CachePlace:
    """The folder, held by a lock (`flock(2)`) that ends with the process; those of ended processes are removed.

    Raises `Unavailable` where this process has it open already, or it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle = -1
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for lock in folder.parent.glob(f"*{_LOCK}"):
                self._remove_ended(lock)
            self._handle = os.open(
                folder.with_name(folder.name + _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        except OSError as error:
            self.close()
            raise Unavailable(
                f"The cache of the object store cannot be made ({error.strerror}). Give a home that this user may "
                "write, with --home, and open it once in a process."
            ) from None

    @staticmethod
    def _remove_ended(lock: Path) -> None:
        with contextlib.suppress(OSError):
            handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(lock.with_name(lock.name.removesuffix(_LOCK)))
                lock.unlink()
            finally:
                os.close(handle)

    def close(self) -> None:
        """Remove the folder. May be called twice."""
        if self._handle >= 0:
            _remove(self._folder)
            with contextlib.suppress(OSError):
                self._folder.with_name(self._folder.name + _LOCK).unlink()
            os.close(self._handle)
            self._handle = -1


def _remove(folder: Path) -> None:
    for each in (folder, folder.with_name(folder.name + BESIDE)):
        if os.path.lexists(each):
            shutil.rmtree(each, ignore_errors=True)
