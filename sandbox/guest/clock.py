"""The one clock of a run: every time that code, its loops and its threads can read comes from here, and is recorded.

A run begins at the time that the host gives it. From then on its clock moves as the machine's monotonic one does, so
the steps that an operator or a time server makes are not seen. A run that follows its trace reads what is recorded
there.
"""

from __future__ import annotations

import time as machine
from typing import Final

from .trace import CLOCK, PROCESSOR, TRACE

_UP_NS: Final = 1_000_000 * 10**9
"""What the monotonic clock of a first run shows at its beginning, as on a machine that is up for some days."""
_SECONDS_MAX: Final = 1e9

_monotonic_ns: Final = machine.monotonic_ns
_used_ns: Final = machine.process_time_ns
_wall_ns: Final = machine.time_ns
_sleep: Final = machine.sleep


class _Clock:
    """Times of this run, in nanoseconds: `_last` and `_used` were read last, `_origin` is where the machine's begin."""

    __slots__ = ("_last", "_origin", "_start", "_up", "_used", "_used_origin")

    def __init__(self) -> None:
        self._start = _wall_ns()
        self._origin = self._up = _monotonic_ns()
        self._used = self._used_origin = 0
        self._last = 0

    def begin(self, start_ns: int, *, is_first: bool) -> None:
        """Begin a run at a wall-clock time. The monotonic clock of a session goes on over its programs."""
        shown = self._start + TRACE.set_forward_ns + self._last
        self._up = _UP_NS if is_first else self._up + self._last + max(start_ns - shown, 0)
        self._start = start_ns
        self._origin, self._used_origin = _monotonic_ns(), _used_ns()
        self._last = 0
        if is_first:
            self._used = 0
        else:
            self._used_origin -= self._used

    def passed(self) -> int:
        """Read how long the run lasts."""
        if TRACE.follows:
            difference = TRACE.reading(CLOCK)
            if difference is not None:
                self._last += difference
                return self._last
            self._go_on()
        now = _monotonic_ns() - self._origin
        now -= now % TRACE.step_ns
        last = self._last
        now = now if now > last else last  # noqa: FURB136 - `max` takes three times as long, and readings are many
        if TRACE.records:
            TRACE.note_reading(CLOCK, now - last)
        self._last = now
        return now

    def used(self) -> int:
        """Read how much processor time the run has used."""
        if TRACE.follows:
            difference = TRACE.reading(PROCESSOR)
            if difference is not None:
                self._used += difference
                return self._used
            self._go_on()
        now = _used_ns() - self._used_origin
        now = max(now - now % TRACE.step_ns, self._used)
        if TRACE.records:
            TRACE.note_reading(PROCESSOR, now - self._used)
        self._used = now
        return now

    def wall_ns(self) -> int:
        """Read the wall clock."""
        passed = self.passed()
        return self._start + TRACE.set_forward_ns + passed

    def up_ns(self) -> int:
        """Read the monotonic clock."""
        return self._up + self.passed()

    def _go_on(self) -> None:
        """Go on where the trace ends: no time has passed for who waits, but the wall clock shows what it is."""
        self._origin = _monotonic_ns() - self._last
        self._used_origin = _used_ns() - self._used
        missed = _wall_ns() - (self._start + TRACE.set_forward_ns + self._last)
        if missed > 0:
            TRACE.note_set_forward(missed)


_clock: Final = _Clock()
begin: Final = _clock.begin
time_ns: Final = _clock.wall_ns
monotonic_ns: Final = _clock.up_ns
process_time_ns: Final = _clock.used


def time() -> float:
    """Return the seconds since the epoch."""
    return _clock.wall_ns() / 1e9


def monotonic() -> float:
    """Return seconds that only ever grow."""
    return _clock.up_ns() / 1e9


def process_time() -> float:
    """Return the seconds of processor time that the run has used."""
    return _clock.used() / 1e9


def started() -> float:
    """Return when the run began, in seconds since the epoch. This reads no clock."""
    return _clock._start / 1e9


def pause(seconds: float) -> None:
    """Let time pass, unless the reading of the clock that shows it is recorded. Raises as Python's own `sleep` does."""
    if not (TRACE.waits_are_over() and type(seconds) in {int, float} and 0 <= seconds < _SECONDS_MAX):
        _sleep(seconds)


def sleep(seconds: float) -> None:
    """Wait. Raises as Python's own does."""
    pause(seconds)
    _clock.passed()
