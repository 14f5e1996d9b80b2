"""The wall clock of one execution, kept by the host. It includes host calls.

It stands still while a user is asked, and while a run that could go on waits for its turn to compute.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PAUSE_SECONDS_MAX = 300.0
"""How long one execution's clock may stand still in all."""

GRACE_SECONDS = 2.0
"""How long an execution may take to end by itself that had its seconds while it only waited for others."""


_SWEEP_FROM = 1000
"""With more cancelled deadlines than this, and than others, they are all dropped."""


class Deadline:
    """One that was set; `act` is None once it came or was cancelled."""

    __slots__ = ("act",)

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act


class Deadlines:
    """Acts at deadlines from one thread, whatever the event loop is busy with.

    Most deadlines are cancelled long before they come, so cancelling only marks them: the thread drops those that it
    finds first in line. It wakes for a deadline that still stood when it fell asleep, which is seldom.

    Any thread may set and cancel deadlines. What acts must neither block nor set or cancel any itself.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Deadline]] = []
        self._numbers = itertools.count()
        self._cancelled = 0
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, at: float, act: Callable[[], None]) -> Deadline:
        """Call `act` at that time of `time.monotonic`, unless it is cancelled before."""
        deadline = Deadline(act)
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="deadlines", daemon=True)
                self._thread.start()
            if self._cancelled > max(_SWEEP_FROM, len(self._heap) // 2):
                self._heap = [each for each in self._heap if each[2].act is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0
            heapq.heappush(self._heap, (at, next(self._numbers), deadline))
            if self._heap[0][2] is deadline:
                self._changed.notify()
        return deadline

    def cancel(self, deadline: Deadline) -> None:
        """Make sure that it does not act after this has returned."""
        with self._changed:
            if deadline.act is not None:
                deadline.act = None
                self._cancelled += 1

    def _watch(self) -> None:
        with self._changed:
            while True:
                while self._heap and self._heap[0][2].act is None:
                    heapq.heappop(self._heap)
                    self._cancelled -= 1
                left = self._heap[0][0] - time.monotonic() if self._heap else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                _, _, deadline = heapq.heappop(self._heap)
                act, deadline.act = deadline.act, None
                if act is not None:
                    act()


DEADLINES = Deadlines()


class Clock:
    """Ends an execution that has had its seconds.

    `kill` is called by a thread of its own, so that it comes in time even while the loop is busy; `expire` is called
    in the loop after it. Where `waits`, called by that thread, says that the execution only waits for others,
    `break_off` is called in the loop instead, and the execution killed `GRACE_SECONDS` later.
    """

    def __init__(
        self,
        seconds: float,
        kill: Callable[[], None],
        expire: Callable[[], None],
        *,
        waits: Callable[[], bool] | None = None,
        break_off: Callable[[], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._kill = kill
        self._expire = expire
        self._waits = waits
        self._break_off = break_off
        self._started = time.perf_counter()
        self._ends = time.monotonic() + seconds
        self._deadline = DEADLINES.set(self._ends, self._ring)
        self._stopped = False
        self._pauses = 0
        self._paused_at = 0.0
        self._pause_left = PAUSE_SECONDS_MAX
        self.expired = False

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the start, pauses included."""
        return (time.perf_counter() - self._started) * 1000

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stand still while a user is asked or a turn is waited for.

        What exceeds `PAUSE_SECONDS_MAX` in all counts again.
        """
        if self._pauses == 0:
            self._paused_at = time.monotonic()
            self._end_at(self._ends + self._pause_left)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                stood = min(time.monotonic() - self._paused_at, self._pause_left)
                self._pause_left -= stood
                self._ends += stood
                self._end_at(self._ends)

    def stop(self) -> None:
        """End without ringing; what has not expired by now never will."""
        self._stopped = True
        DEADLINES.cancel(self._deadline)
        # Of what it would call nothing is kept: contexts that refer to this clock belong to those very objects.
        self._kill = self._expire = _nothing
        self._waits = self._break_off = None

    def _end_at(self, at: float) -> None:
        if self.expired:
            return
        DEADLINES.cancel(self._deadline)
        if not self._stopped:
            self._deadline = DEADLINES.set(at, self._ring)

    def _ring(self) -> None:
        only_waits = not self.expired and self._waits is not None and self._waits()
        self.expired = True
        if not only_waits:
            self._kill()
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._give_grace if only_waits else self._expire)

    def _give_grace(self) -> None:
        if not self._stopped and self._break_off is not None:
            self._deadline = DEADLINES.set(time.monotonic() + GRACE_SECONDS, self._ring)
            self._break_off()


def _nothing() -> None:
    """Stand where an execution has ended."""
