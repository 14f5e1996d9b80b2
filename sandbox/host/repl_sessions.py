"""Named sessions: a worker that is kept between calls, so that variables, functions and imports survive.

Sessions never see each other. In a name, what stands before a slash says whose the session is, and is never shown. Two
calls at once take turns. A session that has lost its worker (by a time-out, a crash, a cancelled call, idleness) is
rebuilt for its next call, where the call brings what can do that. Else what ended it stands in the report that it ends
with, if there is one, and in the next report of that name.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from ..errors import SessionNotRebuilt, SessionRefused, WorkerLost
from ..job import HostCalls, Isolation, Job, Outcome, Owner, Rebuild, Rebuilt, SessionVariable, Status, TraceRecorder
from .fair_queue import of_one_caller
from .scheduler import OwnBound, Seat, no_own_bound
from .worker import WorkerHandle

_ENDINGS_KEPT = 1000
_TRIES = 3
_ON_REQUEST = "it was ended on request"
_BETWEEN = "its process ended between two calls"
_CANCELLED = "a call in it was cancelled"
_ENDING: dict[Status, str] = {
    Status.TIMEOUT: "its code ran out of time",
    Status.CRASHED: "its process crashed",
    Status.MEMORY: "its process ran out of memory",
}


def shown(name: str) -> str:
    """Return the name of a session as its owner knows it."""
    return name.rpartition("\0")[2].rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session as its owner sees it; `idle_seconds` is None while a call is at work in it or waits for it.

    `memory_mb` is what it may have, and `held` are its largest variables after the call that ended last.
    """

    name: str
    calls: int
    idle_seconds: float | None
    memory_mb: int = 0
    held: tuple[SessionVariable, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionRoom:
    """How many sessions may be alive: of all, of one caller and of one tenant; 0 is no bound of one's own.

    Where there are several, a caller and a named tenant have three quarters of all at most.
    """

    all: int
    of_caller: int = 0
    of_tenant: int = 0
    own: OwnBound = no_own_bound

    def of(self, owner: Owner) -> tuple[int, int]:
        """Return how many a caller may have, and how many its tenant may."""
        usual = of_one_caller(self.all)
        of_caller, of_tenant = (
            most if (own := self.own(name, owner)) is None else int(own)
            for name, most in (("caller_sessions_max", self.of_caller), ("tenant_sessions_max", self.of_tenant))
        )
        tenant_max = min(of_tenant or self.all, usual if owner.tenant else self.all)
        return min(of_caller or usual, usual, tenant_max), tenant_max


@dataclass(slots=True)
class _Session:
    name: str
    owner: Owner
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    worker: WorkerHandle | None = None
    memory_mb: int = 0
    held: tuple[SessionVariable, ...] = ()
    calls: int = 0
    ended_calls: int = 0
    lost: str | None = None
    closing: str | None = None
    idle: asyncio.TimerHandle | None = None
    idle_since: float = 0.0


class Sessions:
    """The sessions of one pool; `take` gives a fresh worker, `seat` a place among the runs."""

    def __init__(
        self,
        take: Callable[[], Awaitable[WorkerHandle]],
        seat: Callable[[Job], AbstractAsyncContextManager[Seat]],
        room: SessionRoom,
        idle_seconds: float,
    ) -> None:
        self._take_worker = take
        self._seat = seat
        self._room = room
        self._idle_seconds = idle_seconds
        self._alive: dict[str, _Session] = {}
        self._endings: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._alive)

    def __contains__(self, name: str) -> bool:
        return name in self._alive

    async def run(
        self,
        name: str,
        job: Job,
        host_calls: HostCalls,
        recorder: TraceRecorder | None = None,
        rebuild: Rebuild | None = None,
    ) -> Outcome:
        """Run a call in its session, which begins with its first call, or is rebuilt for it.

        Where as many as allowed are alive, an idle one ends for it (`_make_room`). Raises `SessionRefused` when all of
        them are busy, or when the call's turn did not come within its own time-out.
        """
        session = self._enter(name, Owner(job.tenant, job.caller))
        try:
            await self._wait_turn(session, job.limits.timeout_seconds)
            try:
                async with self._seat(job) as seat:
                    rebuilt = await self._rebuilt(session, job, seat, rebuild)
                    outcome = await self._run_in(session, job, host_calls, seat, recorder)
                    session.held = outcome.held
                    return replace(self._with_endings(session, outcome, returns=rebuild is not None), rebuilt=rebuilt)
            finally:
                session.turn.release()
        finally:
            self._leave(session)

    def end(self, name: str, why: str = _ON_REQUEST) -> bool:
        """End the session of that name; return whether there was one."""
        session = self._alive.pop(name, None)
        if session is None:
            return False
        self._lay_down(session, why)
        return True

    def end_when_idle(self, name: str) -> bool:
        """End the session of that name once no call is at work in it or waits for it; return whether there was one."""
        session = self._alive.get(name)
        if session is None:
            return False
        if not session.calls:
            return self.end(name)
        session.closing = _ON_REQUEST
        return True

    def of(self, caller: str) -> list[SessionState]:
        """Return the sessions that a caller began, by name."""
        now = asyncio.get_running_loop().time()
        return sorted(
            (
                SessionState(
                    shown(each.name),
                    each.ended_calls,
                    None if each.calls else round(now - each.idle_since, 1),
                    each.memory_mb,
                    each.held,
                )
                for each in self._alive.values()
                if each.owner.caller == caller
            ),
            key=lambda each: each.name,
        )

    def close(self) -> None:
        """End them all."""
        for name in list(self._alive):
            self.end(name, "the server is closing")

    def _enter(self, name: str, owner: Owner) -> _Session:
        session = self._alive.get(name)
        if session is None:
            self._make_room(owner)
            session = self._alive[name] = _Session(name, owner)
        session.calls += 1
        if session.idle is not None:
            session.idle.cancel()
            session.idle = None
        return session

    def _make_room(self, owner: Owner) -> None:
        """End an idle session where a new one is one too many, or refuse the new one where none may end.

        A caller, or a tenant, that has as many as one may have loses one of its own. Where all places are taken, the
        tenant with the most loses one, of its caller with the most; where several have as many, that is this one. The
        session that was idle for the longest ends. Busy sessions stay.
        """
        counts = Counter(each.owner for each in self._alive.values())
        tenants = Counter(each.owner.tenant for each in self._alive.values())
        caller_max, tenant_max = self._room.of(owner)
        while True:
            idle = [each for each in self._alive.values() if not each.calls]
            own, tenant = counts[owner], tenants[owner.tenant]
            if own >= caller_max:
                full = f"{own} of your sessions are alive, as many as one caller may have of {self._room.all},"
                idle = [each for each in idle if each.owner == owner]
            elif tenant >= tenant_max and tenant_max < self._room.all:
                full = f"{tenant} sessions of this tenant are alive, as many as one may have of {self._room.all},"
                idle = [each for each in idle if each.owner.tenant == owner.tenant and counts[each.owner] >= own]
            elif len(self._alive) >= self._room.all:
                full = f"{len(self._alive)} sessions are alive, as many as are allowed,"
                idle = [
                    each
                    for each in idle
                    if (
                        counts[each.owner] >= own
                        if each.owner.tenant == owner.tenant
                        else tenants[each.owner.tenant] >= tenant
                    )
                ]
            else:
                return
            if not idle:
                names = ", ".join(repr(each.name) for each in self.of(owner.caller)) or "none"
                raise SessionRefused(
                    f"{full} and none that could end is idle. Yours: {names}. Use one of these, leave out `session`, "
                    "or wait until a call in one has ended."
                )
            chosen = min(
                idle,
                key=lambda each: (
                    -tenants[each.owner.tenant],
                    each.owner.tenant != owner.tenant,
                    -counts[each.owner],
                    each.owner != owner,
                    each.idle_since,
                ),
            )
            self.end(chosen.name, "a new session needed its place, and it was idle")
            counts[chosen.owner] -= 1
            tenants[chosen.owner.tenant] -= 1

    def _leave(self, session: _Session) -> None:
        session.calls -= 1
        if session.calls:
            return
        if self._alive.get(session.name) is not session:
            # It was ended while this call waited for its turn.
            self._lay_down(session, _ON_REQUEST)
            return
        if session.closing is not None:
            self.end(session.name, session.closing)
            return
        if session.worker is None:
            del self._alive[session.name]
            return
        session.idle_since = asyncio.get_running_loop().time()
        session.idle = asyncio.get_running_loop().call_later(
            self._idle_seconds, self.end, session.name, f"it was idle for {self._idle_seconds:g} seconds"
        )

    async def _wait_turn(self, session: _Session, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await session.turn.acquire()
        except TimeoutError:
            raise SessionRefused(
                f"The session {shown(session.name)!r} was busy with another call for all of this call's "
                f"{seconds:g} seconds. Wait for that call, or use another session."
            ) from None

    async def _run_in(
        self, session: _Session, job: Job, host_calls: HostCalls, seat: Seat, recorder: TraceRecorder | None
    ) -> Outcome:
        worker = session.worker
        if worker is not None:
            _judge_memory(session, job)
        try:
            return (
                await self._run_fresh(session, job, host_calls, seat, recorder)
                if worker is None
                else await worker.run_whole(job, host_calls, seat, recorder)
            )
        except WorkerLost:
            if worker is None:
                raise
            # It was gone before it had the job: nothing of the code ran, so a new session may.
            self._lay_down(session, _BETWEEN)
            return await self._run_fresh(session, job, host_calls, seat, recorder)
        except asyncio.CancelledError:
            self._lay_down(session, _CANCELLED)
            raise

    async def _rebuilt(self, session: _Session, job: Job, seat: Seat, rebuild: Rebuild | None) -> Rebuilt | None:
        """Rebuild a session that has no worker, or remember why it cannot be; None where nothing was there."""
        if session.worker is not None and session.worker.gone:
            self._lay_down(session, _BETWEEN)
        if session.worker is not None or rebuild is None:
            return None
        began = asyncio.get_running_loop().time()
        session.memory_mb = job.limits.memory_mb

        async def run_before(before: Job, answer: HostCalls) -> Outcome:
            if session.worker is None:
                session.worker = await self._take_worker()
            if not seat.turn.held:
                await seat.turn.take_again()
            return await session.worker.run(before, answer, seat)

        try:
            programs = await rebuild(run_before)
        except (SessionNotRebuilt, WorkerLost) as error:
            why = str(error) if isinstance(error, SessionNotRebuilt) else "its process ended while it was rebuilt"
            self._lay_down(session, why)
            self._remember_end(session.name, why)
            return None
        except asyncio.CancelledError:
            self._lay_down(session, _CANCELLED)
            raise
        if not programs:
            return None
        self._endings.pop(session.name, None)
        return Rebuilt(programs, 1000 * (asyncio.get_running_loop().time() - began))

    def _with_endings(self, session: _Session, outcome: Outcome, *, returns: bool) -> Outcome:
        """Count the call, and add to its outcome that the session ended before it or with it, and so lost its names.

        A session that `returns` is rebuilt for its next call.
        """
        sentences = []
        session.ended_calls += 1
        earlier = self._endings.pop(session.name, None)
        if earlier is not None:
            session.lost = earlier
            sentences.append(
                f"The session {shown(session.name)!r} had ended before this call: {earlier}. Its variables are gone; "
                "this call began a new one."
            )
        if session.lost is not None:
            outcome = _with_lost_name_hint(outcome, shown(session.name), session.lost)
        if session.worker is None or session.worker.gone or (returns and outcome.status is Status.TIMEOUT):
            why = _ENDING.get(outcome.status, "its process ended")
            self._lay_down(session, why)
            next_call = (
                "The next call finds it as it was before this one."
                if returns
                else "Its variables are gone; the next call begins anew."
            )
            sentences.append(f"The session {shown(session.name)!r} has ended: {why}. {next_call}")
        return replace(outcome, session_ended=" ".join(sentences)) if sentences else outcome

    async def _run_fresh(
        self, session: _Session, job: Job, host_calls: HostCalls, seat: Seat, recorder: TraceRecorder | None
    ) -> Outcome:
        session.memory_mb = job.limits.memory_mb
        for _try in range(_TRIES - 1):
            session.worker = await self._take_worker()
            try:
                return await session.worker.run_whole(job, host_calls, seat, recorder)
            except WorkerLost:
                session.worker.end()
                session.worker = None
        session.worker = await self._take_worker()
        return await session.worker.run_whole(job, host_calls, seat, recorder)

    def _lay_down(self, session: _Session, why: str) -> None:
        """End a session's process and remember why, for its next report."""
        worker, session.worker = session.worker, None
        if session.idle is not None:
            session.idle.cancel()
            session.idle = None
        if worker is None:
            return
        worker.end()
        self._remember_end(session.name, why)

    def _remember_end(self, name: str, why: str) -> None:
        self._endings[name] = why
        while len(self._endings) > _ENDINGS_KEPT:
            self._endings.popitem(last=False)


def _with_lost_name_hint(outcome: Outcome, name: str, why: str) -> Outcome:
    """Return the outcome; the hint of a name that is not defined mentions the session's lost variables."""
    error = outcome.error
    if error is None or error.type != "NameError":
        return outcome
    hint = (
        f"The session {name!r} lost its variables: {why}. Set again what the code needs; write_file() keeps what has "
        "to outlive a session."
    )
    return replace(outcome, error=replace(error, hint=hint))


def _judge_memory(session: _Session, job: Job) -> None:
    """Refuse what a worker with native code cannot be given any more: its first call settled its hard limit."""
    if job.isolation is not Isolation.RESTRICTED and job.limits.memory_mb > session.memory_mb:
        raise SessionRefused(
            f"The session {shown(session.name)!r} began with {session.memory_mb} MB of memory, the most it can have "
            f"at the isolation {job.isolation}. Ask for no more with memory_mb, or begin another session with more."
        )
