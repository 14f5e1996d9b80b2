"""One run as a context, and the aspects that act when it begins, around its host calls, and when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self

from ....sandbox.job import HostCalls, Isolation, Job, Outcome
from ...base.host_call import Answers, for_worker
from ...base.host_work import Account
from ...base.settings import Switch
from ...governance.caller import OnProgress
from ...governance.provenance.sightings import WINDOW_SECONDS, ProgramTexts
from ...privacy.gates.program_gate import ProgramTokens
from ...privacy.gates.run_gate import (
    CalledTool,
    EndedRun,
    Gate,
    LeftTokens,
    ReturnedShape,
    ShownRun,
    SourcedWrite,
    WrittenName,
)
from ..host_functions.attachments import Attachments
from ..host_functions.broker import Calls
from ..host_functions.sourced_calls import RunSources, text_of
from ..journal.earlier_answers import earlier_answers
from ..journal.recording import RunRecording
from .executor import Executor
from .files_home import FilesHome, changed_names
from .progress import ProgressReporter
from .request import CodeRequest

ENTRIES_MAX = 20
"""Calls of tools that a report names one by one, and files; of more calls it says how many ended alike."""


class Aspect:
    """One concern of a run, independent of the others. Its methods do nothing unless they are overridden.

    Once `begun` was called, also where it raised, either `ended` or `broken_off` is called, once.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    async def begun(self) -> None:
        """Act when the run begins. Raises an error to keep it from beginning."""

    def around(self, answer: Answers) -> Answers:
        """Return what answers the run's host calls in place of `answer`, which it may call."""
        return answer

    async def ended(self, outcome: Outcome) -> Outcome:
        """Act when the run has an outcome, and return that with what there is to add."""
        return outcome

    async def broken_off(self, error: BaseException) -> None:
        """Act when the run has no outcome: it was cancelled, or failed in the server."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that was admitted: its name, what became of the tokens in its program, and its journal.

    `journaled` makes what answers its host calls record them. `recorded`, innermost, makes it answer from the record of
    an earlier run as far as that goes.
    """

    run_id: str
    program: ProgramTokens
    journal: RunRecording
    journaled: Callable[[Run, Answers], Answers]
    recorded: Callable[[Answers], Answers] = lambda answer: answer


@dataclass(slots=True)
class Run:
    """What belongs to one run while it lasts. Leaving the context by an error calls `broken_off` of its aspects."""

    executor: Executor
    request: CodeRequest
    job: Job
    begun: Begun
    gate: Gate
    reporter: ProgressReporter
    calls: Calls
    files: FilesHome | None
    aspects: Sequence[Aspect] = ()
    """Outermost first: they begin in this order, and end in the other."""
    hint: str | None = None
    """What is to be said of a program that ran well."""
    computed: float = 0.0
    """When the worker was done, in seconds since 1970."""
    _to_end: list[Aspect] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        executor: Executor,
        request: CodeRequest,
        job: Job,
        begun: Begun,
        *,
        aspects: Sequence[type[Aspect]],
        progress: OnProgress | None,
    ) -> Self:
        """Make the run of a job, with one of each kind of aspect."""
        run_id, timeout_seconds = begun.run_id, job.limits.timeout_seconds
        gate = Gate(
            executor.privacy,
            request.caller,
            Account.of(timeout_seconds),
            run=run_id,
            literals=begun.program.literals,
        )
        reporter = ProgressReporter(gate.hiding_progress(progress), timeout_seconds)
        calls = Calls(
            executor.host_functions,
            budget=executor.settings.tool_calls_max,
            caller=gate.caller,
            dry_run=request.dry_run,
            tell=reporter.report_message,
            report_progress=reporter.report_progress,
            attachments=Attachments(run_id),
            run_tokens=gate.tokens,
            given=gate.given,
            source=job.code,
            audit=executor.audit,
            waits=job.waits,
            sources=_sources_of(executor, request, job, begun.run_id),
        )
        files = None if executor.workspace is None else FilesHome(executor.workspace, calls, run_id)
        run = cls(executor, request, replace(job, takes_home=files), begun, gate, reporter, calls, files)
        run.aspects = [each(run) for each in aspects]
        return run

    @property
    def run_id(self) -> str:
        """The run's name."""
        return self.begun.run_id

    @property
    def journal(self) -> RunRecording:
        """The run's journal."""
        return self.begun.journal

    @property
    def program(self) -> ProgramTokens:
        """What became of the tokens in the program."""
        return self.begun.program

    def answer(self) -> HostCalls:
        """Return what answers the host calls of the code, with every aspect around it."""
        answer = self.begun.recorded(self.calls.answer)
        for aspect in reversed(self.aspects):
            answer = aspect.around(answer)
        return for_worker(answer)

    async def begin(self) -> None:
        """Call `begun` of the aspects, the outermost first. Raises what keeps the run from beginning."""
        for aspect in self.aspects:
            self._to_end.append(aspect)
            await aspect.begun()

    async def ended(self, outcome: Outcome) -> Outcome:
        """Call `ended` of the aspects, the innermost first, and return the outcome as they leave it."""
        while self._to_end:
            outcome = await self._to_end.pop().ended(outcome)
        return outcome

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            while error is not None and self._to_end:
                await self._to_end.pop().broken_off(error)
        finally:
            await self.calls.ended()

    async def confirm_session(self) -> None:
        """Raise an error where the session has moved to another server meanwhile: its answer may not count."""
        if self.job.session is not None and self.executor.places is not None:
            await self.executor.places.confirm(self.job.session)

    def called(self) -> list[tuple[str, bool]]:
        """Return the tools that were called, and whether each call went well."""
        return [(each.tool, each.ok) for each in self.calls.log.entries if each.found]

    async def shown(self, outcome: Outcome) -> ShownRun:
        """Return what may be shown of the run."""
        return await self.gate.shown(self._whole(outcome))

    def _whole(self, outcome: Outcome) -> EndedRun:
        """Put together all that there is of the run. The name of an unknown tool is text of the code."""
        calls, files = self.calls, self.files
        return EndedRun(
            outcome,
            self.job.code,
            tuple(WrittenName(name, size) for name, size in calls.written.items()),
            tuple(
                CalledTool(each.tool, each.ok, each.ms) if each.found else CalledTool("", each.ok, each.ms, each.tool)
                for each in calls.log.entries
            ),
            tuple(ReturnedShape(tool, shape) for tool, shape in calls.log.returns.items()),
            tuple(
                LeftTokens(tool, left.refused, tuple(left.withheld), tuple(left.unknown), dict(left.values))
                for tool, left in calls.log.left.items()
            ),
            calls.log.dry,
            calls.attachments.files,
            None if files is None or outcome.isolation is not Isolation.PROCESS else changed_names(files, calls),
            () if calls.sources is None else tuple(SourcedWrite(*each) for each in calls.sources.writes),
            () if calls.sources is None else tuple(calls.sources.orders),
        )


def _sources_of(executor: Executor, request: CodeRequest, job: Job, run_id: str) -> RunSources | None:
    settings = executor.settings
    if settings.provenance is Switch.OFF:
        return None
    conversation = executor.conversations.of(request.caller.scope)
    has = text_of(job.code, *job.arguments, values=[dict(job.context_vars)])
    is_edited = request.start is not None  # it has the clock of an earlier run, and other code
    program = ProgramTexts(has, time.time() if is_edited or job.start is None else job.start.time_ns / 1e9)
    earlier = None
    if executor.journal.keeps:
        earlier = partial(earlier_answers, executor.journal, request.caller.scope, seconds=WINDOW_SECONDS)
    return RunSources(conversation, settings.profile, run_id, request.session, program, earlier)
