"""Threads of guest code: functions that take turns on the one real thread of the worker.

A thread runs until it waits (for a lock, a time, or the next event of its loop) or ends. Then the next one that can run
does, in the order in which they became able to. So nothing runs at the same time, and code between two waits is never
interrupted. Each has a stack of its own, which greenlet switches; the kernel sees one thread, and refuses others.
"""

from __future__ import annotations

import gc
import heapq
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from ..guest import clock
from .facades.stand_ins.sys_ import recursion_limit_max

try:
    from greenlet import getcurrent, greenlet
except ImportError:  # on WebAssembly, which has no second stack
    greenlet = None

AVAILABLE: Final = greenlet is not None
"""Whether threads can be started."""
DEADLOCK: Final = (
    "every thread waits for something that no thread is left to do (a Lock, Event, Condition, Queue or join). "
    "Release the lock, set the event or put the missing item, or wait with a timeout"
)
_WAIT_MAX_SECONDS: Final = 3600.0
_IN_A_COLLECTION: Final = (
    "a finalizer that the garbage collector calls cannot wait for another thread. "
    "Release what is needed in a method, or in a `with` block"
)

Idle = Callable[[float | None], bool]
"""Waits until something happens outside or so many seconds have passed; returns False if neither ever will."""


class Deadlock(RuntimeError):
    """All threads wait, and nothing will wake any of them. Code sees a `RuntimeError`."""


Deadlock.__name__ = Deadlock.__qualname__ = "RuntimeError"
Deadlock.__module__ = "builtins"


class GreenThread:
    """One thread. Its number and whether the program ends without it are for all, the rest is the scheduler's."""

    __slots__ = ("_greenlet", "_is_queued", "_is_woken", "_limit", "_turn", "_waits", "ident", "is_daemon")

    def __init__(self, ident: int, *, is_daemon: bool = False) -> None:
        self.ident = ident
        self.is_daemon = is_daemon
        self._greenlet: Any = None
        self._limit = min(sys.getrecursionlimit(), recursion_limit_max())
        self._is_queued = False
        self._is_woken = False
        self._turn = 0
        self._waits = False


class _Collections:
    """Whether the garbage collector is at work, once `watch` was called.

    It links the objects that it looks at with its own stack, which another thread would write over meanwhile.
    """

    __slots__ = ("_is_at_work", "_is_watched")

    def __init__(self) -> None:
        self._is_at_work = self._is_watched = False

    def watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            gc.callbacks.append(self._note)

    def is_at_work(self) -> bool:
        return self._is_at_work

    def _note(self, phase: str, _info: object) -> None:
        self._is_at_work = phase == "start"


_collections: Final = _Collections()


def _sleep(seconds: float | None) -> bool:
    if seconds is not None:
        clock.pause(seconds)
    return seconds is not None


@dataclass(slots=True)
class _Scheduler:
    main: GreenThread = field(default_factory=lambda: GreenThread(1))
    current: GreenThread = field(init=False)
    ready: deque[GreenThread] = field(default_factory=deque)
    timers: list[tuple[float, int, GreenThread, int]] = field(default_factory=list)
    others: dict[int, GreenThread] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(2))
    idle: Idle = _sleep
    failure: BaseException | None = None
    finishing: bool = False

    def is_awaiting(self) -> bool:
        """Return whether a thread is alive that the program does not end without."""
        return any(not thread.is_daemon for thread in self.others.values())

    def __post_init__(self) -> None:
        self.current = self.main


_schedulers = [_Scheduler()]
"""The last one is in use. Those before keep threads that never run again: freed, they would run to clean up."""


def set_idle(idle: Idle) -> None:
    """Let `idle` wait when no thread can run."""
    _schedulers[-1].idle = idle


def forget() -> None:
    """Begin anew, without the threads there were."""
    if _schedulers[-1].others:
        _schedulers.append(_Scheduler(idle=_schedulers[-1].idle))


def current() -> GreenThread:
    """Return the thread that runs."""
    return _schedulers[-1].current


def main() -> GreenThread:
    """Return the thread in which the program began."""
    return _schedulers[-1].main


def find(ident: int) -> GreenThread | None:
    """Return the thread of that number, or None where it has ended."""
    scheduler = _schedulers[-1]
    return scheduler.main if ident == scheduler.main.ident else scheduler.others.get(ident)


def are_there_others() -> bool:
    """Return whether a thread beside the main one is alive."""
    return bool(_schedulers[-1].others)


def start(function: Callable[[], object], *, is_daemon: bool = False) -> GreenThread:
    """Make a thread that calls `function` at the next wait of the running one, and return it.

    What `function` raises is raised in the main thread. Raises RuntimeError where there are no threads.
    """
    if greenlet is None:
        raise RuntimeError("can't start new thread")
    scheduler = _schedulers[-1]
    if scheduler.main._greenlet is None:
        scheduler.main._greenlet = getcurrent()
    _collections.watch()
    thread = GreenThread(next(scheduler.numbers), is_daemon=is_daemon)
    thread._greenlet = greenlet(lambda: _body(scheduler, thread, function), parent=scheduler.main._greenlet)
    thread._is_queued = True
    scheduler.others[thread.ident] = thread
    scheduler.ready.append(thread)
    return thread


def park(seconds: float | None = None) -> bool:
    """Wait until another thread wakes this one, or for `seconds`; return whether it was woken.

    Raises `Deadlock` in the main thread when every thread waits without an end. In a finalizer that the garbage
    collector calls no other thread runs: it only sleeps, and waiting without an end is a `RuntimeError`.
    """
    if _collections.is_at_work():
        if seconds is None:
            raise RuntimeError(_IN_A_COLLECTION)
        clock.sleep(max(seconds, 0.0))
        return False
    scheduler = _schedulers[-1]
    thread = scheduler.current
    thread._turn += 1
    thread._is_woken, thread._waits = False, True
    if seconds is not None:
        end = clock.monotonic() + min(max(seconds, 0.0), _WAIT_MAX_SECONDS)
        heapq.heappush(scheduler.timers, (end, next(scheduler.numbers), thread, thread._turn))
    # All that CPython keeps for a thread and greenlet does not.
    loop, hooks, limit = events._get_running_loop(), sys.get_asyncgen_hooks(), sys.getrecursionlimit()
    events._set_running_loop(None)
    sys.set_asyncgen_hooks(None, None)
    try:
        if thread is scheduler.main:
            _run_others(scheduler)
        else:
            scheduler.main._greenlet.switch()
    finally:
        thread._waits = False
        events._set_running_loop(loop)
        sys.set_asyncgen_hooks(*hooks)
        sys.setrecursionlimit(limit)
    return thread._is_woken


def wake(thread: GreenThread) -> None:
    """Let a thread that waits go on, once all that can run before it have."""
    if thread._waits:
        thread._is_woken = True
        _make_ready(_schedulers[-1], thread)


def sleep(seconds: float) -> None:
    """Let others run for `seconds`."""
    end = clock.monotonic() + seconds
    park(seconds)
    while (rest := end - clock.monotonic()) > 0:
        park(rest)


def finish() -> None:
    """Let the threads go on that the program does not end without, until each has ended or waits without an end."""
    scheduler = _schedulers[-1]
    if not scheduler.is_awaiting():
        return
    scheduler.finishing = True
    try:
        park()
    except Deadlock:
        pass
    finally:
        scheduler.finishing = False


def _make_ready(scheduler: _Scheduler, thread: GreenThread) -> None:
    if not thread._is_queued:
        thread._is_queued = True
        scheduler.ready.append(thread)


def _run_others(scheduler: _Scheduler) -> None:
    """Run whatever can run until it is the main thread's turn."""
    try:
        while True:
            _end_waits(scheduler)
            if not scheduler.ready:
                _wait(scheduler)
                continue
            thread = scheduler.ready.popleft()
            thread._is_queued = False
            if thread is scheduler.main:
                return
            scheduler.current = thread
            thread._greenlet.switch()
            if scheduler.failure is not None:
                failure, scheduler.failure = scheduler.failure, None
                raise failure
    finally:
        scheduler.current = scheduler.main


def _end_waits(scheduler: _Scheduler) -> None:
    timers = scheduler.timers
    while timers:
        end, _number, thread, turn = timers[0]
        is_stale = turn != thread._turn or not thread._waits
        if not is_stale and end > clock.monotonic():
            return
        heapq.heappop(timers)
        if not is_stale:
            _make_ready(scheduler, thread)


def _wait(scheduler: _Scheduler) -> None:
    seconds = max(scheduler.timers[0][0] - clock.monotonic(), 0.0) if scheduler.timers else None
    if scheduler.finishing and all(each.is_daemon or turn != each._turn for _, _, each, turn in scheduler.timers):
        seconds = None  # what only threads wait for that may be left alone
    if not scheduler.idle(seconds):
        raise Deadlock(DEADLOCK)


def _body(scheduler: _Scheduler, thread: GreenThread, function: Callable[[], object]) -> None:
    try:
        with suppress(RecursionError):
            sys.setrecursionlimit(thread._limit)
        function()
    except BaseException as error:  # noqa: BLE001 - it is raised in the main thread
        scheduler.failure = error
    finally:
        del scheduler.others[thread.ident]
        if scheduler.finishing and not scheduler.is_awaiting():
            _make_ready(scheduler, scheduler.main)
