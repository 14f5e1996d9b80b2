"""What tests need to know of processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from sealab.sandbox.worker.compiled_ahead import LEAST_PRIORITY

_others: set[psutil.Process] = set()


def alive(pid: int) -> bool:
    """Return whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def children_from_here() -> Iterator[None]:
    """Count as `children` only what is started meanwhile: servers of other tests may live as long as all tests."""
    _others.update(psutil.Process().children())
    yield
    _others.clear()


def children() -> set[int]:
    """Return the processes that this one started, and theirs, without those that compile modules for a while."""
    found = set(psutil.Process().children(recursive=True))
    for other in _others:
        with suppress(psutil.NoSuchProcess):
            found -= {other, *other.children(recursive=True)}
    return {process.pid for process in found if not _compiles(process)}


def _compiles(process: psutil.Process) -> bool:
    try:
        return process.nice() == LEAST_PRIORITY
    except psutil.NoSuchProcess:
        return True
