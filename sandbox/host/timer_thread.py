"""Acts at deadlines from one thread, whatever the event loop is busy with.

Most deadlines are cancelled long before they come, so cancelling only marks them: the thread drops those that it finds
first in line. It wakes for a deadline that still stood when it fell asleep, which is seldom.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable

_SWEEP_FROM = 1000
"""With more cancelled deadlines than this, and than others, they are all dropped."""


class Deadline:
    """One that was set; `act` is None once it came or was cancelled."""

    __slots__ = ("act",)

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act


class Deadlines:
    """Any thread may set and cancel deadlines. What acts must neither block nor set or cancel any itself."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Deadline]] = []
        self._numbers = itertools.count()
        self._cancelled = 0
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, at: float, act: Callable[[], None]) -> Deadline:
        """Have `act` called at that time of `time.monotonic`, unless it is cancelled before."""
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
