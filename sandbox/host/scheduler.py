"""Decides which runs begin, and which workers compute: turns are for computing, and a worker that waits needs none.

What a worker does is seen from outside (`process_state`), never reported by itself. While none waits for a turn nothing
is looked at. Else a worker that sleeps loses its turn, and takes one again before an answer is sent to it; one that
woke by itself and computes without a turn takes a free one or is stopped until it has one. A tenant with more turns
than one that waits loses one, and so does a caller within its tenant: its run is stopped, and goes on when it is its
turn again. So one caller's long runs do not delay another's.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from ..job import Job, Owner
from .fair_queue import Turn, Turns, of_one_caller
from .free_memory import Memory
from .run_clock import Clock

_LOOK_SECONDS = 0.01
_LOOK_SELDOM_SECONDS = 0.05
"""How often workers that hold a turn are looked at while another waits for one, and those that hold none."""
_LOOK_SECONDS_EACH = 0.0002
"""How much longer a look at those that hold none is put off for each of them: one costs some microseconds."""
_AWAKE_CPU_SECONDS = 0.001
"""CPU time after which a worker without a turn no longer counts as waiting."""
_UNSEEN_LOOKS = 5
"""Looks without CPU time after which a worker sleeps of which nothing else can be seen."""
_HELD_SECONDS_MIN = 0.02
_SLICE_SECONDS = 0.1
"""How long a run holds its turn before one of a caller with fewer turns, or with as many less one, may take it."""
_MIB = 1024 * 1024


class _Worker(Protocol):
    """What a scheduler sees of a `WorkerHandle`, and does with it."""

    def computes(self) -> bool | None: ...

    def cpu_seconds(self) -> float | None: ...

    def waits_for_others(self) -> bool: ...

    def suspend(self) -> bool: ...

    def resume(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """How many runs compute at once, how many are alive, how many may wait to begin and for how many seconds."""

    turns: int
    alive: int
    queue: int
    queue_seconds: float


OwnBound = Callable[[str, Owner], float | None]
"""Returns the bound of that name, such as `caller_runs_max`, that an owner has by itself; None leaves the usual one."""


def no_own_bound(_name: str, _owner: Owner) -> None:
    """Leave every owner the usual bounds."""


class RunBounds:
    """How many runs of a caller and of a tenant may be alive in all schedulers that share it; 0 is no bound.

    `own` is asked first, each time. Belongs to one event loop.
    """

    def __init__(self, caller_max: int = 0, tenant_max: int = 0, own: OwnBound | None = None) -> None:
        self.caller_max = caller_max
        self.tenant_max = tenant_max
        self.own: OwnBound = own or no_own_bound
        self._all: weakref.WeakSet[Turns[Job]] = weakref.WeakSet()

    def share(self, turns: Turns[Job]) -> None:
        """Count the runs of one more scheduler."""
        self._all.add(turns)

    def runs_of(self, owner: Owner) -> int:
        """Return how many runs of that caller have begun and not ended."""
        return sum(turns.begun_by(owner) for turns in self._all)

    def runs_of_tenant(self, tenant: str) -> int:
        """Return how many runs of that tenant have begun and not ended."""
        return sum(turns.begun_by_tenant(tenant) for turns in self._all)

    def refusal(self, owner: Owner) -> str | None:
        """Return why no more run of that caller may begin now, or None."""
        for whose, count, most in (
            ("caller", self.runs_of, self._most("caller_runs_max", owner, self.caller_max)),
            (
                "tenant",
                lambda each: self.runs_of_tenant(each.tenant),
                self._most("tenant_runs_max", owner, self.tenant_max),
            ),
        ):
            if most and count(owner) >= most:
                return f"this {whose} has {most} runs at once already, as many as one may ({whose.upper()}_RUNS_MAX)"
        return None

    def _most(self, name: str, owner: Owner, usual: int) -> int:
        own = self.own(name, owner)
        return usual if own is None else int(own)


class Seat:
    """The place of one run. `queued_ms` is how long it waited to begin."""

    def __init__(self, turn: Turn[Job], queued_ms: float) -> None:
        self.turn = turn
        self.queued_ms = queued_ms
        self.worker: _Worker | None = None
        self.clock: Clock | None = None
        self.resuming: asyncio.Task[None] | None = None
        self.cpu_seconds: float | None = None
        self.looks_asleep = 0

    def begin(self, worker: _Worker, clock: Clock) -> None:
        """Note that this worker has the job now."""
        self.worker, self.clock = worker, clock
        self._not_seen()

    def leave(self) -> None:
        """Note that the worker has ended with the job."""
        worker, self.worker = self.worker, None
        resuming, self.resuming = self.resuming, None
        if resuming is not None:
            resuming.cancel()
            if worker is not None:
                worker.resume()  # a session's lives on
        self.clock = None

    async def wait_to_resume(self) -> None:
        """Wait until the run may compute, before something is sent to it that it waits for."""
        if self.turn.held or self.clock is None:
            return
        with self.clock.pause():
            await self.turn.take_again()
        self._not_seen()

    def suspend(self) -> bool:
        """Stop the worker until it has a turn, and give back the one it has; return False where that cannot be done."""
        if self.worker is None or not self.worker.suspend():
            return False
        self.resuming = asyncio.get_running_loop().create_task(self._resume())
        self.turn.give_back()
        return True

    def _not_seen(self) -> None:
        """Begin anew to see whether it sleeps: what was just sent to it may not have woken it yet."""
        self.cpu_seconds = None
        self.looks_asleep = 0

    async def _resume(self) -> None:
        worker = self.worker
        await self.wait_to_resume()
        self.resuming = None
        if worker is not None:
            worker.resume()


class Scheduler:
    """Seats runs fairly between callers. Belongs to one event loop."""

    def __init__(self, room: SchedulerLimits, memory: Memory, bounds: RunBounds | None = None) -> None:
        self._room = room
        self._memory = memory
        self._bounds = bounds or RunBounds()
        self._turns: Turns[Job] = Turns(
            room.turns, queue_max=room.queue, queue_seconds=room.queue_seconds, refusal=self._refusal
        )
        self._bounds.share(self._turns)
        self._seats: set[Seat] = set()
        self._look: asyncio.TimerHandle | None = None
        self._rests_due = 0.0
        self._promised = (-1, 0)

    @property
    def running(self) -> int:
        """How many runs have a turn."""
        return self._turns.running

    @property
    def waiting(self) -> int:
        """How many runs wait to begin."""
        return self._turns.waiting

    @property
    def resting(self) -> int:
        """How many runs have begun and have no turn, since they wait for something or were stopped."""
        return sum(not seat.turn.held for seat in self._seats)

    @property
    def whole(self) -> bool:
        """Whether no turn was lost: those that are free and those that are held are all there are."""
        return self._turns.free + self._turns.running == self._turns.maximum

    @asynccontextmanager
    async def seat(self, job: Job) -> AsyncIterator[Seat]:
        """Wait until a run may begin, and keep its place until it has ended. Raises `Busy`."""
        asked = time.perf_counter()
        self._look_soon()
        async with self._turns.turn(Owner(job.tenant, job.caller), job, nested=job.nested) as turn:
            seat = Seat(turn, (time.perf_counter() - asked) * 1000)
            self._seats.add(seat)
            try:
                yield seat
            finally:
                seat.leave()
                self._seats.discard(seat)

    def close(self) -> None:
        """Look at nothing more."""
        if self._look is not None:
            self._look.cancel()

    def _refusal(self, owner: Owner, job: Job) -> str | None:
        """Return why one more run of that caller may not be alive now, for itself or for its memory, or None."""
        own = self._turns.begun_by(owner)
        if not job.nested and (why := self._bounds.refusal(owner) or self._too_many(owner, own)) is not None:
            return why
        # A run on its own has to do with what there is: its own limit ends it, or the kernel does. The first one of a
        # caller does not wait for what others were promised, but may use.
        promised_mb = self._promised_mb()
        needed_mb = job.limits.memory_mb + (promised_mb if own else 0)
        if not promised_mb or needed_mb * _MIB <= self._memory.free_bytes():
            return None
        return "the server has not enough memory free for what the runs at work may use"

    def _too_many(self, owner: Owner, own: int) -> str | None:
        """Return why no more run of that caller may be alive with so many others: some places stay free for others."""
        alive = self._room.alive
        if self._turns.begun_by_all >= alive:
            return f"{alive} runs are alive on this server, as many as may"
        if owner.tenant and self._turns.begun_by_tenant(owner.tenant) >= (alive := of_one_caller(alive)):
            return f"this tenant has {alive} runs alive, as many as one may"
        if own >= of_one_caller(alive):
            return f"this caller has {own} runs alive, as many as one may"
        return None

    def _promised_mb(self) -> int:
        """Return what the runs that compute may use; one that waits keeps what it has, which is no longer free."""
        if self._promised[0] != self._turns.changes:
            held = sum(turn.what.limits.memory_mb for turn in self._turns.begun() if turn.held or turn.wanted)
            self._promised = (self._turns.changes, held)
        return self._promised[1]

    def _look_soon(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_round)

    def _look_round(self) -> None:
        self._look = None
        loop = asyncio.get_running_loop()
        wanted = self._turns.wanted
        held = [seat for seat in self._seats if seat.turn.held]
        if loop.time() >= self._rests_due:
            self._rests_due = loop.time() + _LOOK_SELDOM_SECONDS + len(self._seats) * _LOOK_SECONDS_EACH
            for seat in [seat for seat in self._seats if not seat.turn.held]:
                self._judge_rest(seat)
        if wanted:
            for seat in held:
                if self._sleeps(seat):
                    seat.turn.give_back()
            self._turns.serve()  # memory may have become free
            self._share()
        if self._turns.wanted:
            self._look = loop.call_later(_LOOK_SECONDS, self._look_round)
        elif len(held) < len(self._seats):
            self._look = loop.call_later(_LOOK_SELDOM_SECONDS, self._look_round)

    def _sleeps(self, seat: Seat) -> bool:
        """Return whether a worker waits for something: it does nothing, and did nothing since the last look."""
        worker = seat.worker
        if worker is None:
            return False
        cpu = worker.cpu_seconds()
        if cpu is None:
            return worker.waits_for_others()
        before, seat.cpu_seconds = seat.cpu_seconds, cpu
        computes = worker.computes()
        if computes or before is None or cpu > before:
            seat.looks_asleep = 0
            return False
        seat.looks_asleep += 1
        return computes is False or seat.looks_asleep >= _UNSEEN_LOOKS

    def _judge_rest(self, seat: Seat) -> None:
        """Give a turn to a worker that computes without one, or stop it until it has one."""
        if seat.worker is None or seat.resuming is not None:
            return
        cpu = seat.worker.cpu_seconds()
        if cpu is None or seat.cpu_seconds is None or cpu - seat.cpu_seconds < _AWAKE_CPU_SECONDS:
            return
        seat.cpu_seconds = cpu
        if not seat.turn.take_if_free() and not seat.suspend():
            seat.turn.take_beyond()

    def _share(self) -> None:
        """Stop runs of callers that have more turns than one that waits."""
        while (owner := self._turns.next_owner()) is not None and self._stop_one_for(owner):
            pass

    def _stop_one_for(self, owner: Owner) -> bool:
        """Give that caller the turn of a tenant, or in its own one of a caller, with more; return whether it could."""
        now = asyncio.get_running_loop().time()
        held = [seat for seat in self._seats if seat.turn.held and seat.turn.owner != owner]
        held.sort(key=lambda seat: (-self._more(seat.turn.owner, owner), seat.turn.since))
        for seat in held:
            more = self._more(seat.turn.owner, owner)
            if more < 1:
                return False
            if now - seat.turn.since >= (_HELD_SECONDS_MIN if more > 1 else _SLICE_SECONDS) and seat.suspend():
                return True
        return False

    def _more(self, other: Owner, owner: Owner) -> int:
        """Return how many turns another has more: its tenant, or within the same tenant the caller."""
        if other.tenant == owner.tenant:
            return self._turns.taken_by(other) - self._turns.taken_by(owner)
        return self._turns.taken_by_tenant(other.tenant) - self._turns.taken_by_tenant(owner.tenant)
