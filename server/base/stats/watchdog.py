"""Measures how long the event loop is held by one thing, during which it answers no request.

A loop is held from the moment in which its selector gives it something to do until it asks the selector again. A thread
looks every `LOOK_SECONDS`, and where that goes on for long, at the stack of the loop's thread. What counts is the
server's own doing: time in which the kernel let the loop's thread wait for a processor does not, nor time in which the
whole process stood still (a stopped process, a machine that was suspended).

Source: Linux, Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat: the second number is the time spent
waiting on a run queue, in nanoseconds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import selectors
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NamedTuple

HELD_SECONDS = 0.1
"""From when on a loop counts as held."""
LOOK_SECONDS = 0.05
REPORT_VARIABLE = "SEALABTEST_HELD"
"""`MILLISECONDS:FILE` in the environment: what held the loop longer than that is also a line in the file."""

_LOG_EVERY_SECONDS = 10.0
_FRAMES_MAX = 8
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class LoopStats:
    """How often the event loop was held for `HELD_SECONDS` or more, and for how long, in milliseconds."""

    held: int = 0
    held_ms_total: float = 0.0
    held_ms_max: float = 0.0

    def count(self, milliseconds: float) -> None:
        """Count one time."""
        self.held += 1
        self.held_ms_total += milliseconds
        self.held_ms_max = max(self.held_ms_max, milliseconds)


class _Busy(NamedTuple):
    """When the loop began to do what it does, and the processor time that its thread had used by then."""

    began: float
    cpu: float


@dataclass(frozen=True, slots=True)
class _EndedBlock:
    """What the loop did for long and does no more: seconds in all, on a processor, and the thread's waits so far."""

    began: float
    ended: float
    cpu: float
    waited: float | None


class WatchedSelector(selectors.DefaultSelector):
    """Notes when its loop is busy; that costs less than a microsecond for each turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.busy: _Busy | None = None
        self.ended: deque[_EndedBlock] = deque()
        self.queue = _RunQueue()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events."""
        busy, self.busy = self.busy, None
        if busy is not None and (now := time.monotonic()) - busy.began >= HELD_SECONDS:
            self.ended.append(_EndedBlock(busy.began, now, time.thread_time() - busy.cpu, self.queue.waited()))
        events = super().select(timeout)
        self.busy = _Busy(time.monotonic(), time.thread_time())
        return events


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop that can be watched; made by the thread that runs it."""

    def __init__(self) -> None:
        self.watched = WatchedSelector()
        super().__init__(self.watched)

    def close(self) -> None:
        """Close the loop."""
        super().close()
        self.watched.queue.close()


class _RunQueue:
    """How long the thread that made this has waited for a processor so far."""

    def __init__(self) -> None:
        self._file = -1
        try:
            self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            self._counts = self._read() > 0  # a kernel that does not count says 0
        except (OSError, ValueError, IndexError):
            self._counts = False

    def waited(self) -> float | None:
        """Return the seconds, or None where the system does not say."""
        return self._read() if self._counts else None

    def close(self) -> None:
        self._counts = False
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self) -> float:
        return int(os.pread(self._file, 100, 0).split()[1]) / 1e9


class _Watchdog:
    """Looks at one loop, from a thread of its own."""

    def __init__(self, selector: WatchedSelector, loop_thread: int, stats: LoopStats) -> None:
        self._selector = selector
        self._loop_thread = loop_thread
        self._stats = stats
        self._report = _report_to()
        self._last_sample = time.monotonic()
        self._last_cpu = time.process_time()
        self._last_waited = selector.queue.waited()
        self._began = 0.0
        """Of what the loop was seen doing; the four below are about that."""
        self._waited_before: float | None = None
        self._lost = 0.0
        self._stack: tuple[str, ...] = ()
        self._stack_after = 0.0
        self._logged = -_LOG_EVERY_SECONDS
        self._left_out = 0
        self._left_out_most = 0.0

    def watch(self, stop: threading.Event) -> None:
        """Look until it is stopped."""
        while not stop.wait(LOOK_SECONDS):
            self._sample()
        self._sample()
        if self._left_out:
            _LOG.warning("The event loop was held %s.", self._more())

    def _sample(self) -> None:
        busy = self._selector.busy
        now, cpu, waited = time.monotonic(), time.process_time(), self._selector.queue.waited()
        # Where this thread slept for longer than it should, the process did something at most while it used processors.
        lost = max(0.0, now - self._last_sample - LOOK_SECONDS - (cpu - self._last_cpu))
        while self._selector.ended:
            self._judge(self._selector.ended.popleft(), lost)
        if busy is not None:
            if busy.began != self._began:
                self._began, self._waited_before, self._lost = busy.began, self._last_waited, lost
                self._stack, self._stack_after = (), 0.0
            else:
                self._lost += lost
            if now - busy.began >= HELD_SECONDS / 2 and self._stack_after < HELD_SECONDS:
                self._stack, self._stack_after = self._stack_now(), now - busy.began
        self._last_sample, self._last_cpu, self._last_waited = now, cpu, waited

    def _judge(self, what: _EndedBlock, lost: float) -> None:
        seen = what.began == self._began
        waited_before = self._waited_before if seen else self._last_waited
        held = what.cpu
        if what.waited is not None and waited_before is not None:
            lost += self._lost if seen else 0.0
            held = max(held, what.ended - what.began - (what.waited - waited_before) - lost)
        if held >= HELD_SECONDS:
            self._log(held * 1000, self._stack if seen else ())

    def _log(self, milliseconds: float, stack: tuple[str, ...]) -> None:
        self._stats.count(milliseconds)
        where = next(
            (frame for frame in stack if frame.startswith("sealab.")), stack[0] if stack else "an unknown place"
        )
        line = (
            f"The event loop was held for {milliseconds:.0f} ms in {where} (stack: {' < '.join(stack) or 'not seen'})."
        )
        if self._report is not None and milliseconds >= self._report[0]:
            with self._report[1].open("a") as file:
                file.write(f"{os.getpid()}: {line}\n")
        now = time.monotonic()
        if now - self._logged < _LOG_EVERY_SECONDS:
            self._left_out += 1
            self._left_out_most = max(self._left_out_most, milliseconds)
            return
        more = f" Since the last such line it was held {self._more()}." if self._left_out else ""
        self._logged, self._left_out, self._left_out_most = now, 0, 0.0
        _LOG.warning("%s%s", line, more)

    def _more(self) -> str:
        return f"{self._left_out} more times, for {self._left_out_most:.0f} ms at most"

    def _stack_now(self) -> tuple[str, ...]:
        """Return where the loop's thread is, the innermost frame first: up to the innermost of sealab, and callers."""
        frame: FrameType | None = sys._current_frames().get(self._loop_thread)
        frames: list[str] = []
        ours = 0
        while frame is not None and (len(frames) < _FRAMES_MAX or not ours) and len(frames) < 10 * _FRAMES_MAX:
            name = str(frame.f_globals.get("__name__", "?"))
            frames.append(f"{name}:{frame.f_lineno} {frame.f_code.co_name}")
            ours += name.startswith("sealab.")
            frame = frame.f_back
        return tuple(frames)


@contextmanager
def watching(stats: LoopStats) -> Iterator[None]:
    """Watch the running loop meanwhile, if it is a `WatchedLoop`, and count in `stats`."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, WatchedLoop):
        yield
        return
    loop.watched.ended.clear()
    stop = threading.Event()
    watchdog = _Watchdog(loop.watched, threading.get_ident(), stats)
    thread = threading.Thread(target=watchdog.watch, args=(stop,), name="sealab watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _report_to() -> tuple[float, Path] | None:
    milliseconds, _, file = os.environ.get(REPORT_VARIABLE, "").partition(":")
    return (float(milliseconds), Path(file)) if file else None
