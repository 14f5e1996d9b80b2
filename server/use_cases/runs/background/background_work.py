"""One server's part in running background runs: it takes those that wait, keeps their leases, and stores their reports.

They have pools of their own, so that they take no worker and no turn of a run that somebody waits for. A run whose
server ended goes to the next one that looks: with what its journal has, or from its start where nothing of it is
recorded, since what changes something is recorded first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .....sandbox.errors import WorkerLost
from .....sandbox.job import Status
from .....skills_db.errors import JournalDamaged, JournalNewer, JournalNotFound, RunNotCut, SkillsDbError
from .....skills_db.journal.waiting_runs import any_due, any_wait
from ....base.errors import KNOWN_ERRORS, HostWorkBusy, RequestRefused
from ....base.host_work import OWNER, Kind, in_thread
from ....governance.caller import RUNNING, Ask, Caller, OnProgress
from ....governance.questions import NO, Question, Reply
from ....governance.scopes import kept_identity
from ...journal.writer import PASSING
from ..admission import can_park
from ..aspects import RunCut
from ..execute import execute
from ..request import CodeRequest, Execution, request_of
from ..resume import resume
from .background_reports import (
    RunProgress,
    cancelled,
    execution_json,
    question_json,
    question_of,
    without_result,
)
from .journaled_reports import recorded

if TYPE_CHECKING:
    from .....skills_db.journal.background_store import BackgroundStore, Claimed
    from ....base.settings import Settings
    from ...journal.journal import Journal
    from ..executor import Executor

LEASE_SECONDS = 20.0
"""How long a run is a process's after it was last heard of; then another takes it."""
RENEW_SECONDS = 4.0
LOOK_SECONDS = 2.0
"""How often runs are looked for that other processes queued, lost, or had an answer for."""
_FIRST_LOOK_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_LOSSES_MAX = 3
"""How often a run goes on whose worker was lost: what code does to its own worker, it does again."""
_CLOSING_SECONDS = 2.0
_PURGE_SECONDS = 600.0
_CUT = "The server ended while this run was at work, and the run cannot go on: {} What it had done by then stands."
_TRIED_AGAIN = (*PASSING, HostWorkBusy)
"""What a run waits for to pass, as long as its lease is kept."""
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class CancelReason(Enum):
    """Why a run is stopped from outside."""

    CANCELLED = "cancelled"
    RELEASED = "released"
    LOST = "lost"
    ASKS = "asks"
    """It waits for a user's answer, and another worker goes on with it then."""


@dataclass(slots=True, eq=False)
class _Active:
    """A run of this process."""

    claimed: Claimed
    kept_until: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    progress: RunProgress | None = None
    stored: RunProgress | None = None
    task: asyncio.Task[Execution] | None = None
    stopped: CancelReason | None = None
    question: Mapping[str, object] | None = None
    answer: tuple[Question, Reply] | None = None
    """The question that it waited with and its answer, as far as the code has not asked that again."""
    took_answer: bool = False
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def stop(self, why: CancelReason) -> None:
        """End the run; the first reason that is given counts."""
        if self.stopped is None:
            self.stopped = why
            if self.task is not None:
                self.task.cancel()


class BackgroundWork:
    """Runs the background runs that this process takes; for its event loop."""

    def __init__(
        self, executor: Callable[[], Executor], journal: Journal, *, runs_max: int, database_file: Path | None
    ) -> None:
        """Make it; `database_file` is the file to look into before the database is opened, if it is one."""
        self._executor = executor
        self._journal = journal
        self._runs_max = runs_max
        self._file = database_file
        self._active: dict[str, _Active] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self._is_silent = False
        self._closing = False
        self._purged = 0.0
        self.fire: Callable[[], Awaitable[None]] | None = None
        """Queues what is due at a set time."""

    @staticmethod
    def now() -> float:
        """Return the time in seconds since 1970."""
        return time.time()

    def wake(self) -> None:
        """Look for waiting runs at once."""
        self._woken.set()

    @property
    def is_at_work(self) -> bool:
        """Whether this process runs one now."""
        return bool(self._active)

    @property
    def active_count(self) -> int:
        """How many this process runs now."""
        return len(self._active)

    def end_of(self, run_id: str) -> asyncio.Event | None:
        """Return what is set once a run has ended on which this process is at work, else None."""
        active = self._active.get(run_id)
        return None if active is None else active.ended

    def progress_of(self, run_id: str) -> RunProgress | None:
        """Return how far a run of this process says that it is."""
        active = self._active.get(run_id)
        return None if active is None else active.progress

    async def cancel(self, run_id: str) -> None:
        """Stop a run of this process and wait until its report is stored."""
        active = self._active.get(run_id)
        if active is not None:
            active.stop(CancelReason.CANCELLED)
            await active.ended.wait()

    async def serve(self) -> None:
        """Take runs and run them, until it is cancelled."""
        wait_seconds = _FIRST_LOOK_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    await self._woken.wait()
            self._woken.clear()
            wait_seconds = LOOK_SECONDS
            try:
                await self._take_all()
                self._is_silent = False
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                if not self._is_silent:
                    _LOG.warning("Background runs cannot be looked for: %s", error)
                self._is_silent = True
                wait_seconds = _FIRST_LOOK_SECONDS

    async def aclose(self) -> None:
        """Stop the runs of this process, and leave them to the next one."""
        self._closing = True
        for run_id, active in self._active.items():
            if active.stopped is None:
                self._journal.leave_open(run_id)
            active.stop(CancelReason.RELEASED)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSING_SECONDS)

    async def _take_all(self) -> None:
        if self.fire is not None and not self._closing and await in_thread(Kind.DATABASE, self._any_due, charged=False):
            await self.fire()
        if not await in_thread(Kind.DATABASE, self._any_wait, charged=False):
            return
        most = max(1, self._runs_max // 2)
        while len(self._active) < self._runs_max and not self._closing:
            kept_until = time.monotonic() + LEASE_SECONDS
            claimed = await self._ask(lambda store: store.claim(LEASE_SECONDS, most=most))
            if claimed is None:
                break
            active = self._active[claimed.run_id] = _Active(claimed, kept_until)
            task = asyncio.create_task(self._run(active))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _any_due(self) -> bool:
        """Return whether the time of a schedule has come, without opening the database for it. Blocks."""
        if self._file is not None:
            return any_due(self._file, time.time(), judges=True)
        store = self._journal.background()
        return bool(store.schedules.due(store.now()))

    def _any_wait(self) -> bool:
        """Return whether a run waits, without opening the database for it. Blocks."""
        if not self._journal.background_is_open and self._file is not None and not any_wait(self._file):
            return False
        store = self._journal.background()
        if time.monotonic() - self._purged > _PURGE_SECONDS:
            self._purged = time.monotonic()
            store.drop_expired()
        return store.has_work()

    async def _run(self, active: _Active) -> None:
        run_id = active.claimed.run_id
        keeping = asyncio.create_task(self._keep(active))
        try:
            execution = await self._ended(active)
            if execution is not None:
                await self._store(active, execution)
            elif active.stopped is CancelReason.RELEASED:
                await self._release(active)
            elif active.stopped is CancelReason.ASKS and active.question is not None:
                await self._park(active, active.question)
        except Exception:  # noqa: BLE001 - whatever it is, the run's lease ends and another process takes it
            _LOG.exception("The report of the background run %s could not be stored.", run_id)
        finally:
            keeping.cancel()
            del self._active[run_id]
            active.ended.set()
            self.wake()

    async def _ended(self, active: _Active) -> Execution | None:
        """Run it and return its report, or None where another process has it to do."""
        claimed = active.claimed
        if claimed.cancels:
            return cancelled(claimed.run_id)
        if claimed.request is None:
            message = "What was stored of this run was changed or is damaged. Run its code again."
            return without_result(claimed.run_id, Status.CRASHED, "JournalDamaged", message)
        active.task = asyncio.create_task(self._executed(active, claimed))
        if active.stopped is not None:
            active.task.cancel()
        try:
            return await active.task
        except asyncio.CancelledError:
            if active.stopped is not CancelReason.CANCELLED:
                return None
            return cancelled(claimed.run_id, await self._executor().cancelled.left_by(claimed.run_id))
        except JournalNewer as error:
            _LOG.warning("The background run %s is left to a newer version of sealab: %s", claimed.run_id, error)
            return None
        except KNOWN_ERRORS as error:
            return without_result(claimed.run_id, Status.REFUSED, type(error).__name__, str(error))
        except Exception:  # noqa: BLE001 - reported and logged
            _LOG.exception("The background run %s failed by a fault of sealab itself.", claimed.run_id)
            message = "It failed by a fault of sealab itself, whose log says more. What it did up to then is unknown."
            return without_result(claimed.run_id, Status.CRASHED, "InternalError", message)

    async def _executed(self, active: _Active, claimed: Claimed) -> Execution:
        executor = self._executor()
        OWNER.set(executor.shares.owner(claimed.owner))
        request = _request_of(claimed, executor.settings)

        async def tell(value: float, total: float, message: str) -> None:
            # Until the code says how far it is, a reporter counts seconds of the time limit.
            counts_seconds = total == request.timeout_seconds
            if not (counts_seconds and message == RUNNING):
                before = 0.0 if active.progress is None else active.progress.fraction
                fraction = before if counts_seconds else min(value / total, 1.0)
                active.progress = RunProgress(round(fraction, 4), "" if message == RUNNING else message)

        ask = self._asking(active, request)
        asked = replace(request, caller=replace(request.caller, ask=ask))
        was_cut, losses = claimed.was_cut, 0
        while True:
            outlives = losses < _LOSSES_MAX
            try:
                if was_cut:
                    execution = await self._taken_up(executor, claimed.run_id, tell, ask, outlives=outlives)
                    if execution is not None:
                        return execution
                execution = await execute(executor, replace(asked, outlives_worker=outlives), progress=tell)
            except RunCut:
                was_cut = True
            except (*_TRIED_AGAIN, RunNotCut):  # how far it came is in its journal
                was_cut = True
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            except WorkerLost:  # none could be made: nothing of it ran
                if not outlives:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                executor.last_runs.note(request.caller.scope, claimed.run_id)
                return execution
            losses += 1

    async def _taken_up(
        self, executor: Executor, run_id: str, tell: OnProgress, ask: Ask | None, *, outlives: bool
    ) -> Execution | None:
        """Go on with a run that was cut; return None where it is to be run from its start."""
        if not self._journal.keeps:
            return _cut(run_id, "with JOURNAL=off nothing says how far it had come.")
        try:
            await self._journal.release(run_id)
            record = await in_thread(Kind.DATABASE, lambda: self._journal.store().journal(run_id), charged=False)
        except JournalNotFound:
            return None  # what changes something is recorded before it is done: nothing was
        except JournalDamaged as damaged:
            return _cut(run_id, str(damaged))
        if record.run.ended is not None:
            return await recorded(executor, record)
        # Its lease here is over: whoever had it must not write its journal any more.
        await in_thread(Kind.DATABASE, lambda: self._journal.store().release(run_id), charged=False)
        try:
            return await resume(executor, run_id, ask=ask, progress=tell, background=True, outlives_worker=outlives)
        except RequestRefused as refused:
            return _cut(run_id, str(refused))
        except JournalDamaged as damaged:
            return _cut(run_id, str(damaged))

    async def _keep(self, active: _Active) -> None:
        run_id, owner = active.claimed.run_id, active.claimed.owner
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            progress = active.progress if active.progress != active.stored else None
            progress_json = None if progress is None else {"fraction": progress.fraction, "message": progress.message}
            until = time.monotonic() + LEASE_SECONDS
            try:
                async with asyncio.timeout(max(active.kept_until - time.monotonic(), 0)):
                    answer = await self._ask(lambda store: store.renew(run_id, owner, progress_json, LEASE_SECONDS))  # noqa: B023
            except (SkillsDbError, HostWorkBusy, TimeoutError) as error:
                if time.monotonic() < active.kept_until:
                    continue
                why = str(error) or "its lease could not be renewed in time"
                _LOG.warning("The background run %s is left to another process: %s", run_id, why)
                answer = "lost"
            if answer == "kept":
                active.kept_until, active.stored = until, active.progress if progress is None else progress
            elif answer == "cancels":
                active.stop(CancelReason.CANCELLED)
                return
            else:
                self._journal.leave_open(run_id)
                active.stop(CancelReason.LOST)
                return

    async def _store(self, active: _Active, execution: Execution) -> None:
        with suppress(SkillsDbError):  # the end of its journal is missing then, and the report says how it ended
            await self._journal.stored()
        claimed, encoded = active.claimed, execution_json(execution)
        while True:
            try:
                await self._ask(lambda store: store.finish(claimed.run_id, claimed.owner, encoded))
            except _TRIED_AGAIN:
                if self._closing:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _park(self, active: _Active, question: Mapping[str, object]) -> None:
        claimed = active.claimed
        await self._journal.release(claimed.run_id)
        if not await self._ask(lambda store: store.park(claimed.run_id, claimed.owner, question)):
            await self._release(active)  # it is to be cancelled: whoever takes it next says so

    def _asking(self, active: _Active, request: CodeRequest) -> Ask | None:
        """Return what asks a user on behalf of a run: it ends the run here, which goes on with the answer.

        None where a run could not go on: nothing of it is recorded, or it may not be run again.
        """
        if not can_park(self._executor(), request):
            return None
        claimed = active.claimed

        async def ask(question: Question) -> Reply:
            async with active.asking:
                if not active.took_answer:
                    stored = await self._ask(lambda store: store.take_answer(claimed.run_id, claimed.owner))
                    active.answer = None if stored is None else (question_of(stored), Reply.of(stored))
                    active.took_answer = True
            if active.answer is not None and question.asks_the_same(active.answer[0]):
                answered, reply = active.answer
                left = answered.without(question)
                active.answer = None if left is None else (left, reply.as_to(answered, left))
                return reply.as_to(answered, question)
            if active.question is None:
                active.question = question_json(question) | {"scope": request.caller.scope}
                await self._journal.settled(claimed.run_id)
                self._journal.leave_open(claimed.run_id)
                asyncio.get_running_loop().call_soon(active.stop, CancelReason.ASKS)
            await asyncio.Event().wait()
            return NO

        return ask

    async def _release(self, active: _Active) -> None:
        with suppress(SkillsDbError):
            await self._journal.release(active.claimed.run_id)
        await self._ask(lambda store: store.release(active.claimed.run_id, began=True))

    async def _ask(self, question: Callable[[BackgroundStore], _T]) -> _T:
        return await in_thread(Kind.DATABASE, lambda: question(self._journal.background()), charged=False)


def _request_of(claimed: Claimed, settings: Settings) -> CodeRequest:
    """Return what was queued. Maxima that the operator has lowered since bound a run that was accepted."""
    encoded = cast("Mapping[str, Any]", claimed.request)
    scope = str(encoded["scope"])
    request = request_of(encoded, Caller(scope, identity=kept_identity(encoded.get("identity"), scope)))
    seconds, memory_mb = request.timeout_seconds, request.memory_mb
    return replace(
        request,
        timeout_seconds=None if seconds is None else min(seconds, settings.max_timeout_seconds),
        memory_mb=None if memory_mb is None else min(memory_mb, settings.max_memory_mb),
        run_id=claimed.run_id,
        background=True,
    )


def _cut(run_id: str, why: str) -> Execution:
    return without_result(run_id, Status.CRASHED, "RunCut", _CUT.format(why))
