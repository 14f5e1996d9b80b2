"""The host's own work for callers: in threads, a few for each kind, charged to the run that asked and ended with it.

A security boundary: what a run may have the host compute. Each kind has threads of its own, so that long texts stop no
file and a slow database no text. A thread cannot be killed, and Python code in one keeps others from running: so long
work calls `checkpoint` between its slices. There it ends when its run has ended or has spent its budget, lets the event
loop run, and takes turns with other long work.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from ...sandbox.job import NOBODY, Owner
from .daemon_threads import DaemonThreads
from .errors import HostWorkBusy, HostWorkRefused

CPU_SHARE = 1.0
"""CPU seconds of the host for each second of a run's time limit; the filter of what it shows has as much again."""
_SLICE_SECONDS = 0.02
"""How long work goes on before others may run."""
_YIELD_SECONDS = 0.0002
_ITEMS_PER_CHECK = 256
_SETTLING_SECONDS = 0.02
_COLLECT_SECONDS = 60.0
"""How long the oldest objects are left alone where long work never ends."""

_T = TypeVar("_T")


class Kind(Enum):
    """A kind of work."""

    DATABASE = "database"
    FILES = "files"
    LANDING = "landing"
    """Taking home what a run of full Python wrote: maybe ten thousands of files, for which no other file waits."""
    SEARCH = "search"
    ANSWERS = "answers"
    """Large answers of upstream tools."""
    PRIVACY = "privacy"
    LONG_PRIVACY = "long privacy"
    """Texts too long for the others to wait for: one at a time computes, in turns."""


_THREADS = {
    Kind.DATABASE: 4,
    Kind.FILES: 4,
    Kind.LANDING: 2,
    Kind.SEARCH: 2,
    Kind.ANSWERS: 2,
    Kind.PRIVACY: 2,
    Kind.LONG_PRIVACY: 8,
}
THREADS = MappingProxyType(_THREADS)
"""How many threads do the work of each kind at most."""
QUEUE_MAX = 1000
"""How much work of a kind may wait."""
QUEUE_SECONDS = 30.0
"""How long it may wait until it is begun, unless `_PATIENT` says otherwise."""
_PATIENT = MappingProxyType({Kind.LANDING: 600.0})
"""What a run wrote would be lost; as many wait as there are workers."""


def use_threads(kind: Kind, count: int) -> None:
    """Set how many threads do work of a kind, where it waits more than it computes; before any is done."""
    _THREADS[kind] = count


class Account:
    """What one run may have the host compute; safe to use from several threads."""

    def __init__(self, cpu_seconds: float) -> None:
        self.cpu_seconds = cpu_seconds
        self.spent_seconds = 0.0
        self.new_values = 0
        """Values that this run brought into the vault."""
        self.skill_bytes = 0
        """Bytes of skills that this run saved."""
        self._ended = False
        self._changing = threading.Lock()
        self._turns: dict[Kind, asyncio.Semaphore] = {}

    @classmethod
    def of(cls, timeout_seconds: float) -> Account:
        """Return the account of work that may take so long."""
        return cls(timeout_seconds * CPU_SHARE)

    def end(self) -> None:
        """End all work on this account at its next checkpoint."""
        self._ended = True

    def charge(self, seconds: float) -> None:
        """Take CPU time from the account."""
        with self._changing:
            self.spent_seconds += seconds

    def check(self) -> None:
        """Raise `HostWorkRefused` where the run has ended or has no time left."""
        if self._ended:
            raise HostWorkRefused("The run has ended. Nothing more is done for it.")
        if self.spent_seconds > self.cpu_seconds:
            raise HostWorkRefused(
                f"This took more than {self.cpu_seconds:g} seconds of the server's processor, which is what the run's "
                "time limit allows. Do less in one run, or ask for more time."
            )

    def turn(self, kind: Kind) -> asyncio.Semaphore:
        """Return what work of a kind holds: that of one run is done by half of the threads of the kind at most.

        So the queue of a kind holds little of each run, and one that asks for much waits for itself alone. Of texts,
        long or short, one is looked through at a time.
        """
        kind = Kind.PRIVACY if kind is Kind.LONG_PRIVACY else kind
        return self._turns.setdefault(kind, asyncio.Semaphore(max(1, THREADS[kind] // 2)))


_ACCOUNT: ContextVar[Account | None] = ContextVar("_ACCOUNT", default=None)
_METER: ContextVar[_Meter | None] = ContextVar("_METER", default=None)


OWNER: ContextVar[Owner] = ContextVar("OWNER", default=NOBODY)
"""For whom something is done: work of each kind takes turns between tenants, and between the callers of each."""


def account() -> Account | None:
    """Return the account of the run on whose behalf something is done, if there is one."""
    return _ACCOUNT.get()


@contextmanager
def charged_to(chosen: Account, *, ends: bool = True) -> Iterator[Account]:
    """Charge what the block has the host do to an account, which ends with the block unless it goes on."""
    before = _ACCOUNT.set(chosen)
    try:
        yield chosen
    finally:
        _ACCOUNT.reset(before)
        if ends:
            chosen.end()


@contextmanager
def charged(timeout_seconds: float) -> Iterator[Account]:
    """Charge the block to the account there is, or to one of its own for work that may take so long."""
    present = _ACCOUNT.get()
    if present is not None:
        yield present
        return
    with charged_to(Account.of(timeout_seconds)) as own:
        yield own


async def in_thread(kind: Kind, work: Callable[[], _T], *, charged: bool = True, outlives: bool = False) -> _T:
    """Do blocking work in a thread of its kind, and charge it. Raises `HostWorkRefused`, and as such `HostWorkBusy`.

    With `charged=False` no account pays, as for loading. With `outlives` it is charged, but not ended with its account.
    Cancelled, work that has not begun never begins; other work goes on to its next checkpoint after its account's end.
    """
    payer = _ACCOUNT.get() if charged else None
    if payer is not None and not outlives:
        payer.check()
    metered = partial(copy_context().run, _metered, kind, payer, work, outlives=outlives)
    if payer is None:
        return await _done(kind, metered)
    async with payer.turn(kind):
        return await _done(kind, metered)


async def in_turns(kind: Kind, steps: Generator[None, None, _T]) -> _T:
    """Do blocking work that comes in steps, some at a time in a turn of its caller, and charge it.

    It is not ended with its account: a part of it would be of no use. Raises `HostWorkBusy`.
    """
    try:
        while not (ended := await in_thread(kind, partial(_some, steps), outlives=True)):
            pass
    except Exception:
        await in_thread(kind, steps.close, charged=False)  # where the steps themselves failed, that does nothing
        raise
    return ended[0]


def _some(steps: Generator[None, None, _T]) -> list[_T]:
    """Do steps for `_SLICE_SECONDS`; return what they return where they have ended, else nothing."""
    end = time.monotonic() + _SLICE_SECONDS
    try:
        while time.monotonic() < end:
            next(steps)
    except StopIteration as ended:
        return [ended.value]
    return []


async def ended_within(seconds: float, work: Callable[[], object]) -> bool:
    """Do blocking work at the end of the process, and return whether it ended in time; else it is left alone."""
    submitted = asyncio.wrap_future(DaemonThreads(1, "closing", 1).submit(work))
    done, _ = await asyncio.wait({submitted}, timeout=seconds)
    for each in done:
        each.result()
    return bool(done)


async def settled(seconds: float) -> bool:
    """Wait until no work of any kind is being done, but no longer than that; return whether none is."""
    end = time.monotonic() + seconds
    while any(threads.busy for threads in _EXECUTORS.values()):
        if time.monotonic() >= end:
            return False
        await asyncio.sleep(_SETTLING_SECONDS)
    return True


def cancellations() -> int:
    """Return how often the current task was cancelled; of earlier times that it survived some still count."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def _done(kind: Kind, work: Callable[[], _T]) -> _T:
    submitted, before = _executor(kind).submit_for(OWNER.get(), work), cancellations()
    refused, seconds = False, _PATIENT.get(kind, QUEUE_SECONDS)

    def refuse() -> None:
        nonlocal refused
        refused = submitted.cancel()  # which it cannot be once it has begun

    timer = asyncio.get_running_loop().call_later(seconds, refuse)
    try:
        return await asyncio.wrap_future(submitted)
    except asyncio.CancelledError:
        if not refused or cancellations() > before:
            raise
        raise HostWorkBusy(
            f"The server ({kind.value}) was busy with other calls for {seconds:g} seconds, so nothing was done. "
            "Try again in a moment."
        ) from None
    finally:
        timer.cancel()


def checkpoint() -> None:
    """Between slices of long work: end it where it must, and let others run. Does nothing outside `in_thread`."""
    meter = _METER.get()
    if meter is not None:
        meter.check()


@contextmanager
def waiting() -> Iterator[None]:
    """Let other long work compute while the block waits for another process."""
    meter = _METER.get()
    gate = None if meter is None else meter.gate
    if gate is not None:
        gate.leave()
    try:
        yield
    finally:
        if gate is not None:
            gate.enter()


def checked(items: Iterable[_T], *, every: int = _ITEMS_PER_CHECK) -> Iterator[_T]:
    """Give the items, with a checkpoint before one of so many."""
    meter = _METER.get()
    if meter is None:
        yield from items
        return
    for number, item in enumerate(items):
        if number % every == 0:
            meter.check()
        yield item


class _Gate:
    """Lets one thread compute at a time, in the order in which they come."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    def enter(self) -> None:
        with self._changing:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()

    def leave(self) -> None:
        with self._changing:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def pass_on(self) -> None:
        if self._waiting:
            self.leave()
            self.enter()


class _Pause:
    """Lets Python's collector leave the oldest objects alone while long work goes on.

    Work on a long text makes millions of objects and no cycles, and to look at them all stops every thread for as long
    as half a second, again and again. The young ones are looked at between slices.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._works = 0
        self._collected = time.monotonic()

    def begin(self) -> None:
        with self._changing:
            self._works += 1
            gc.disable()

    def look(self) -> None:
        gc.collect(1)

    def end(self) -> None:
        with self._changing:
            self._works -= 1
            if not self._works:
                gc.enable()
                return
            due = time.monotonic() - self._collected > _COLLECT_SECONDS
            if due:
                self._collected = time.monotonic()
        if due:
            gc.collect()


class _Meter:
    """Charges the CPU time of one thread to an account, and takes turns at its gate."""

    def __init__(self, payer: Account | None, gate: _Gate | None) -> None:
        self._payer = payer
        self.gate = gate
        self._charged = self._yielded = time.thread_time()

    def check(self) -> None:
        self.charge()
        if self._payer is not None:
            self._payer.check()
        if self._charged - self._yielded >= _SLICE_SECONDS:
            time.sleep(_YIELD_SECONDS)  # a bare release of the interpreter's lock is mostly taken back at once
            if self.gate is not None:
                _PAUSE.look()
                self.gate.pass_on()
                if self._payer is not None:
                    self._payer.check()
            self._yielded = self._charged

    def charge(self) -> None:
        now = time.thread_time()
        if self._payer is not None:
            self._payer.charge(now - self._charged)
        self._charged = now


def _metered(kind: Kind, payer: Account | None, work: Callable[[], _T], *, outlives: bool) -> _T:
    gate = _LONG if kind is Kind.LONG_PRIVACY else None
    if gate is not None:
        gate.enter()
        _PAUSE.begin()
    try:
        meter = _Meter(payer, gate)
        _METER.set(meter)
        if payer is not None and not outlives:
            payer.check()
        try:
            return work()
        finally:
            meter.charge()
    finally:
        if gate is not None:
            _PAUSE.end()
            gate.leave()


def _executor(kind: Kind) -> DaemonThreads:
    made = _EXECUTORS.get(kind)
    if made is None:
        with _MAKING:
            made = _EXECUTORS.setdefault(kind, DaemonThreads(THREADS[kind], kind.value, QUEUE_MAX))
    return made


_LONG = _Gate()
_PAUSE = _Pause()
_MAKING = threading.Lock()
_EXECUTORS: dict[Kind, DaemonThreads] = {}
