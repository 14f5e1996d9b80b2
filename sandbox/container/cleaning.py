"""Security boundary: leaves a container as it was before a run, or says that it cannot be sure of that.

What a run could leave behind in a container whose root is read-only: processes, files in the places that can be
written, and objects of System V IPC. The first process kills, deletes and then looks.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress

_IPC_FILES = ("sysvipc/shm", "sysvipc/sem", "sysvipc/msg")
_FIRST = 1


class ContainerState:
    """The container as its first process sees it. Made at the start, while /proc can be reached by its path."""

    def __init__(self) -> None:
        if os.getpid() != _FIRST:
            raise RuntimeError("Only the first process of a container may clean it: this would end other processes.")
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._places = [os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for path in _writable(self._proc)]

    def clean(self) -> bool:
        """End every other process and empty what can be written; return whether nothing is left."""
        try:
            _end_all()
            for place in self._places:
                _empty(place)
            return self._is_empty()
        except OSError:
            return False

    def _is_empty(self) -> bool:
        if any(name.isdecimal() and int(name) != _FIRST for name in os.listdir(self._proc)):
            return False
        if any(os.listdir(place) for place in self._places):
            return False
        return not any(self._ipc_objects(file) for file in _IPC_FILES)

    def _ipc_objects(self, file: str) -> bool:
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except FileNotFoundError:
            return False
        with open(descriptor, encoding="ascii") as table:
            return len(table.readlines()) > 1


def _writable(proc: int) -> Sequence[str]:
    """Give the directories that are mounted on their own and that this user may write (proc(5), mountinfo)."""
    with open(os.open("self/mountinfo", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), encoding="utf-8") as table:
        mounted = {line.split()[4].encode().decode("unicode_escape") for line in table}
    return sorted(path for path in mounted if os.path.isdir(path) and os.access(path, os.W_OK))


def _end_all() -> None:
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _empty(place: int) -> None:
    """Delete what lies in an open directory, never following a link."""
    for entry in os.listdir(place):
        try:
            os.unlink(entry, dir_fd=place)
        except IsADirectoryError:
            shutil.rmtree(entry, dir_fd=place)
