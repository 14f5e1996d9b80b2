"""Writes to the database a moment after the call that caused it, so that no call waits for the disk."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from ..skills_db.errors import DatabaseUnreachable

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
WAITING_MAX = 10_000
"""How many wait for a database that does not answer; from twice as many on the oldest are dropped, which is logged."""


class WriteBehind(Generic[T]):
    """Items that a thread of its own writes, many at once; safe to use from several threads.

    What could not be written because the database cannot be reached is tried again; any other failure is logged, and
    its items are given up. A crash of the program loses what waits; an orderly end loses nothing.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[T]], None],
        *,
        every_seconds: float,
        quiet_seconds: float = 0.0,
        wait_seconds_max: float = 0.0,
        merge: Callable[[list[T]], list[T]] = list,
    ) -> None:
        """Make it; `name` is what the items are called in the log, in the plural; `write` may block.

        Every `every_seconds` the thread writes all, if the last came `quiet_seconds` ago or the first has waited for
        `wait_seconds_max`. `merge` makes fewer items of those that are written together.
        """
        self._name = name
        self._write = write
        self._every_seconds = every_seconds
        self._quiet_seconds = quiet_seconds
        self._wait_seconds_max = wait_seconds_max
        self._merge = merge
        self._waiting: deque[tuple[float, T]] = deque()
        self._writing = threading.Lock()
        self._changing = threading.Lock()
        self._ends = threading.Event()
        self._is_silent = False
        self._thread: threading.Thread | None = None

    def add(self, *items: T) -> None:
        """Have items written when the thread or `flush` does so; returns at once."""
        now = time.monotonic()
        with self._changing:
            self._waiting.extend((now, item) for item in items)
            if len(self._waiting) > 2 * WAITING_MAX:
                self._put_back([])

    def start(self) -> None:
        """Start the thread, unless it was started before or `stop` was called."""
        with self._changing:
            if self._thread is None and not self._ends.is_set():
                self._thread = threading.Thread(target=self._work, name=f"sealab {self._name}", daemon=True)
                self._thread.start()

    def waiting(self) -> list[T]:
        """Return what waits to be written."""
        with self._changing:
            return [item for _, item in self._waiting]

    def flush(self) -> None:
        """Write what waits, and wait for what is being written. Blocks."""
        with self._writing:
            while self._waiting:
                with self._changing:
                    taken = list(self._waiting)
                    self._waiting.clear()
                items = self._merge([item for _, item in taken])
                try:
                    self._write(items)
                except DatabaseUnreachable as error:  # nothing of them was written
                    if not self._is_silent:
                        _LOG.warning("%d %s wait to be written: %s", len(items), self._name, error)
                    self._is_silent = True
                    with self._changing:
                        self._put_back(taken)
                    return
                except Exception as error:  # noqa: BLE001 - the call that caused them has been answered
                    _LOG.warning("%d %s could not be written: %s", len(items), self._name, error)
                else:
                    self._is_silent = False

    def stop(self) -> None:
        """End the thread; what waits then waits for `flush`. Blocks."""
        self._ends.set()
        with self._changing:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _put_back(self, taken: list[tuple[float, T]]) -> None:
        """Have items wait before the others, as few of them as may be."""
        since = (taken or self._waiting)[0][0]
        items = self._merge([item for _, item in (*taken, *self._waiting)])
        if len(items) > WAITING_MAX:
            _LOG.warning("%d %s were dropped: too many wait to be written", len(items) - WAITING_MAX, self._name)
        self._waiting = deque((since, item) for item in items[-WAITING_MAX:])

    def _work(self) -> None:
        while not self._ends.wait(self._every_seconds):
            with suppress(IndexError):  # another thread may write them meanwhile
                first, last = self._waiting[0][0], self._waiting[-1][0]
                now = time.monotonic()
                if now - last >= self._quiet_seconds or now - first >= self._wait_seconds_max:
                    self.flush()


Waiting = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]
"""A future, and the loop in which it is waited for."""


def let_go_on(waiting: Iterable[Waiting], error: BaseException | None) -> None:
    """Let those go on that wait for what a thread wrote, each in its loop: with `error`, if that failed."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for loop, future in waiting:
        by_loop.setdefault(loop, []).append(future)
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # a loop that is closed waits for nothing
            loop.call_soon_threadsafe(_resolve, futures, error)


def _resolve(futures: Sequence[asyncio.Future[None]], error: BaseException | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
