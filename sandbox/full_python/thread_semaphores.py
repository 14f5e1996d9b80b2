"""Semaphores for multiprocessing where there is one process: among its threads, without the system's named ones.

Pools of threads and locks of `multiprocessing` need them, though no other process ever shares them.
"""

from __future__ import annotations

import threading
from typing import ClassVar

_RECURSIVE = 0


class ThreadSemaphore:
    """Has the methods of `_multiprocessing.SemLock`, which `multiprocessing.synchronize` builds on."""

    SEM_VALUE_MAX: ClassVar[int] = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:  # noqa: ARG002 - Python's own signature
        self.kind = kind
        self.maxvalue = maxvalue
        self.name = None
        self.handle = 0
        self._value = value
        self._held = 0
        self._holder: int | None = None
        self._changed = threading.Condition()

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Take one, or wait for it; return whether it was taken."""
        with self._changed:
            if self.kind == _RECURSIVE and self._is_mine():
                self._held += 1
                return True
            if not self._changed.wait_for(lambda: self._value > 0, timeout if block else 0):
                return False
            self._value -= 1
            self._held += 1
            self._holder = threading.get_ident()
            return True

    def release(self) -> None:
        """Give one back. Raises AssertionError or ValueError as multiprocessing's own does."""
        with self._changed:
            if self.kind == _RECURSIVE:
                if not self._is_mine():
                    raise AssertionError("attempt to release recursive lock not owned by thread")
                if self._held > 1:
                    self._held -= 1
                    return
            elif self._value >= self.maxvalue:
                raise ValueError("semaphore or lock released too many times")
            self._value += 1
            self._held -= 1
            self._changed.notify()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        return self._held > 0 and self._holder == threading.get_ident()

    def _get_value(self) -> int:
        return self._value

    def _is_zero(self) -> bool:
        return self._value == 0

    def _after_fork(self) -> None:
        """No-op: there are no forks."""
