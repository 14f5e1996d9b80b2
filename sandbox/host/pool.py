"""Workers made ahead: each is forked, confined and warm before its job is known, and is used once.

    async with Pool(PoolSettings()) as pool:
        outcome = await pool.run(Job("1 + 1"), host_calls)

The newest idle worker goes first, since its memory is the warmest. A session keeps its worker; see `sessions`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import resource
import sys
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from ..confine import Level, default_level
from ..confine.limits import Allowance, processes_of
from ..errors import ContainerMissing, LevelMissing, LimitRefused, WorkerLost
from ..job import HostCalls, Isolation, Job, Limits, Outcome, Rebuild, TraceRecorder
from ..wire.zygote_config import ZygoteConfig
from .free_memory import Memory
from .repl_sessions import SessionRoom, Sessions, SessionState
from .run_folders import RunFolders
from .scheduler import RunBounds, Scheduler, SchedulerLimits, Seat
from .worker import WorkerHandle
from .worker_process import Launches
from .zygote_launcher import ZygoteLauncher
from .zygotes import LateImports, Zygotes

WORKER_BYTES = 128 * 1024 * 1024
"""What a worker may hold besides its job's memory: the interpreter with its libraries, and its output."""
MB_OF_A_THREAD = 48
"""A pool of a library has a thread more for each so many MB of a job's memory: its stack takes 8 of them."""
PROCESSES_OF_A_THREAD = 4
"""And one more for each so many processes and threads that the job may have."""
MACHINE_SHARE_MAX = 0.9
"""How much of the memory of the machine, or of a control group, a zygote and its workers may take together."""
_PROCESSES_MAX = 32_768
"""The kernel's own default for all processes of a machine (proc(5), pid_max)."""
_BACK_OFF_SECONDS = (0.0, 0.1, 0.5, 2.0, 5.0)
ALIVE_MAX = 2000
"""Runs that are alive at once at most, however much memory there is."""
_ALIVE_BYTES = {Isolation.RESTRICTED: 4 * 1024 * 1024, Isolation.PROCESS: 48 * 1024 * 1024}
"""What a worker that waits takes, with some air; 2.6 MB were measured for `restricted`. A container is not counted."""
_ALIVE_DESCRIPTORS = 8
"""File descriptors of this process for each run: three for its worker, and those of its caller."""
_OTHER_DESCRIPTORS = 128

_TRIES = 3
_HEAD_START_SECONDS = 0.005
_ENDING_SECONDS = 0.001
_groups = itertools.count(1)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What the operator allows. `maximum` is the most that any one job may ask for.

    `python` runs the workers. Full Python sees the directory `workspace` read-only. `wider` are the isolations with
    full Python that hints may name. `cpus` is how many processors all workers may use together. At most `workers_max`
    workers compute at once, and at most one more than there are processors; at most `queue_max` jobs wait to begin,
    each for `queue_seconds`. A zygote is renewed after `zygote_seconds`, if code ran. `packages` are the modules of
    packages that restricted code may import, each as the directory that it is in and its name. Pools that share
    `bounds` count the runs of a caller together. `caller_sessions_max` and `tenant_sessions_max` lower what one may
    have of `sessions_max`; 0 leaves it. When what `installed` returns changes, other packages are installed for
    `python`, and later workers see these. Each worker of full Python writes to the workspace through a folder of its
    own below `run_folders`, of at most `run_folder_bytes`, where that is given and the machine can do it (`overlay`).
    """

    spares: int = 2
    workers_max: int = 8
    sessions_max: int = 8
    session_idle_seconds: float = 600.0
    maximum: Limits = field(default_factory=lambda: Limits(timeout_seconds=120.0, memory_mb=2000))
    isolation: Isolation = Isolation.RESTRICTED
    required_level: Level = field(default_factory=default_level)
    python: str = sys.executable
    workspace: str | None = None
    wider: tuple[Isolation, ...] = ()
    cpus: float | None = None
    queue_max: int = 1000
    queue_seconds: float = 30.0
    zygote_seconds: float = 300.0
    packages: tuple[tuple[str, str], ...] = ()
    bounds: RunBounds = field(default_factory=RunBounds)
    caller_sessions_max: int = 0
    tenant_sessions_max: int = 0
    installed: Callable[[], object] = lambda: None
    run_folders: str | None = None
    run_folder_bytes: int = 2_000_000_000


@dataclass(frozen=True, slots=True)
class PoolStats:
    """How the pool is doing.

    `running` jobs have a turn to compute, `resting` ones wait for something or for a turn to go on, and `waiting` ones
    have not begun. `workers` and `zygotes` count those made so far. `read_only` says why workers cannot write to the
    workspace though they should, where the host cannot make the folders for it; a later run tries again.
    """

    spares: int = 0
    running: int = 0
    waiting: int = 0
    sessions: int = 0
    workers: int = 0
    zygotes: int = 0
    layers: tuple[str, ...] = ()
    resting: int = 0
    read_only: str | None = None


class Pool:
    """Runs jobs, each in a worker of its own, of which at most `workers_max` compute at once, fairly by caller.

    Those that wait for something are bounded by the memory and the file descriptors that there are.

    `launch` makes what makes the workers: by default a zygote beside this process.
    """

    def __init__(self, settings: PoolSettings, launch: Callable[[ZygoteConfig], Launches] | None = None) -> None:
        self._settings = settings
        launch = launch or (lambda config: ZygoteLauncher(config, settings.python))
        self._zygotes = Zygotes(
            lambda: launch(self._config()),
            seconds=settings.zygote_seconds,
            renewed=self._replace_spares,
            failed=self._import_less_ahead,
        )
        self._ahead = LateImports()
        self._installed = settings.installed()
        self._run_folders = (
            None if settings.run_folders is None else RunFolders(settings.run_folders, settings.run_folder_bytes)
        )
        self._preparing = asyncio.Lock()
        self._beginning = 0
        self._idle: list[WorkerHandle] = []
        self._takers: deque[asyncio.Future[WorkerHandle]] = deque()
        self._memory = Memory()
        self._alive_max = _alive_max(settings, self._memory)
        self._scheduler = Scheduler(
            SchedulerLimits(_turns(settings), self._alive_max, settings.queue_max, settings.queue_seconds),
            self._memory,
            settings.bounds,
        )
        self._making: set[asyncio.Task[None]] = set()
        self._retired: list[WorkerHandle] = []
        self._ending: asyncio.TimerHandle | None = None
        self._group = f"{os.getpid()}-{next(_groups)}"
        self._outdated: weakref.WeakSet[WorkerHandle] = weakref.WeakSet()
        self._failures = 0
        self._looking = 0
        self._workers = 0
        self._layers: tuple[str, ...] = ()
        self._closed = False
        self._sessions = Sessions(
            self._take_worker,
            self._scheduler.seat,
            SessionRoom(
                settings.sessions_max,
                settings.caller_sessions_max,
                settings.tenant_sessions_max,
                settings.bounds.own,
            ),
            settings.session_idle_seconds,
        )

    async def __aenter__(self) -> Self:
        if self._run_folders is not None:
            await asyncio.to_thread(self._run_folders.prepare)
        self._refill()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def ready(self) -> None:
        """Wait for a spare. Raises `LevelMissing` or `WorkerLost` when none can be made."""
        if self._idle:
            return
        self._looking += 1
        try:
            worker = await self._take_worker()
        finally:
            self._looking -= 1
        self._put(worker)

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: TraceRecorder | None = None, rebuild: Rebuild | None = None
    ) -> Outcome:
        """Run one job and report it. Cancelling kills the run.

        The `recorder` of a run in `restricted` is given what it can be run again from. `rebuild` is asked where the
        session of the job has no worker.

        Raises `LimitRefused` above the operator's maximum, `SessionRefused`, `Busy` when it could not begin in time,
        and `LevelMissing` or `WorkerLost` when no worker can be made: in all these cases nothing of the code ran.
        """
        await self._prepare_if_due()
        if self._writable is not None:
            # All files of a worker together are bounded by its folder.
            file_size_mb = self._settings.maximum.file_size_mb
            job = replace(job, limits=replace(job.limits, file_size_mb=file_size_mb))
        self._check(job, is_recorded=recorder is not None or bool(job.trace))
        if job.isolation is Isolation.PROCESS:
            if self._ahead.add(job.code):
                self._zygotes.outdate()
            await self._notice_packages()
        if (session := job.session) is not None:
            if job.isolation is Isolation.PROCESS:
                job = self._bounded(job, self._scheduler.running + 1)
            return await self._sessions.run(session, job, host_calls, recorder, rebuild)
        async with self._scheduler.seat(job) as seat:
            if job.isolation is Isolation.PROCESS:
                await asyncio.sleep(0)  # so that those that came together are counted together
                job = self._bounded(job, self._scheduler.running)
            return await self._run_once(job, host_calls, seat, recorder)

    def has_session(self, name: str) -> bool:
        """Return whether a session of that name is alive."""
        return name in self._sessions

    async def end_session(self, name: str) -> bool:
        """End a session; return whether there was one."""
        return self._sessions.end(name)

    def close_session(self, name: str) -> bool:
        """End a session once it is idle; return whether there was one."""
        return self._sessions.end_when_idle(name)

    def sessions_of(self, caller: str) -> list[SessionState]:
        """Return the sessions that a caller began."""
        return self._sessions.of(caller)

    def stats(self) -> PoolStats:
        """Count what there is now."""
        return PoolStats(
            spares=len(self._idle),
            running=self._scheduler.running,
            resting=self._scheduler.resting,
            waiting=self._scheduler.waiting,
            sessions=len(self._sessions),
            workers=self._workers,
            zygotes=self._zygotes.started,
            layers=self._layers,
            read_only=None if self._run_folders is None else self._run_folders.problem,
        )

    async def aclose(self) -> None:
        """End every worker and the zygote, and wait until they are gone."""
        self._closed = True
        self._scheduler.close()
        self._sessions.close()
        making = list(self._making)
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)
        for taker in self._takers:
            if not taker.done():
                taker.set_exception(WorkerLost("The sandbox is closing."))
        if self._ending is not None:
            self._ending.cancel()
        self._end_retired_workers()
        while self._idle:
            self._idle.pop().end()
        await self._zygotes.aclose()
        if self._run_folders is not None:
            await self._run_folders.aclose()

    async def _run_once(self, job: Job, host_calls: HostCalls, seat: Seat, recorder: TraceRecorder | None) -> Outcome:
        for _try in range(_TRIES - 1):
            try:
                return await self._run_in(await self._take_worker(), job, host_calls, seat, recorder)
            except WorkerLost:
                # The spare had died before it took the job: nothing of the code ran, so another may.
                _LOG.info("A spare was lost before it took its job; the job goes to another.")
        return await self._run_in(await self._take_worker(), job, host_calls, seat, recorder)

    async def _run_in(
        self, worker: WorkerHandle, job: Job, host_calls: HostCalls, seat: Seat, recorder: TraceRecorder | None
    ) -> Outcome:
        try:
            return await worker.run_whole(job, host_calls, seat, recorder)
        finally:
            # The caller goes on first: to end a process and to make another takes as long as a small job and its reply.
            self._retired.append(worker)
            if self._closed:
                self._end_retired_workers()
            elif self._ending is None:
                self._ending = asyncio.get_running_loop().call_later(_ENDING_SECONDS, self._end_retired_workers)

    def _end_retired_workers(self) -> None:
        self._ending = None
        while self._retired:
            self._retired.pop().end()
        self._refill()
        if not self._closed:
            self._zygotes.renew_if_due()

    def _check(self, job: Job, *, is_recorded: bool) -> None:
        maximum = self._settings.maximum
        if job.isolation is not self._settings.isolation:
            raise LimitRefused(f"This pool runs code at the isolation {self._settings.isolation}, not {job.isolation}.")
        if is_recorded and job.isolation is not Isolation.RESTRICTED:
            raise LimitRefused(
                f"A run at the isolation {job.isolation} cannot be recorded or follow a trace. "
                "Leave out the recorder and the trace, or run it at the isolation restricted."
            )
        for name in ("timeout_seconds", "memory_mb", "pids_max", "open_files_max", "file_size_mb", "output_bytes_max"):
            asked, most = getattr(job.limits, name), getattr(maximum, name)
            if not 0 < asked <= most:
                raise LimitRefused(f"{name} is {asked}, but must be above 0 and at most {most}. Ask for less.")

    async def _take_worker(self) -> WorkerHandle:
        if self._closed:
            raise WorkerLost("The sandbox is closed.")
        while self._idle:
            worker = self._idle.pop()
            if not worker.gone and worker.unfit() is None:
                self._refill_soon()
                return worker
            worker.end()  # one that ended may be noticed here before the zygote says so
        taker: asyncio.Future[WorkerHandle] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        self._refill()
        try:
            return await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled() and taker.exception() is None:
                self._put(taker.result())
            raise

    def _put(self, worker: WorkerHandle) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(worker)
                return
        outdated = next((each for each in self._idle if each in self._outdated), None)
        if outdated is not None and worker not in self._outdated:
            self._idle.remove(outdated)
            outdated.end()
        if self._closed or len(self._idle) >= self._settings.spares:
            worker.end()
        else:
            self._idle.append(worker)

    def _refill_soon(self) -> None:
        """Leave the machine to the job that begins, while there is another spare; most jobs are over before."""
        if self._idle:
            asyncio.get_running_loop().call_later(_HEAD_START_SECONDS, self._refill)
        else:
            self._refill()

    def _refill(self) -> None:
        # Who only looks whether there is a spare gives it back, so it counts among the spares.
        wanted = sum(not taker.done() for taker in self._takers) + max(self._settings.spares - self._looking, 0)
        ready = sum(each not in self._outdated for each in self._idle)
        while not self._closed and ready + len(self._making) < wanted:
            task = asyncio.create_task(self._make())
            self._making.add(task)
            task.add_done_callback(self._made)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed(
                WorkerLost("A worker cannot be made for a fault of sealab itself; its log says why."), self._failures
            )
            _LOG.error("A worker could not be made.", exc_info=task.exception())
        # After some failures only the next call tries again: a broken machine is not kept busy with trying.
        if not task.cancelled() and (self._failures < _TRIES or any(not taker.done() for taker in self._takers)):
            self._refill()

    async def _make(self) -> None:
        if self._failures:
            await asyncio.sleep(_BACK_OFF_SECONDS[min(self._failures, len(_BACK_OFF_SECONDS) - 1)])
        earlier_failures, beginning = self._failures, self._beginning
        try:
            zygote = await self._zygotes.ready()
            run_folder = None if self._writable is None else await asyncio.to_thread(self._writable.make)
            worker = await WorkerHandle.make(
                zygote,
                self._settings.isolation,
                self._settings.maximum.output_bytes_max,
                spare=not any(not taker.done() for taker in self._takers),
                run_folder=run_folder,
            )
        except (ContainerMissing, LevelMissing, WorkerLost) as error:
            _LOG.warning("No worker could be made: %s", error)
            self._import_less_ahead()
            self._failed(error, earlier_failures)
            return
        self._failures = 0
        self._workers += 1
        if beginning != self._beginning:
            worker.end()  # its zygote was dropped meanwhile; another is made
            return
        if zygote is not self._zygotes.newest:
            self._outdated.add(worker)
        self._layers = worker.layers
        worker.on_exit(lambda: self._replace_dead_spare(worker))
        self._put(worker)

    async def _prepare_if_due(self) -> None:
        """Try again to prepare the folders, where that failed before: earlier workers see the workspace read-only."""
        if self._run_folders is None or not (self._run_folders.is_due or self._preparing.locked()):
            return
        async with self._preparing:
            if self._run_folders.is_due and await asyncio.to_thread(self._run_folders.prepare):
                await self._begin_anew()

    @property
    def _writable(self) -> RunFolders | None:
        """The folders through which workers write to the workspace; None where it is read-only for them."""
        return None if self._run_folders is None or self._run_folders.problem is not None else self._run_folders

    def _failed(self, error: ContainerMissing | LevelMissing | WorkerLost, earlier: int) -> None:
        self._failures = max(self._failures, earlier + 1)  # those that failed together failed for one reason
        if self._failures < _TRIES and isinstance(error, WorkerLost):
            return
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_exception(error)

    def _replace_dead_spare(self, worker: WorkerHandle) -> None:
        """Replace a spare that died while it waited; an earlier zygote ends with its last worker."""
        self._zygotes.end_retired()
        if worker in self._idle:
            self._idle.remove(worker)
            worker.end()
            self._refill()

    def _replace_spares(self) -> None:
        """Make spares of a new zygote; those of the earlier one serve until each is there."""
        self._outdated.update(self._idle)
        self._refill()

    def _config(self) -> ZygoteConfig:
        maximum = self._settings.maximum
        settings = self._settings
        folders = self._writable
        standing = Allowance.of(maximum, session=True, processes=processes_of(settings.isolation, maximum))
        return ZygoteConfig(
            standing,
            settings.isolation,
            settings.required_level,
            settings.workspace,
            settings.wider,
            None if settings.isolation is Isolation.CONTAINER else self._group_limits(standing),
            settings.cpus,
            self._group,
            (*settings.packages, *(("", module) for module in self._ahead.modules)),
            None if folders is None else folders.path,
            "" if folders is None else folders.trial().name,
        )

    async def _notice_packages(self) -> None:
        """Begin anew where other packages are installed: earlier workers would not find what was added."""
        installed = self._settings.installed()
        if installed == self._installed:
            return
        self._installed = installed
        self._ahead = LateImports()
        await self._begin_anew()

    async def _begin_anew(self) -> None:
        """Make all later workers from a new zygote; sessions keep the worker that they have."""
        self._beginning += 1
        for worker in self._idle:
            worker.end()
        self._idle.clear()
        await self._zygotes.drop()

    def _bounded(self, job: Job, running: int) -> Job:
        """Return a job of full Python with the threads that each pool of a library may have.

        They are a fair share of the processors among those that run, and those that wait, which will run beside it; and
        so few that several pools leave most of the job's memory and threads to its code. BLAS makes all at once, each
        with a stack, and ends the process where it cannot.
        """
        processors = _processors() if self._settings.cpus is None else max(1, int(self._settings.cpus))
        share = processors // (running + self._scheduler.waiting)
        limits = job.limits
        most = min(share, limits.memory_mb // MB_OF_A_THREAD, limits.pids_max // PROCESSES_OF_A_THREAD)
        return replace(job, threads=max(1, most))

    def _import_less_ahead(self) -> None:
        self._ahead.drop_newest()

    def _group_limits(self, standing: Allowance) -> tuple[int, int]:
        """Bound all workers together by the sum of what each may use, and by what the machine can spare."""
        workers = self._alive_max + self._settings.sessions_max + self._settings.spares
        workers += 2  # zygotes, one of which takes over from the other
        memory_bytes = workers * (standing.memory_bytes + WORKER_BYTES)
        # A worker of full Python has an init of its own; the spawning of one overlaps with the end of another.
        processes = 2 * workers * (standing.processes + 2)
        return min(memory_bytes, int(self._memory.limit_bytes() * MACHINE_SHARE_MAX)), min(processes, _PROCESSES_MAX)


def _turns(settings: PoolSettings) -> int:
    """Return how many runs compute at once: no more than keep the processors busy, since each one more delays all."""
    if settings.isolation is Isolation.CONTAINER:  # where it is not seen from outside what waits
        return settings.workers_max
    return min(settings.workers_max, _processors() + 1)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _alive_max(settings: PoolSettings, memory: Memory) -> int:
    """Return how many runs may be alive at once: by memory and by descriptors, and as many as may compute."""
    bytes_of_one = _ALIVE_BYTES.get(settings.isolation)
    if bytes_of_one is None:
        return settings.workers_max
    try:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    except OSError:
        return settings.workers_max  # a machine that refuses even that is refused when a worker is made
    by_descriptors = ALIVE_MAX if descriptors == resource.RLIM_INFINITY else descriptors - _OTHER_DESCRIPTORS
    return max(
        settings.workers_max,
        min(
            ALIVE_MAX,
            int(memory.limit_bytes() * MACHINE_SHARE_MAX) // bytes_of_one,
            by_descriptors // _ALIVE_DESCRIPTORS,
        ),
    )
