"""The aspects of a run: what is counted, audited, journaled, filtered, taken home, reported and shared of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import islice

from typing_extensions import override  # of `typing` from Python 3.12 on

from ....sandbox.job import Failure, Isolation, Outcome, Status
from ....workspace.errors import WorkspaceError
from ...base.errors import AuditUnwritten
from ...base.host_call import Answer, Answers, HostCall
from ...base.host_work import Account, Kind, charged_to, in_thread
from ...base.stats.run_stats import EndedCall
from ...base.telemetry import tracing
from .cancelled_runs import LeftFiles
from .files_home import changed_files
from .run import ENTRIES_MAX, Aspect, Run

_LOG = logging.getLogger(__name__)


class RunCut(Exception):
    """The worker of a run was lost; its journal says how far the run came."""


class Observed(Aspect):
    """What OpenTelemetry gets of the run: how it went, how long it waited, and its calls as parts of it."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._where = tracing.here()

    @override
    def around(self, answer: Answers) -> Answers:
        if self._where is None:
            return answer

        async def within(call: HostCall) -> Answer:
            with tracing.within(self._where):
                return await answer(call)

        return within

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        if self._where is None:
            return outcome
        self._tell(outcome.status.value, outcome.isolation, outcome.cpu_ms)
        if computed := self.run.computed:
            began = computed - outcome.duration_ms / 1000
            compiling = outcome.compile_us / 1_000_000
            for name, seconds, ended in (
                ("queue", outcome.queued_ms / 1000, began),
                ("worker", outcome.duration_ms / 1000, computed),
                ("compile", compiling, began + compiling),
            ):
                tracing.part(f"sealab.run.{name}", seconds, ended)
        return outcome

    @override
    async def broken_off(self, error: BaseException) -> None:
        is_cancelled = isinstance(error, asyncio.CancelledError)
        self._tell(Status.CANCELLED.value if is_cancelled else "failed", self.run.job.isolation)

    def _tell(self, status: str, isolation: Isolation, cpu_ms: float | None = None) -> None:
        """Set how the run went on its span; a count that is left out is 0."""
        request = self.run.request
        counts: dict[str, float] = {
            "sealab.run.cpu_seconds": (cpu_ms or 0.0) / 1000,
            "sealab.run.tool_calls": len(self.run.calls.log.entries),
            "sealab.run.background": request.background,
        }
        attributes: dict[str, str | float] = {name: count for name, count in counts.items() if count}
        attributes |= {"sealab.run.outcome": status, "sealab.run.isolation": isolation.value}
        tracing.mark(attributes | {"sealab.tenant": request.caller.identity.tenant})


class Counted(Aspect):
    """Statistics."""

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        tenant = self.run.request.caller.identity.tenant
        self.run.executor.stats.count(outcome, tenant, _tool_calls(self.run))
        return outcome

    @override
    async def broken_off(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            tenant = self.run.request.caller.identity.tenant
            self.run.executor.stats.count_cancelled(tenant, self.run.job.isolation.value)


class Audited(Aspect):
    """The lines of the audit log on the run as a whole. A run whose first line cannot be written does not begin."""

    @override
    async def begun(self) -> None:
        run = self.run
        await run.executor.audit.run_began(
            run.request.caller,
            run.run_id,
            isolation=run.job.isolation.value,
            code_bytes=_bytes_of(run.job.code),
            dry_run=run.request.dry_run,
        )

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        shown_bytes = _bytes_of(outcome.output) + _bytes_of(outcome.stderr)
        self._note(outcome.status.value, outcome.isolation, outcome.duration_ms, shown_bytes)
        return outcome

    @override
    async def broken_off(self, error: BaseException) -> None:
        status = {
            AuditUnwritten: Status.REFUSED.value,
            asyncio.CancelledError: Status.CANCELLED.value,
        }.get(type(error), "failed")
        if self.run.journal.is_left_open:
            status = "cut"  # it goes on later or elsewhere, and has not ended
        self._note(status, self.run.job.isolation, 0.0, 0)

    def _note(self, status: str, isolation: Isolation, ms: float, shown_bytes: int) -> None:
        run = self.run
        run.executor.audit.run_ended(
            run.request.caller,
            run.run_id,
            status=status,
            isolation=isolation.value,
            ms=ms,
            calls=len(run.calls.log.entries),
            shown_bytes=shown_bytes,
            moved_bytes=run.calls.log.moved_bytes,
        )


class Journaled(Aspect):
    """The journal of the run. That of a program of a session is stored before its answer is given."""

    @override
    def around(self, answer: Answers) -> Answers:
        return self.run.begun.journaled(self.run, answer)

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        run = self.run
        incomplete = await run.journal.ended(outcome, run.called())
        if run.request.session is not None:
            incomplete = await run.journal.stored()  # the next call may have to be given its session anew
            await run.confirm_session()
        if incomplete is None:
            return outcome
        return replace(outcome, notes={**outcome.notes, "journal": f"incomplete: {incomplete}"})

    @override
    async def broken_off(self, error: BaseException) -> None:
        run = self.run
        run.journal.broken_off(Status.CANCELLED.value, run.job.isolation.value, run.called())


class Filtered(Aspect):
    """The privacy gate around host calls. What is shown in the end passes it too: see `Run.shown`."""

    @override
    def around(self, answer: Answers) -> Answers:
        return self.run.gate.around(answer)

    @override
    async def broken_off(self, error: BaseException) -> None:
        run = self.run
        if run.files is None or run.files.going_on_after(error) is None:
            run.gate.drop()


class TakenHome(Aspect):
    """The files that the code wrote. Those of a cancelled run of full Python are kept when it has ended."""

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        lost = await self.run.calls.stored()
        if lost is None:
            return outcome
        if outcome.status is Status.OK:
            failure = Failure("OSError", f"The last files that the code wrote could not be stored. {lost}")
            return replace(outcome, status=Status.ERROR, error=failure)
        return replace(outcome, notes={**outcome.notes, "files": f"The last files could not be stored. {lost}"})

    @override
    async def broken_off(self, error: BaseException) -> None:
        run = self.run
        going_on = None if run.files is None else run.files.going_on_after(error)
        if going_on is not None:
            keep = None if run.journal.is_left_open else partial(_left_behind, run)
            run.executor.cancelled.begin(run.run_id, going_on, keep, run.gate.drop)


class Reported(Aspect):
    """Progress notifications to the client."""

    @override
    async def begun(self) -> None:
        self.run.reporter.begin()

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        try:
            await self.run.reporter.flush()
        finally:
            self.run.reporter.end()
        return outcome

    @override
    async def broken_off(self, error: BaseException) -> None:
        self.run.reporter.end()


class Shared(Aspect):
    """The shares of caller and tenant: a place for the run while it lasts, and its processor time. Raises `Busy`."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._places = AsyncExitStack()

    @override
    async def begun(self) -> None:
        executor, job = self.run.executor, self.run.job
        async with AsyncExitStack() as places:
            account = places.enter_context(charged_to(Account.of(job.limits.timeout_seconds)))
            await places.enter_async_context(executor.shares.run(job.caller, account, was_queued=executor.takes_queued))
            await places.enter_async_context(executor.shares.session(job.caller, job.session, executor.pools))
            self._places = places.pop_all()

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        await self._places.aclose()
        return outcome

    @override
    async def broken_off(self, error: BaseException) -> None:
        await self._places.__aexit__(type(error), error, error.__traceback__)


class Sourced(Aspect):
    """Where values stood in what the run reads: see `governance.provenance`."""

    @override
    async def begun(self) -> None:
        run, sources = self.run, self.run.calls.sources
        if sources is not None:
            await sources.begun(
                run.job.code, run.job.context_vars, is_full=run.job.isolation is not Isolation.RESTRICTED
            )

    @override
    def around(self, answer: Answers) -> Answers:
        sources = self.run.calls.sources
        return answer if sources is None else sources.around(answer)

    @override
    async def broken_off(self, error: BaseException) -> None:
        sources = self.run.calls.sources
        if sources is not None:  # another process may go on with it
            sources.conversation.known_runs.pop(self.run.run_id, None)


class OddAnswers(Aspect):
    """The note on answers of tools that hold numbers which JSON does not have, or break their own output schemas."""

    @override
    async def ended(self, outcome: Outcome) -> Outcome:
        log = self.run.calls.log
        nulled = ", ".join(islice(log.nulled, ENTRIES_MAX))
        broken = ", ".join(f"{tool} ({where})" for tool, where in islice(log.broken.items(), ENTRIES_MAX))
        notes = [f"NaN and infinities became null in what was answered by {nulled}"] if nulled else []
        notes += [f"not as its own output schema says is what was answered by {broken}"] if broken else []
        return replace(outcome, notes={**outcome.notes, "answers": "; ".join(notes)}) if notes else outcome


async def _left_behind(run: Run) -> LeftFiles | None:
    """Keep what a cancelled run had written, and return what is said of it; None where that is nothing."""
    files = run.files
    if files is None or (files.cancelled is None and not files.landed.is_anything):
        return None
    outcome = files.cancelled or Outcome(Status.CANCELLED, isolation=Isolation.PROCESS)
    shown = (await run.shown(outcome)).run
    note = shown.outcome.notes.get("files")
    if shown.attached:
        keeping = partial(
            run.executor.archive.archive.keep,
            run.run_id,
            owner=run.job.caller,
            code=shown.code,
            attached=shown.attached,
        )
        try:
            await in_thread(Kind.FILES, keeping, charged=False)
        except WorkspaceError as error:
            _LOG.warning("The files of the cancelled run %s could not be kept: %s", run.run_id, error)
            return LeftFiles(note=f"What the code wrote could not be kept: {error}")
    changed = shown.changed
    if changed is None:
        return LeftFiles(note=note)
    return LeftFiles(changed_files(changed, ENTRIES_MAX), len(changed.kept), note)


def _tool_calls(run: Run) -> Iterator[EndedCall]:
    """Give the calls of tools as they are counted: of a tool that was not found the code made the name up."""
    for each in run.calls.log.entries:
        server, _, tool = each.tool.partition(".") if each.found else ("", "", "")
        yield EndedCall(server, tool, each.ok, each.ms / 1000)


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
