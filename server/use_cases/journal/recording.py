"""Records one run: what it began with, the trace that its worker sends, each call with its answer, and its end.

It stands between the worker and everything else: what it records is what the code asked, and what the code was given.
So a journal holds real values wherever the code saw some.

A call that changes nothing is recorded once it is answered. A call that does is recorded before, see `HostCall`, and
then all that came before it is written too: a run that is taken up again repeats nothing that it could have built on.

- What leaves the machine, such as a call of a tool that writes, is written durably first, or is not sent at all.
- A change of files or sessions here is written so that it survives a crash of the server; a crash of the machine may
  take it along, as the change itself. If it cannot be written, the change is made and the journal says that it has a
  gap. What is `repeatable` waits only if an answer or a piece of the trace came since the last commit.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Failure, Isolation, Job, Json, Outcome, Start, Status, TraceRecorder, Waits
from ....sandbox.wire.bounded_json import is_light, write, write_in_steps
from ....skills_db.journal.records import Record, RecordKind, RunEnd
from ...base.host_call import AnnouncedChange, Answer, Answers, HostCall
from ...base.host_work import Kind, in_thread
from ...base.identity import Identity, identity_json
from .replies import error_reply
from .writer import PASSING, WRITE_BYTES, JournalWriter, WrittenRun, failure_text

if TYPE_CHECKING:
    from ....skills_db.journal.records import RunBegin

STORED_SECONDS = 10.0
"""How long a call waits for its intent to be written, where somebody waits for its run."""
SETTLE_SECONDS = 120.0
"""How long the calls at work may take of a run that is to wait for its user; then they are broken off."""
_RETRY_SECONDS = 0.25
OUTPUT_KEPT_CHARS = 1_000_000
"""Characters of an output that a journal keeps."""
WAITING_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of one run that may wait to be written; then its next call waits for them."""

Called = tuple[str, bool]
"""A tool that was called, and whether that went well."""
Said = Mapping[str, Sequence[str]]
"""What a user said of tools, by kind."""
BeginJournal = Callable[[Start | None, int | None, str | None], "RunBegin"]
"""Makes what a run begins with: its start, which program of its session it is, and the run before it there."""
After = Callable[[int], str | None]
"""Notes that a run is that program of its session, and returns the run before it there."""


class RunRecording:
    """What a run that goes on reports to. Of one that is not journaled nothing is kept."""

    is_left_open = False
    """Whether another process goes on with the run."""

    def recorder(self, isolation: Isolation) -> TraceRecorder | None:  # noqa: ARG002 - see `RunJournal`
        """Return what takes the trace of the run, where its isolation has one."""
        return None

    def around(self, answer: Answers) -> Answers:
        """Return what answers host calls as `answer` does, and records them."""
        return answer

    async def ended(self, _outcome: Outcome, _called: Iterable[Called]) -> str | None:
        """Record how the run ended; return why its journal is incomplete, if that is known already."""
        return None

    def broken_off(self, status: str, isolation: str, called: Iterable[Called]) -> None:
        """Record that the run has no outcome: it was cancelled, or failed in the server."""

    async def stored(self) -> str | None:
        """Wait until all of it is written; return why it is not, or is incomplete."""
        return None

    def notes(self, said: Callable[[], Said]) -> None:
        """Record beside the calls what a user said, as `said` gives it: what goes on with the run needs it."""

    def leave_open(self) -> bool:
        """Keep it open when the run is broken off; return whether another process can go on with the run."""
        return False


class RunJournal(RunRecording):
    """The journal of one run while it runs."""

    def __init__(
        self,
        writer: JournalWriter,
        run: WrittenRun,
        begin: BeginJournal | None,
        after: After,
        *,
        begin_bytes: int = 0,
        is_patient: bool = False,
        waits: Waits | None = None,
    ) -> None:
        """Make one; `begin` makes what it begins with, of so many bytes, when that is written.

        Without `begin` the run goes on that is written so far. The calls of one that `is_patient` wait for a database
        that cannot be written, however long that takes. `waits` are those of the run's calls.
        """
        self._after = after
        self._program: int | None = None
        self._writer = writer
        self._run = run
        self._begin = begin
        self._begin_bytes = begin_bytes
        self._is_patient = is_patient
        self._began = time.monotonic()
        self._calls = 0
        self.unanswered: dict[int, _Call] = {}
        """The calls that are at work, or were cut with the run, by their numbers."""
        self.is_left_open = False
        self._waits = Waits() if waits is None else waits
        self._waits.asking = self._asking
        self._at_work = 0
        """How many calls are being answered, but for those that wait for a user."""
        self._moved = asyncio.Event()
        self._is_settling = False
        self._said: Callable[[], Said] = dict
        self._said_before: Said = {}
        self._can_build_on_more = False
        """Whether the code has met anything since the last commit that what it does next may depend on."""

    def recorder(self, isolation: Isolation) -> TraceRecorder | None:
        """Return what takes the trace of the run, where its isolation has one."""
        return self if isolation is Isolation.RESTRICTED else None

    def around(self, answer: Answers) -> Answers:
        """Return what answers host calls as `answer` does, and records them."""

        async def recorded(call: HostCall) -> Answer:
            self._calls += 1
            return await self.answered(self._calls, call, answer)

        return recorded

    async def answered(self, number: int, asked: HostCall, answer: Answers, *, is_known: bool = False) -> Answer:
        """Answer the call of this number as `answer` does, and record it; of one that `is_known`, the answer alone."""
        if self._is_settling:
            with self._waits.for_server():
                await asyncio.Event().wait()  # the run is about to be broken off, and makes this call when it goes on
        call = _Call(self, number, asked, is_known=is_known)
        self.unanswered[number] = call
        self._at_work += 1
        try:
            if self._run.waiting_bytes > WAITING_BYTES_MAX:
                await self._caught_up()
            try:
                given = await answer(replace(asked, write_down=call.before))
            except HostCallError as error:
                await call.failed(error)
                raise
            await call.answered({"answer": given.value, **({"label": dict(given.label)} if given.label else {})})
        finally:
            self._leave()
        return given

    def notes(self, said: Callable[[], Said]) -> None:
        """Record beside the calls what a user said, as `said` tells it: what goes on with the run needs it."""
        self._said = said

    def newly_said(self) -> dict[str, Json]:
        """Return what a user said, where that is more than is recorded."""
        said = self._said()
        if said == self._said_before:
            return {}
        before, self._said_before = self._said_before, said
        new = {name: sorted({*texts}.difference(before.get(name, ()))) for name, texts in said.items()}
        return {"said": {name: texts for name, texts in new.items() if texts}}

    async def settled(self) -> None:
        """Begin no further call, and wait until none is at work, so that the run can be broken off without harm."""
        self._is_settling = True
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                while self._at_work:
                    self._moved.clear()
                    await self._moved.wait()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        self._leave()
        try:
            yield
        finally:
            self._at_work += 1

    def _leave(self) -> None:
        self._at_work -= 1
        self._moved.set()

    async def stored(self) -> str | None:
        """Wait until all of it is written; return why it is not, or is incomplete."""
        try:
            await self._writer.stored(durable=False)
        except Exception as error:  # noqa: BLE001 - whatever writing raised
            return self._run.lost or failure_text(error)
        return self._run.lost

    def started(self, start: Start, program: int) -> None:
        """Take what the run begins with that no other has, and which program of its session it is."""
        if self._program is not None and self._program != program:
            self.lose("The worker of its session was lost as it began.")
        self._program = program
        self._ensure_begun(start, program, self._after(program))

    def recorded(self, piece: bytes) -> None:
        """Take a piece of the trace."""
        self._can_build_on_more = True
        self._add(partial(_record, _TRACE, piece), len(piece))

    async def ended(self, outcome: Outcome, called: Iterable[Called]) -> str | None:
        """Record how the run ended; return why its journal is incomplete, if that is known already."""
        if outcome.status is Status.BUSY:
            return None  # nothing ran
        self._ensure_begun()
        called = [*called]
        try:
            end_fields = await _end_fields(outcome)
        except asyncio.CancelledError:
            self.broken_off(Status.CANCELLED.value, outcome.isolation.value, called)
            raise
        size = size_of(outcome.result) + len(end_fields["output"]) + len(end_fields["stderr"])
        record = partial(_end_record, cast("Json", end_fields))
        how = outcome.status.value, outcome.isolation.value, called, time.time()
        reason = None if outcome.error is None else _reason(outcome.error)
        end = partial(self._end, *how, times=self._times(outcome), reason=reason)
        self._writer.add(self._run, record=record, end=end, count=size)
        return self._run.lost

    def broken_off(self, status: str, isolation: str, called: Iterable[Called]) -> None:
        """Record that the run has no outcome: it was cancelled, or failed in the server."""
        if self._begin is None and not self.is_left_open:
            how = status, isolation, [*called], time.time()
            self._writer.add(self._run, end=partial(self._end, *how, times=self._times(None)))

    def hurry(self) -> None:
        """Start writing what is recorded so far; returns before it is written."""
        self._writer.hurry()

    def leave_open(self) -> bool:
        """Leave the journal open when the run is broken off, for another process to go on; always True."""
        self.is_left_open = True
        self._writer.let_go(self._run)
        return True

    def lose(self, why: str) -> None:
        """Note that something could not be recorded, so that the run cannot be replayed."""
        self._run.lost = self._run.lost or why

    async def before(self, call: _Call, change: AnnouncedChange) -> None:
        """Write down a call that is about to change something. Raises `HostCallError` where it must not be made."""
        intent = await call.intended(change)
        if change.repeatable and not change.leaves and not self._can_build_on_more:
            return
        try:
            with self._waits.for_server():
                async with asyncio.timeout(None if self._is_patient else STORED_SECONDS):
                    await self._stored(durable=change.leaves)
            if self._run.lost is None:
                self._can_build_on_more = False
                return
            why = self._run.lost
        except asyncio.CancelledError:
            intent.is_withdrawn = True  # it is never made: a resumed run must not report that it may have been
            raise
        except TimeoutError:
            why = f"The database took longer than {STORED_SECONDS:g} seconds."
        except Exception as error:  # noqa: BLE001 - whatever writing raised, nothing was written
            why = failure_text(error)
        if change.leaves:
            raise HostCallError(
                f"The call was not sent, since the journal of this run cannot be written: {why}", type="RuntimeError"
            )
        self.lose(why)

    @property
    def elapsed_ms(self) -> float:
        """How long ago the run was begun."""
        return round((time.monotonic() - self._began) * 1000, 3)

    def add_call(self, record: CallRecord, *, answered: bool) -> None:
        """Take what is recorded of a call."""
        self._can_build_on_more = self._can_build_on_more or answered
        self._add(record, len(record.body))

    async def _stored(self, *, durable: bool) -> None:
        while True:
            try:
                await self._writer.stored(durable=durable)
            except PASSING:
                if not self._is_patient:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _caught_up(self) -> None:
        try:
            with self._waits.for_server():
                await self._stored(durable=False)
        except Exception as error:  # noqa: BLE001 - as above
            self.lose(failure_text(error))

    def _ensure_begun(self, start: Start | None = None, program: int | None = None, after: str | None = None) -> None:
        begin, self._begin = self._begin, None
        if begin is not None:
            self._writer.add(self._run, begin=partial(begin, start, program, after), count=self._begin_bytes)

    def _add(self, record: Callable[[], Record | None], count: int) -> None:
        self._ensure_begun()
        if self._run.lost is None:
            self._writer.add(self._run, record=record, count=count)

    def _times(self, outcome: Outcome | None) -> dict[str, Json]:
        """Return where the time of the run went, in milliseconds, as far as it was measured, and the calls cut with it.

        Nothing of what the calls were given.
        """
        cut: list[Json] = [
            {"n": n, "call": _named(each.asked), "at_ms": each.at_ms, "ms": round(self.elapsed_ms - each.at_ms, 3)}
            for n, each in self.unanswered.items()
        ]
        times: dict[str, Json] = {"cut": cut} if cut else {}
        if outcome is None:
            return times
        measured = {"waiting": outcome.queued_ms, "program": outcome.duration_ms, "cpu": outcome.cpu_ms}
        measured["compile"] = outcome.compile_us / 1000 or None
        return times | {f"{name}_ms": round(ms, 3) for name, ms in measured.items() if ms is not None}

    def _end(
        self,
        status: str,
        isolation: str,
        called: Iterable[Called],
        ended: float,
        *,
        times: Mapping[str, Json],
        reason: str | None = None,
    ) -> RunEnd:
        tools: dict[str, dict[str, int]] = {}
        for tool, ok in called:
            counts = tools.setdefault(tool, {"done": 0, "failed": 0})
            counts["done" if ok else "failed"] += 1
        return RunEnd(status, ended, isolation, tools, self._run.lost, reason, times)


@dataclass(slots=True)
class CallRecord:
    """What is recorded of a call, until it is written; what `is_withdrawn` by then is not."""

    kind: int
    body: bytes
    is_withdrawn: bool = False

    def __call__(self) -> Record | None:
        """Return the record."""
        return None if self.is_withdrawn else _record(self.kind, self.body)


class _Call:
    """One host call and what is recorded of it."""

    def __init__(self, journal: RunJournal, number: int, asked: HostCall, *, is_known: bool = False) -> None:
        """Make one; one that `is_known` has its intent in the journal."""
        self.asked = asked
        self._journal = journal
        self._number = number
        self.at_ms = journal.elapsed_ms
        self._repeatable: bool | None = True if is_known else None
        """None until it said that it changes something."""
        self._leaves = False

    async def before(self, change: AnnouncedChange) -> None:
        """Record a change; what the call changes further belongs to the same record."""
        if self._repeatable is None:
            self._repeatable, self._leaves = change.repeatable, change.leaves
            await self._journal.before(self, change)

    async def intended(self, change: AnnouncedChange) -> CallRecord:
        """Record what is about to be done, and return that."""
        failure_text = {**self._asked(), "repeatable": change.repeatable, "leaves": change.leaves}
        if change.sources:
            failure_text["sources"] = [dict(each) for each in change.sources]
        return await self._record(_INTENT, failure_text, answered=False)

    async def failed(self, error: HostCallError) -> None:
        """Record the error that the code is given."""
        await self.answered(error_reply(error))

    async def answered(self, answer: Mapping[str, Json]) -> None:
        """Record the answer, and what was asked where no intent says so.

        Raises `HostCallError` in place of an answer that cannot be said in JSON: the code is given what is recorded.
        """
        asked = {"n": self._number} if self._repeatable is not None else self._asked()
        failure_text = {**asked, "ms": round(self._journal.elapsed_ms - self.at_ms, 3), **self._journal.newly_said()}
        # The answer to a change that comes to the same each time is nothing to build on.
        can_build_on = self._repeatable is not True
        refused: HostCallError | None = None
        try:
            await self._record(_OUTCOME, {**failure_text, **answer}, answered=can_build_on)
        except (ValueError, TypeError, RecursionError) as error:
            refused = HostCallError(
                f"The answer of {self.asked.name} is not JSON: {error}. Ask for less.", type="ValueError"
            )
            await self._record(_OUTCOME, {**failure_text, **error_reply(refused)}, answered=can_build_on)
        self._journal.unanswered.pop(self._number, None)
        if self._leaves:  # as long as this is not written, a crash leaves it unknown whether the call was done
            self._journal.hurry()
        if refused is not None:
            raise refused

    def _asked(self) -> dict[str, Json]:
        return {"n": self._number, "name": self.asked.name, "arguments": self.asked.arguments, "at_ms": self.at_ms}

    async def _record(self, kind: int, failure_text: Json, *, answered: bool) -> CallRecord:
        if is_light(failure_text):
            body = _bytes(write(failure_text))
        else:
            body = await in_thread(Kind.ANSWERS, lambda: _bytes(write_in_steps(failure_text)), charged=False)
        record = CallRecord(kind, body)
        self._journal.add_call(record, answered=answered)
        return record


_LIGHT_BYTES = 1000
_REASON_CHARS = 300
_INTENT, _OUTCOME, _TRACE, _END = 1, 2, 3, 4
"""`RecordKind`, whose module is imported where records are written."""


def _record(kind: int, body: bytes) -> Record:
    return Record(RecordKind(kind), body)


def _end_record(failure_text: Json) -> Record:
    return _record(_END, encoded(failure_text))


def _named(call: HostCall) -> str:
    """Return what a call is called: the tool, of one that calls a tool."""
    tool = call.arguments.get("name") if call.name == "call_tool" else None
    return tool if isinstance(tool, str) else call.name


def _reason(error: Failure) -> str:
    line, _, _ = f"{error.type}: {error.message}".partition("\n")
    return line[:_REASON_CHARS]


def size_of(value: Json) -> int:
    """Return about what a value takes; what is large counts as so much that it is written at once."""
    return _LIGHT_BYTES if is_light(value) else WRITE_BYTES


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """Return what a journal says of how a run ended, and what its replay is compared by.

    Of a long output it has the beginning, the number of characters that are missing, and a hash of all.
    """
    error = outcome.error
    return {
        "status": outcome.status.value,
        "result": outcome.result,
        **_kept_of("output", outcome.output),
        **_kept_of("stderr", outcome.stderr),
        "error": None
        if error is None
        else {"type": error.type, "message": error.message, "line": error.line, "traceback": error.traceback},
        "notes": dict(outcome.notes),
    }


async def _end_fields(outcome: Outcome) -> dict[str, Any]:
    if len(outcome.output) <= OUTPUT_KEPT_CHARS:
        return outcome_record(outcome)
    return await in_thread(Kind.ANSWERS, partial(outcome_record, outcome), charged=False)


def _kept_of(name: str, text: str) -> dict[str, str]:
    if len(text) <= OUTPUT_KEPT_CHARS:
        return {name: text}
    whole = hashlib.sha256()
    for at in range(0, len(text), OUTPUT_KEPT_CHARS):
        whole.update(text[at : at + OUTPUT_KEPT_CHARS].encode("utf-8", "surrogatepass"))
    missing = f"{len(text) - OUTPUT_KEPT_CHARS:,} more characters are not in the journal."
    return {name: f"{text[:OUTPUT_KEPT_CHARS]}\n{missing}", f"{name}_sha256": whole.hexdigest()}


def header_of(job: Job, start: Start | None, identity: Identity, *, dry_run: bool) -> dict[str, Json]:
    """Return what a run can be run again from, as JSON."""
    limits = job.limits
    return {
        "code": job.code,
        "context_vars": dict(job.context_vars),
        "arguments": list(job.arguments),
        "literals": dict(job.literals),
        "tells_reads": job.tells_reads,
        "dry_run": dry_run,
        "timeout_seconds": limits.timeout_seconds,
        "memory_mb": limits.memory_mb,
        "pids_max": limits.pids_max,
        "seed": None if start is None else start.seed.hex(),
        "time_ns": None if start is None else start.time_ns,
        "identity": identity_json(identity),
    }


def encoded(value: Json) -> bytes:
    """Return a value as JSON, made in steps: for a thread."""
    return _bytes(write_in_steps(value))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
