"""The host's end of one worker: sends it a job, answers its calls, keeps its clock, and says how it ended."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache, partial

from ..errors import FrameError, HostCallError, LimitRefused, WorkerLost
from ..job import Failure, HostCalls, Isolation, Job, Json, Outcome, Start, Status, TraceRecorder
from ..wire import output
from ..wire.bounded_json import is_light
from ..wire.frames import (
    DONE_START,
    EXIT_WITHOUT_REPORT,
    SMALL_BYTES_MAX,
    TRACE_BYTES_MAX,
    Call,
    ChildFrame,
    Frames,
    Ready,
    TracePiece,
    child_frame,
    encode,
    encode_job,
)
from ..wire.output import OutputBuffer
from ..wire.zygote_packets import ProcessExit
from .cpu_meter import note_cpu
from .last_words import WORDS_BYTES_MAX, last_words, with_last_words
from .run_clock import Clock
from .run_folders import FolderWatch, RunFolder
from .scheduler import Seat
from .worker_process import Launches, WorkerProcess

CALLS_AT_ONCE_MAX = 16
"""Host calls of one worker that are answered at the same time; more wait unread in the channel.

Those that only wait (`Waits`) do not count."""

_READY_SECONDS = 10.0
_EXIT_SECONDS = 2.0
_EXIT_WAIT_SECONDS = 0.25
_LEAVING_SECONDS = 30.0
"""How long a worker may take to end or to stop before its files are given up: on a busy machine that may be seconds."""
_LOOK_SECONDS = (0.001, 0.05)
_WRITING = frozenset({"write_file", "delete_file", "keep"})
_READ_BYTES = 1 << 16
_OF_MEMORY = frozenset({-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, EXIT_WITHOUT_REPORT})
"""How a process may end that has no memory left."""
_ASKED_TOO_MUCH = re.compile(r"\bmemory allocation of (\d{1,20}) bytes failed\b")
"""What Rust's libraries, polars for one, write before they end a process that has no memory left (std::alloc)."""
_END_CHARS = 2_000
_OUT_OF_TIME = "The run's time was over before this answer arrived."
_LOG = logging.getLogger(__name__)


class Stop(Enum):
    """For what a worker is stopped; it goes on when it is stopped for nothing more."""

    TURN = auto()
    LOOK = auto()
    FILES = auto()
    IDLE = auto()


_LARGE = ThreadPoolExecutor(max_workers=2, thread_name_prefix="frames")
"""Where large frames are read and written, in steps: two at once take the loop no more than some milliseconds."""


class WorkerHandle:
    """One confined process that waits for a job. Made by `make`; its owner must `end` it."""

    def __init__(
        self,
        forked: WorkerProcess,
        channel: socket.socket,
        shared: OutputBuffer,
        isolation: Isolation,
        run_folder: RunFolder | None = None,
    ) -> None:
        self._forked = forked
        self._run_folder = run_folder
        self._watch: FolderWatch | None = None
        self._stopped_for: set[Stop] = set()
        self._excess: str | None = None
        self._channel = channel
        self._output = shared
        self._isolation = isolation
        self._frames = Frames()
        self._sending = asyncio.Lock()
        self._answering: set[asyncio.Task[None]] = set()
        self._sends: set[asyncio.Task[None]] = set()
        self._aside = 0
        self._slot: asyncio.Future[None] | None = None
        self._calls = 0
        self._clock: Clock | None = None
        self._broken_off = False
        self._programs = 0
        self._killed = False
        self._at_work = 0
        self._to_end = False
        self._ended = False
        self.layers: tuple[str, ...] = ()
        forked.exit.add_done_callback(lambda _exit: self._open_slot())

    @classmethod
    async def make(
        cls,
        launcher: Launches,
        isolation: Isolation,
        output_bytes: int,
        *,
        spare: bool = True,
        run_folder: RunFolder | None = None,
    ) -> WorkerHandle:
        """Fork a worker and wait until it is confined; it owns its `run_folder`. Raises `WorkerLost`."""
        ours, theirs, output_fd = _ends(output_bytes)
        shared: OutputBuffer | None = None
        worker: WorkerHandle | None = None
        try:
            with theirs:
                name = "" if run_folder is None else run_folder.name
                forked = await launcher.fork(theirs, output_fd, spare=spare, run_folder=name)
            shared = OutputBuffer(output_fd)
            worker = cls(forked, ours, shared, isolation, run_folder)
            async with asyncio.timeout(_READY_SECONDS):
                frame = _first_frame(await worker._next_body())
        except BaseException as error:
            if shared is None:
                os.close(output_fd)
            if worker is None:
                ours.close()
                if run_folder is not None:
                    run_folder.remove_soon()
            else:
                worker.end()
            if isinstance(error, TimeoutError | FrameError | EOFError):
                raise WorkerLost("A worker ended or stopped before it was confined.") from None
            raise
        if not isinstance(frame, Ready):
            worker.end()
            raise WorkerLost("A worker spoke before it was confined, and was killed.")
        worker.layers = frame.layers
        return worker

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._forked.pid

    @property
    def gone(self) -> bool:
        """Whether it can take no more jobs."""
        return self._killed or self._ended or self._forked.exit.done()

    def unfit(self) -> str | None:
        """Return why it cannot be given a job, if it cannot: its channel has ended, or has a word that was not due."""
        spoke = "The worker spoke before it was asked, and was killed."
        if self._frames.pending:
            return spoke
        try:
            return spoke if self._channel.recv(1, socket.MSG_PEEK) else "The worker ended before it had a job."
        except BlockingIOError:
            return None
        except OSError as error:
            return f"The worker's channel cannot be read: {error.strerror}."

    def on_exit(self, notify: Callable[[], None]) -> None:
        """Call `notify` when the process has ended."""
        self._forked.exit.add_done_callback(lambda _exit: notify())

    def kill(self) -> None:
        """End the process now; its channel then ends for its reader."""
        self._killed = True
        if not self._ended:
            self._forked.kill()
            with suppress(OSError):
                self._channel.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """End the process and give back everything that belonged to it; of one at work, once its run has noticed."""
        if self._ended:
            return
        if self._at_work:
            self._to_end = True
            self._give_up()
            return
        self._ended = True
        if self._clock is not None:
            self._clock.stop()  # its thread must not signal a descriptor that may soon be another's
        self._drop_calls()
        for task in self._sends:
            task.cancel()
        # A cancelled send takes its descriptor off the loop a moment later, when the number may be another's. By its
        # number, since a loop describes a socket that it does not know in words, which asks the kernel for addresses.
        loop = asyncio.get_running_loop()
        descriptor = self._channel.fileno()
        loop.remove_reader(descriptor)
        loop.remove_writer(descriptor)
        self._forked.close()
        if self._watch is not None:
            self._watch.stop()
        if self._run_folder is not None:
            remove = self._run_folder.remove_soon
            self._forked.exit.add_done_callback(lambda _exit: remove())
        self._channel.close()
        self._output.close()

    def computes(self) -> bool | None:
        """Return whether it computes at the moment, or None where that cannot be seen."""
        return None if Stop.LOOK in self._stopped_for else self._forked.computes()

    def cpu_seconds(self) -> float | None:
        """Return its CPU time so far, or None where the machine does not say."""
        cpu_ms = self._forked.cpu_ms()
        return None if cpu_ms is None else cpu_ms / 1000

    def waits_for_others(self) -> bool:
        """Return whether it has asked for something that others have to answer, and for nothing else."""
        return 0 < len(self._answering) <= self._aside

    def suspend(self, why: Stop = Stop.TURN) -> bool:
        """Stop it until `resume` for that reason; return False where that cannot be done."""
        if self._ended or not self._forked.suspend():
            return False
        self._stopped_for.add(why)
        return True

    def resume(self, why: Stop = Stop.TURN) -> None:
        """Let it compute again, unless it is stopped for another reason."""
        if why in self._stopped_for:
            self._stopped_for.remove(why)
            if not self._ended and not self._stopped_for:
                self._forked.resume()

    @asynccontextmanager
    async def _stopped(self, why: Stop) -> AsyncIterator[int | None]:
        """Stop it, and give the process that runs the code. Raises TimeoutError where it does not stop in time."""
        try:
            if not self.suspend(why) or not await _until(self._forked.has_stopped):
                raise TimeoutError("it does not stop")
            yield self._forked.code_pid
        finally:
            self.resume(why)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Put off `end` for as long as something of the worker is needed."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            if self._to_end:
                self.end()

    async def run_whole(
        self, job: Job, host_calls: HostCalls, seat: Seat, recorder: TraceRecorder | None = None
    ) -> Outcome:
        """Run one job as `run`, and have what it wrote in the workspace taken home, or kept where it did not end well.

        So it is where the run is cancelled: then the files are looked after before that is raised.
        """
        with self._working():
            try:
                outcome = await self.run(job, host_calls, seat, recorder)
            except asyncio.CancelledError:
                await self._with_files(Outcome(Status.CANCELLED, isolation=self._isolation, layers=self.layers), job)
                raise
            return await self._with_files(outcome, job)

    async def run(self, job: Job, host_calls: HostCalls, seat: Seat, recorder: TraceRecorder | None = None) -> Outcome:
        """Run one job here and report it; the worker is kept only after a report of its own. Its files are left alone.

        The `recorder` is given what the job can be run again from.

        Raises `WorkerLost` if the worker was gone before it began, and `LimitRefused` if the job is too large to send:
        then nothing of the code ran. Cancelling kills the worker. Where it is ended meanwhile, the run has crashed.
        """
        start = job.start or Start.now()
        job = job if job.start is start else replace(job, start=start)
        frame = _job_frame(job, self._isolation, records=recorder is not None)
        if (problem := self.unfit()) is not None:
            self.kill()
            raise WorkerLost(problem)
        await self._look_after_files()
        self.resume(Stop.IDLE)
        self._output.hand_over()
        self._forked.begin()
        cpu_before = self._forked.cpu_ms()
        calls_before = self._calls
        self._broken_off = False
        self._programs += 1
        clock = self._clock = self._clock_of(job)
        job.waits.aside, job.waits.paused = self._step_aside, clock.pause
        seat.begin(self, clock)
        if recorder is not None:
            recorder.started(start, self._programs - 1)
        self._at_work += 1
        try:
            await self._send_job(frame)
            done = await self._converse(host_calls, clock, seat, recorder, TRACE_BYTES_MAX - len(job.trace))
            if self._broken_off:
                done = _timed_out(done, job)
            outcome = await self._completed(done, clock, seat, cpu_before)
            note_cpu(outcome.cpu_ms, outcome.duration_ms)
        except asyncio.CancelledError:
            note_cpu(_difference(self._forked.cpu_ms(), cpu_before), clock.elapsed_ms)
            self.kill()
            raise
        except (EOFError, FrameError) as error:
            if isinstance(error, EOFError) and not clock.expired:
                # A process whose channel has ended ends by itself, so that it is seen how: killing it would hide that.
                await self._exit_within(_EXIT_WAIT_SECONDS)
            self.kill()
            began = self._calls > calls_before or not self._output.untouched
            outcome = await self._outcome_of_loss(error, job, clock, seat, began=began)
            note_cpu(_difference(outcome.cpu_ms, cpu_before), outcome.duration_ms)
        finally:
            clock.stop()
            seat.leave()
            job.waits.aside = job.waits.paused = nullcontext
            self._drop_calls()
            self._rest(job)
        return outcome

    def _rest(self, job: Job) -> None:
        """End it where that was put off; stop one of a session, whose threads would go on at nobody's expense."""
        self._at_work -= 1
        if self._to_end:
            self.end()
        elif job.session is not None and self._isolation is not Isolation.RESTRICTED and not self.gone:
            self.suspend(Stop.IDLE)

    async def _look_after_files(self) -> None:
        """Show a session the workspace as it is now, and watch what is written. Raises `WorkerLost`."""
        if self._run_folder is None:
            return
        if self._programs:
            await self._forked.see_workspace_anew()
        if self._watch is None:
            self._watch = FolderWatch(self._run_folder, partial(self._stopped, Stop.LOOK), self._end_for_excess)

    async def _with_files(self, outcome: Outcome, job: Job) -> Outcome:
        """Copy what a run wrote to the workspace, and return the outcome that says so.

        The worker's processes are gone by then, or stopped in a session that goes on. They stay so until it is over,
        though the run be cancelled meanwhile.
        """
        folder = self._run_folder
        if folder is None or job.takes_home is None or not folder.is_changed():
            return outcome
        goes_on = job.session is not None and not self.gone and not self._to_end
        async with AsyncExitStack() as stack:
            try:
                pid = await stack.enter_async_context(self._stopped(Stop.FILES) if goes_on else self._ended_for_good())
                written = await asyncio.to_thread(folder.written, pid)
            except OSError:  # as TimeoutError is
                self.kill()
                return _with_files_lost(outcome)
            taking = asyncio.ensure_future(job.takes_home(outcome, written))
            try:
                return await asyncio.shield(taking)
            except asyncio.CancelledError:
                await asyncio.wait([taking])
                raise

    @asynccontextmanager
    async def _ended_for_good(self) -> AsyncIterator[None]:
        """End it, and wait until no process of it runs any more. Raises TimeoutError where that is not so in time."""
        self.kill()
        await self._exit_within(_LEAVING_SECONDS)
        # Where its zygote ended, nobody said how it did, nor that it has.
        if not await _until(self._forked.is_gone):
            raise TimeoutError("it does not end")
        yield

    def _end_for_excess(self, excess: str) -> None:
        self._excess = excess
        self.kill()

    def _clock_of(self, job: Job) -> Clock:
        return Clock(
            job.limits.timeout_seconds,
            self._forked.kill_from_thread,
            self._give_up,
            waits=None if job.session is None else self._only_waits,
            break_off=self._break_off,
        )

    async def _completed(self, outcome: Outcome, clock: Clock, seat: Seat, cpu_before: float | None) -> Outcome:
        """Return the worker's report with what the host knows itself: its printed text, times and layers."""
        return replace(
            outcome,
            output=await self._printed(),
            stderr=self._output.read_errors(),
            duration_ms=clock.elapsed_ms,
            queued_ms=seat.queued_ms,
            cpu_ms=_difference(self._forked.cpu_ms(), cpu_before),
            isolation=self._isolation,
            layers=self.layers,
        )

    async def _outcome_of_loss(
        self, error: EOFError | FrameError, job: Job, clock: Clock, seat: Seat, *, began: bool
    ) -> Outcome:
        """Return what is known of a run whose worker gave no valid report. Raises `WorkerLost` if it never began.

        What is known is what the host itself did, how the process ended, and what it wrote.
        """
        if isinstance(error, EOFError) and not began and not clock.expired:
            raise WorkerLost("The worker ended before it began with the job.") from None
        duration_ms = clock.elapsed_ms
        ended = await self._exit_within(_EXIT_SECONDS) or ProcessExit()
        status, failure = _cause(job, clock, error, ended) if self._excess is None else _ended_for(self._excess)
        printed = await self._printed()
        after = self._output.read_after(WORDS_BYTES_MAX)
        if status is Status.CRASHED and (asked := _ASKED_TOO_MUCH.search(printed[-_END_CHARS:] + after)):
            status, failure = Status.MEMORY, _used_up(job, f" It asked for {asked[1]} bytes more.")
        elif status is Status.CRASHED and isinstance(error, EOFError):
            filename = "<code>" if self._programs == 1 else f"<call {self._programs}>"
            failure = with_last_words(failure, last_words(after, filename, job.code), filename, job.code)
        return Outcome(
            status,
            output=printed,
            stderr=self._output.read_errors(),
            error=failure,
            duration_ms=duration_ms,
            queued_ms=seat.queued_ms,
            cpu_ms=ended.cpu_ms,
            isolation=self._isolation,
            layers=self.layers,
        )

    async def _send_job(self, frame: bytes) -> None:
        try:
            await self._send(frame)
        except OSError:
            # The worker acts on whole frames only, so it cannot have begun.
            raise WorkerLost("The worker ended before it had the job.") from None

    async def _send(self, frame: bytes) -> None:
        async with self._sending:
            await asyncio.get_running_loop().sock_sendall(self._channel, frame)

    def _drop_calls(self) -> None:
        for task in self._answering:
            if not task.cancelling():  # a second time would break off what notifies an upstream server of the first
                task.cancel()

    async def _converse(
        self, host_calls: HostCalls, clock: Clock, seat: Seat, recorder: TraceRecorder | None, trace_bytes: int
    ) -> Outcome:
        calls_before = self._calls
        while True:
            frame = await self._next_frame(clock)
            if isinstance(frame, Outcome):
                clock.stop()
            if clock.expired and not self._broken_off:
                raise EOFError
            match frame:
                case Outcome():
                    if frame.refusal is not None and self._calls > calls_before:
                        # If this were trusted, its code would run a second time elsewhere.
                        raise FrameError("A worker refused code that it had begun.")
                    return frame
                case Call():
                    await self._free_slot(clock)
                    self._calls += 1
                    task = asyncio.create_task(self._answer(self._calls, frame, host_calls, seat))
                    self._answering.add(task)
                    task.add_done_callback(self._answered)
                case TracePiece(piece):
                    trace_bytes -= len(piece)
                    if recorder is None or trace_bytes < 0:
                        raise FrameError("A worker sent a trace that was not asked for, or is too large.")
                    recorder.recorded(piece)
                case _:
                    raise FrameError("A worker was ready twice.")

    async def _next_frame(self, clock: Clock) -> ChildFrame:
        body = await self._next_body()
        if len(body) <= SMALL_BYTES_MAX:
            return child_frame(body)
        if body.startswith(DONE_START):
            clock.stop()  # the code has ended, or lies and is killed; either way its time is over
        return await asyncio.get_running_loop().run_in_executor(_LARGE, child_frame, body)

    async def _next_body(self) -> bytes:
        loop = asyncio.get_running_loop()
        waited = False
        while (body := self._frames.next()) is None:
            if waited:
                await asyncio.sleep(0)  # a socket that is never empty must not keep the loop to itself
            waited = True
            try:
                data = await loop.sock_recv(self._channel, _READ_BYTES)
            except OSError:
                raise EOFError from None
            if not data:
                raise EOFError
            self._frames.feed(data)
        return body

    async def _printed(self) -> str:
        if self._output.length <= SMALL_BYTES_MAX:
            return self._output.read()
        return await asyncio.get_running_loop().run_in_executor(_LARGE, self._output.read)

    async def _free_slot(self, clock: Clock) -> None:
        """Wait until one more call may be answered; meanwhile nothing is read, so a flood waits in the child."""
        while len(self._answering) - self._aside >= CALLS_AT_ONCE_MAX:
            self._slot = asyncio.get_running_loop().create_future()
            await self._slot
            if clock.expired:
                raise EOFError
            if self._forked.exit.done():
                self._drop_calls()  # nothing reads their answers any more, but a report may still lie in the channel

    @contextmanager
    def _step_aside(self) -> Iterator[None]:
        self._aside += 1
        self._open_slot()
        try:
            yield
        finally:
            self._aside -= 1

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        self._open_slot()

    def _open_slot(self) -> None:
        if self._slot is not None and not self._slot.done():
            self._slot.set_result(None)

    def _give_up(self) -> None:
        self.kill()
        self._open_slot()

    def _only_waits(self) -> bool:
        """Return whether it waits for an upstream server or a user and computes nothing; for any thread."""
        return self.waits_for_others() and not self.computes()

    def _break_off(self) -> None:
        """Fail every call from now on, so that the code can end and a session keep what it has."""
        self._broken_off = True
        self._drop_calls()

    async def _answer(self, number: int, call: Call, host_calls: HostCalls, seat: Seat) -> None:
        answer: dict[str, Json] = {"t": "answer", "id": number}
        try:
            answer["value"] = await (_too_late if self._broken_off else host_calls)(call.name, call.arguments)
            frame = await _encoded(answer)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._broken_off or task is None:
                raise
            task.uncancel()
            frame = _error_answer(number, "TimeoutError", _OUT_OF_TIME)
        except HostCallError as error:
            frame = _error_answer(number, error.type, error.message, error.details)
        except FrameError as error:
            message = f"The answer of {call.name} cannot be passed on: {error} Ask for less at once."
            frame = _error_answer(number, "ValueError", message)
        except Exception:  # noqa: BLE001 - what goes wrong in the host may hold what the code must not know
            _LOG.exception("A host call failed: %s", call.name)
            frame = _error_answer(number, "RuntimeError", f"{call.name} failed in the server; its log says why.")
        if self._run_folder is not None and _writes_to_workspace(call):
            with suppress(WorkerLost):
                await self._forked.see_workspace_anew()
        await seat.wait_to_resume()
        # A frame that has begun is sent to its end, even when the run ends meanwhile: a session reads on after it.
        send = asyncio.create_task(self._send(frame))
        self._sends.add(send)
        send.add_done_callback(self._sent)
        await asyncio.wait([send])

    def _sent(self, send: asyncio.Task[None]) -> None:
        self._sends.discard(send)
        if not send.cancelled():
            send.exception()  # a channel that has ended is noticed by its reader

    async def _exit_within(self, seconds: float) -> ProcessExit | None:
        """Wait until the process has ended, and return how; None where it has not by then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._forked.exit)
        return None


def _ends(output_bytes: int) -> tuple[socket.socket, socket.socket, int]:
    """Return both ends of a channel and the descriptor of an output. Raises `WorkerLost`."""
    try:
        ours, theirs = socket.socketpair()
        try:
            output_fd = output.create(output_bytes)
        except OSError:
            ours.close()
            theirs.close()
            raise
    except OSError as error:
        raise WorkerLost(f"A worker cannot be made: {error.strerror}.") from None
    ours.setblocking(False)
    return ours, theirs, output_fd


@lru_cache(maxsize=16)  # all workers of a zygote say the same
def _first_frame(body: bytes) -> ChildFrame:
    return child_frame(body)


async def _until(is_so: Callable[[], bool]) -> bool:
    """Wait until something is so that nobody tells, for `_LEAVING_SECONDS` at most; return whether it is.

    To look takes time of the event loop, where there are many threads: so the pauses grow.
    """
    shortest, longest = _LOOK_SECONDS
    until, pause = asyncio.get_running_loop().time() + _LEAVING_SECONDS, shortest
    while not is_so():
        if asyncio.get_running_loop().time() > until:
            return False
        await asyncio.sleep(pause)
        pause = min(2 * pause, longest)
    return True


def _writes_to_workspace(call: Call) -> bool:
    """Return whether the host changes the workspace for a call: code may have looked for the file before."""
    given = call.arguments.get("arguments", call.arguments)
    return call.name in _WRITING or (isinstance(given, Mapping) and "save_to" in given)


async def _encoded(answer: Mapping[str, Json]) -> bytes:
    if is_light(answer):
        return encode(answer)
    return await asyncio.get_running_loop().run_in_executor(_LARGE, partial(encode, answer, in_steps=True))


def _job_frame(job: Job, isolation: Isolation, *, records: bool) -> bytes:
    try:
        return encode_job(job, isolation, records=records)
    except FrameError as error:
        raise LimitRefused(
            f"The code and its context_vars cannot be passed on: {error} Send less, and null for NaN."
        ) from None


def _cause(job: Job, clock: Clock, error: EOFError | FrameError, ended: ProcessExit) -> tuple[Status, Failure]:
    limits = job.limits
    if clock.expired:
        message = f"The code ran longer than its {limits.timeout_seconds:g} seconds and was stopped."
        return Status.TIMEOUT, Failure(
            "TimeoutError", message, hint="Do less at once, or give a longer timeout_seconds."
        )
    if isinstance(error, FrameError):
        _LOG.warning("A worker was killed: %s", error)
        message = "The process that ran the code broke the protocol and was killed."
        return Status.CRASHED, Failure("ProcessCrashed", message)
    if (
        ended.status in _OF_MEMORY
        and ended.memory_peak_mb is not None
        and ended.memory_peak_mb >= limits.memory_mb * 0.9
    ):
        return Status.MEMORY, _used_up(job, f" At its peak {ended.memory_peak_mb:.0f} MB were in use.")
    if ended.status is None:
        how = "ended together with the sandbox"
    elif ended.status < 0:
        how = f"was ended by {signal.Signals(-ended.status).name}"
    else:
        how = f"ended by itself with exit status {ended.status}"
    message = f"The process that ran the code {how}. How far the code came is not known."
    return Status.CRASHED, Failure("ProcessCrashed", message)


def _ended_for(excess: str) -> tuple[Status, Failure]:
    message = f"The code was stopped, since {excess}."
    return Status.ERROR, Failure(
        "OSError", message, hint="Write less, and remove temporary files that are no longer needed."
    )


def _with_files_lost(outcome: Outcome) -> Outcome:
    message = "Files that the code wrote in the workspace are lost: its process did not end in time, and was killed."
    if outcome.status is not Status.OK:
        return replace(outcome, notes={**outcome.notes, "files": message})
    return replace(outcome, status=Status.ERROR, error=Failure("OSError", message, hint="Run it again."))


def _used_up(job: Job, more: str) -> Failure:
    message = f"The code used up its {job.limits.memory_mb} MB of memory and its process was ended.{more}"
    hint = "Hold less at once, read in parts or only the columns that are needed, or ask for more memory."
    return Failure("MemoryError", message, hint=hint)


async def _too_late(_name: str, _arguments: Mapping[str, Json]) -> Json:
    raise HostCallError(_OUT_OF_TIME, type="TimeoutError")


def _timed_out(done: Outcome, job: Job) -> Outcome:
    """Return the report of a run that was broken off while it waited: whatever the code made of that, it timed out."""
    where = done.error if done.status is Status.ERROR else None
    failure = Failure(
        "TimeoutError",
        f"The code had its {job.limits.timeout_seconds:g} seconds while it waited for an answer, and was stopped.",
        line=None if where is None else where.line,
        hint="The variables of its session are kept. Call fewer tools at once, or give a longer timeout_seconds.",
        traceback=None if where is None else where.traceback,
    )
    return replace(done, status=Status.TIMEOUT, result=None, error=failure, refusal=None)


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


def _error_answer(number: int, kind: str, message: str, details: Mapping[str, Json] | None = None) -> bytes:
    error: dict[str, Json] = {"type": kind, "message": message}
    return encode({"t": "answer", "id": number, "error": error if details is None else {**error, "details": details}})
