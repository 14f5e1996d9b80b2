"""The wall clock of one execution, kept by the host. It includes host calls.

It stands still while a user is asked, and while a run that could go on waits for its turn to compute.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from .timer_thread import DEADLINES

PAUSE_SECONDS_MAX = 300.0
"""How long one execution's clock may stand still in all."""


class Clock:
    """Ends an execution that has had its seconds.

    `kill` is called by a thread of its own, so that it comes in time even while the loop is busy; `expire` is called
    in the loop after it.
    """

    def __init__(self, seconds: float, kill: Callable[[], None], expire: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._kill = kill
        self._expire = expire
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

    def _end_at(self, at: float) -> None:
        DEADLINES.cancel(self._deadline)
        if not self._stopped and not self.expired:
            self._deadline = DEADLINES.set(at, self._ring)

    def _ring(self) -> None:
        self.expired = True
        self._kill()
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._expire)


CLOCK: ContextVar[Clock | None] = ContextVar("CLOCK", default=None)
"""The clock of the execution on whose behalf a host call is being answered."""


@contextmanager
def paused() -> Iterator[None]:
    """Stop the clock of the current execution while a user is being asked; for use inside host calls."""
    clock = CLOCK.get()
    if clock is None:
        yield
        return
    with clock.pause():
        yield
