"""Writes to the database a moment after the call that caused it, so that no call waits for the disk."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from ...skills_db.errors import CommitUnknown, DatabaseUnreachable

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
WAITING_MAX = 10_000
"""How many wait for a database that does not answer; from twice as many on the oldest are dropped, which is logged."""


@dataclass(frozen=True, slots=True)
class _Waiter:
    """One who waits until so many were written, if `durable` so that they survive a crash of the machine."""

    number: int
    durable: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]


class WriteBehind(Generic[T]):
    """Items that a thread of its own writes, many at once; safe to use from several threads and event loops.

    What could not be written since the database cannot be reached is tried again; any other failure is logged, and its
    items are given up. A crash of the program loses what waits; an orderly end loses nothing.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[T]], None],
        *,
        quiet_seconds: float = inf,
        wait_seconds_max: float = inf,
        merge: Callable[[list[T]], list[T]] = list,
        passing: tuple[type[BaseException], ...] = (DatabaseUnreachable,),
        size: Callable[[T], int] = lambda _: 1,
        much: int | None = None,
        at_once: int | None = None,
        waiting_max: int | None = None,
        retry_seconds: float = 0.0,
        tells: Callable[[BaseException, float], bool] = lambda _error, _seconds: True,
        lost: Callable[[Sequence[T], BaseException | None], None] = lambda _items, _error: None,
        beside: Callable[[], float] = lambda: inf,
    ) -> None:
        """Make it; `name` is what the items are called in the log, in the plural.

        The thread writes once nothing came for `quiet_seconds`, the first has waited for `wait_seconds_max`, the sizes
        of all come to `much`, or somebody waits (`stored`). `write` may block; it is given the items, `at_once` at
        most, and removes those from the list that need not be written again if it raises. `merge` makes fewer items of
        those that are written together.

        What is `passing` is tried again after `retry_seconds`, with the same items where a commit was not heard of.
        Those who wait get the error where `tells`, called with it and the seconds for which writing has failed, returns
        true. `lost` is called with the items that were given up, and the error; for items beyond `waiting_max` the
        error is None. `beside` does what else is due in the thread, and returns after how many seconds it is to be
        called again.
        """
        self._name = name
        self._write = write
        self._quiet_seconds = quiet_seconds
        self._wait_seconds_max = wait_seconds_max
        self._merge = merge
        self._passing = passing
        self._size = size
        self._much = much
        self._at_once = at_once
        self._waiting_max = waiting_max
        self._retry_seconds = retry_seconds
        self._tells = tells
        self._given_up = lost
        self._beside = beside
        self._changed = threading.Condition()
        self._writing = threading.RLock()
        self._waiting: deque[tuple[int, T]] = deque()
        self._waiting_size = 0
        self._waiters: list[_Waiter] = []
        self._added = 0
        self._first: float | None = None
        """When the first of the items came that are to be written soon."""
        self._last = self._retry_at = 0.0
        self._unheard = 0
        """How many of the first ones were in a commit of which it is not known whether it came about."""
        self._is_woken = self._hurries = self._ends = False
        self._thread: threading.Thread | None = None
        self.written = 0
        """How many of the items that were added wait no more."""
        self.is_durable = False
        """Whether somebody waits for what is being written to survive a crash of the machine."""
        self.fails_since: float | None = None
        """Since when nothing could be written, by `time.monotonic`, and why."""
        self.error: BaseException | None = None

    def add(self, *items: T, idly: bool = False) -> None:
        """Queue items for writing; returns at once. Those that are added `idly` wait for others to be written with."""
        with self._changed:
            for item in items:
                self._added += 1
                self._waiting.append((self._added, item))
                self._waiting_size += self._size(item)
            if self._waiting_size > 2 * self._most:
                self._bound(None)
            if idly:
                return
            self._last = time.monotonic()
            if self._first is None:
                self._first = self._last
                self._wake()
            elif self._is_much:
                self._wake()

    async def stored(self, *, durable: bool = False, but: int = 0) -> None:
        """Wait until all that was added is written, `but` so many.

        Raises why it could not be written.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._changed:
            if self.written >= self._added - but:
                return
            self._waiters.append(_Waiter(self._added - but, durable, loop, future))
            self._wake()
        await future

    def hurry(self) -> None:
        """Start writing what was added; returns before it is written."""
        with self._changed:
            self._hurries = True
            self._wake()

    def wake(self) -> None:
        """Schedule a call of `beside`."""
        with self._changed:
            self._wake()

    def __len__(self) -> int:
        return len(self._waiting)

    def waiting(self) -> list[T]:
        """Return what waits to be written."""
        with self._changed:
            return [item for _, item in self._waiting]

    def flush(self) -> None:
        """Write what waits, and wait for what is being written; what fails waits on. Blocks."""
        with self._writing:
            while self._waiting and self._write_some():
                pass

    def close(self, *, writes: bool | None = None) -> None:
        """Write what waits and end, by default unless it was all added idly. Blocks."""
        with self._changed:
            self._ends = True
            self._wake()
            thread = self._thread
        if thread is not None:
            thread.join()
        if writes or (writes is None and (self._first is not None or self._waiters)):
            self.flush()
        if self._waiting and self.fails_since is not None:
            _LOG.error("%d %s are lost: %s", len(self._waiting), self._name, self.error)
            self._given_up(self.waiting(), self.error)

    @property
    def _most(self) -> float:
        return WAITING_MAX if self._waiting_max is None else self._waiting_max

    @property
    def _is_much(self) -> bool:
        return self._much is not None and self._waiting_size >= self._much

    def _wake(self) -> None:
        """Wake the thread; it starts with the first item."""
        self._is_woken = True
        if self._thread is None and not self._ends:
            self._thread = threading.Thread(target=self._work, name=f"sealab {self._name}", daemon=True)
            self._thread.start()
        else:
            self._changed.notify()

    def _work(self) -> None:
        while not self._ends:
            rest = self._beside()
            with self._changed:
                seconds = min(self._seconds_until_due(), rest)
                if seconds > 0 and not self._is_woken:
                    self._changed.wait(None if seconds == inf else seconds)
                self._is_woken = False
                is_due = self._seconds_until_due() <= 0
            if is_due and not self._ends:
                self._write_some()

    def _seconds_until_due(self) -> float:
        """Return how long nothing is to be written; 0 where something is."""
        now = time.monotonic()
        if not (self._waiters or self._hurries or self._is_much):
            if self._first is None:
                return inf
            due = min(self._last + self._quiet_seconds, self._first + self._wait_seconds_max)
            return max(max(due, self._retry_at) - now, 0.0)
        return max(self._retry_at - now, 0.0)

    def _write_some(self) -> bool:
        """Write what waits, as much as is written at once; return whether that went well or was given up."""
        with self._writing:
            with self._changed:
                items, upto = self._taken()
                self.is_durable = any(each.durable for each in self._waiters)
                self._hurries = False
            began = time.monotonic()
            error: BaseException | None = None
            try:
                if items:
                    self._write(items)
            except Exception as failure:  # noqa: BLE001 - raised to all who wait, and logged
                error = failure
            is_passing = isinstance(error, self._passing)
            is_unheard = isinstance(error, CommitUnknown) or (is_passing and self._unheard)
            self._unheard = len(items) if is_unheard else 0
            if error is not None and not is_passing and items:
                _LOG.warning("%d %s could not be written: %s", len(items), self._name, error)
                self._given_up(items, error)
            with self._changed:
                if is_passing and error is not None:
                    self._put_back(items, upto, error, began)
                else:
                    self.written, self.fails_since, self.error = upto, None, None
                done = self._done_waiting(error, upto, is_passing=is_passing)
            _let_go_on(done, error)
        return not is_passing

    def _taken(self) -> tuple[list[T], int]:
        """Take the items that are written next, and return them with the number of the last."""
        count = self._unheard or self._at_once or len(self._waiting)
        taken = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        self._waiting_size -= sum(self._size(item) for _, item in taken)
        if not self._waiting:
            self._first = None
        upto = taken[-1][0] if taken else self.written
        items = [item for _, item in taken]
        return (items if self._unheard else self._merge(items)), upto

    def _put_back(self, items: list[T], upto: int, error: BaseException, began: float) -> None:
        """Queue items before the others."""
        now = time.monotonic()
        if self.fails_since is None:
            _LOG.warning("%d %s wait to be written: %s", len(items), self._name, error)
        self.fails_since, self.error = self.fails_since or began, error
        self._retry_at = now + self._retry_seconds
        self._first = self._first or now
        self._waiting.extendleft((upto, item) for item in reversed(items))
        self._waiting_size += sum(map(self._size, items))
        if self._waiting_size > self._most:
            self._bound(error)

    def _bound(self, error: BaseException | None) -> None:
        """Make what waits so little as may wait: the oldest is dropped."""
        last = self._waiting[-1][0]
        items = deque(self._merge([item for _, item in self._waiting]))
        size = sum(map(self._size, items))
        dropped: list[T] = []
        while size > self._most:
            dropped.append(items.popleft())
            size -= self._size(dropped[-1])
        if dropped:
            _LOG.warning("%d %s were dropped: too many wait to be written", len(dropped), self._name)
            self._given_up(dropped, error)
            self._unheard = 0
        self._waiting, self._waiting_size = deque((last, item) for item in items), size

    def _done_waiting(self, error: BaseException | None, upto: int, *, is_passing: bool) -> list[_Waiter]:
        """Return those who wait no longer: for what is written, given up, or could not be written for too long."""
        if is_passing and error is not None:
            seconds = time.monotonic() - (self.fails_since or 0.0)
            done = self._waiters if self._ends or self._tells(error, seconds) else []
        else:
            done = [each for each in self._waiters if each.number <= upto]
        self._waiters = [each for each in self._waiters if each not in done]
        return done


def _let_go_on(waiting: Iterable[_Waiter], error: BaseException | None) -> None:
    """Let those go on that wait for what a thread wrote, each in its loop: with `error`, if that failed."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for each in waiting:
        by_loop.setdefault(each.loop, []).append(each.future)
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
