"""The wall clock of one execution, kept by the host. It includes host calls, and stands still only for a user."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PAUSE_SECONDS_MAX = 300.0
"""How long one execution's clock may stand still in all."""


class Clock:
    """Calls `expire` once the execution has had its seconds."""

    def __init__(self, seconds: float, expire: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._expire = expire
        self._started = time.perf_counter()
        self._deadline = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._deadline, self._ring)
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
        """Stand still while a user is being asked; what exceeds `PAUSE_SECONDS_MAX` in all counts again."""
        if self._pauses == 0:
            self._paused_at = self._loop.time()
            self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline + self._pause_left, self._ring)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and not self.expired:
                stood = min(self._loop.time() - self._paused_at, self._pause_left)
                self._pause_left -= stood
                self._deadline += stood
                self._timer.cancel()
                self._timer = self._loop.call_at(self._deadline, self._ring)

    def stop(self) -> None:
        """End without ringing."""
        self._timer.cancel()

    def _ring(self) -> None:
        self.expired = True
        self._expire()


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
