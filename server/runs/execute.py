"""The use case: run an agent's code and report what came of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, cast

from ...sandbox.errors import Busy
from ...sandbox.job import Failure, HostCalls, Isolation, Job, Json, Limits, Outcome, Start, Status
from ...workspace.errors import WorkspaceError
from ...workspace.names import RUNS
from ..caller import LOCAL, Caller, Progress
from ..errors import KNOWN_ERRORS, AuditUnwritten, RequestRefused
from ..host_functions.attachments import Attachments
from ..host_functions.broker import Calls
from ..host_work import Account, Kind, charged_to, in_thread
from ..journal.journal import BegunRun, Kept, recorder_of
from ..journal.recording import RunJournal
from ..privacy.gates.program_gate import ProgramTokens, with_values
from ..privacy.gates.run_gate import (
    CalledTool,
    EndedRun,
    Gate,
    LeftTokens,
    ReturnedShape,
    ShownRun,
    WrittenName,
)
from ..rights import ISOLATIONS, require
from ..scopes import session_of
from .cancelled_runs import LeftFiles
from .files_home import FilesHome, accompanied, changed_files, changed_names, written_files
from .ids import new_run_id
from .images import PNG, Picture, pictured
from .isolations import AUTO
from .permitted_runs import permit_run
from .placement.escalation import escalated
from .placement.heavy_numbers import told_of_full_python
from .placement.missing_packages import told_of_packages
from .placement.routing import routed
from .progress import ProgressReporter
from .rebuilding import rebuild_of
from .report import (
    PRIVACY_MS_LEAST,
    CallCounts,
    DryCall,
    ErrorReport,
    Image,
    PrivacyReport,
    Report,
    SessionReport,
    TokensLeft,
    ToolCall,
)
from .tables.table_reports import table_report
from .truncation import SHOWN_CHARS, Cut, Fitted, fit, fits

ENTRIES_MAX = 20
"""Calls of tools that a report names one by one, and files; of more calls it says how many ended alike."""
_TOOLS_MAX = 20

if TYPE_CHECKING:
    from .executor import Executor

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """One `execute_code` as it was asked for; `None` stands for the operator's default."""

    code: str
    context_vars: Mapping[str, Json] = field(default_factory=dict)
    timeout_seconds: float | None = None
    memory_mb: int | None = None
    session: str | None = None
    isolation: str = AUTO
    dry_run: bool = False
    caller: Caller = LOCAL
    arguments: tuple[str, ...] = ()
    start: Start | None = None
    """That of an earlier run, to have its random numbers and its time again."""
    run_id: str | None = None
    """What the run is to be called, where its caller knows that already."""
    background: bool = False
    """Whether it is run for nobody who waits; the policy may say otherwise of such a run."""
    outlives_worker: bool = False
    """Whether its journal is left open, and `RunCut` raised, where its worker is lost: its caller goes on with it."""


class RunCut(Exception):
    """The worker of a run was lost; its journal says how far the run came."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution: its report, and the images that the report's `images` speaks of."""

    report: Report
    images: tuple[Picture, ...] = ()


async def execute(
    executor: Executor,
    request: CodeRequest,
    *,
    progress: Progress | None = None,
    recorded: Callable[[HostCalls], HostCalls] = lambda answer: answer,
) -> Execution:
    """Run the code and return its report, whatever came of it.

    `recorded` returns what answers host calls from the record of an earlier run, and beyond it as it is given.

    Raises `RequestRefused` for what the operator or the policy does not allow, and the sandbox's own errors where
    nothing ran. Cancelling the awaiting task kills the run. Where several servers are one sealab, a program runs on the
    one that has its session.
    """
    here = partial(execute_here, executor, request, progress=progress, recorded=recorded)
    if executor.places is None or request.session is None:
        return await here()
    return await executor.places.execute(executor, request, here, progress)


async def execute_here(
    executor: Executor,
    request: CodeRequest,
    *,
    progress: Progress | None = None,
    recorded: Callable[[HostCalls], HostCalls] = lambda answer: answer,
) -> Execution:
    """Run the code on this server and return its report; as `execute`."""
    run_id = request.run_id or new_run_id()
    try:
        judged = await routed(executor, request, allowed(request, executor))
    except KNOWN_ERRORS as error:
        executor.audit.run_refused(request.caller, run_id, error)
        raise
    job, program = await with_values(executor.privacy, request.caller, judged, run=run_id)
    run = BegunRun(
        run_id,
        job,
        request.caller.scope,
        request.session,
        request.dry_run,
        is_patient=request.outlives_worker,
        identity=request.caller.identity,
    )
    journal = executor.journal.begin(run)

    def answering(calls: Calls, gate: Gate) -> HostCalls:
        if isinstance(journal, RunJournal):
            journal.notes(calls.approvals.told)
        return journal.around(gate.around(recorded(calls.answer)))

    return await executed(executor, request, job, Begun(run_id, program, journal, answering), progress=progress)


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that may begin: its journal, and what makes the answers to its host calls."""

    run_id: str
    program: ProgramTokens
    journal: Kept
    answering: Callable[[Calls, Gate], HostCalls]


async def executed(
    executor: Executor, request: CodeRequest, job: Job, begun: Begun, *, progress: Progress | None = None
) -> Execution:
    """Run a job whose journal has begun, and return its report; as `execute`."""
    run_id, program, journal = begun.run_id, begun.program, begun.journal
    filtering = Account.of(job.limits.timeout_seconds)
    gate = Gate(executor.privacy, request.caller, filtering, run=run_id, literals=program.literals)
    reporter = ProgressReporter(gate.hiding_progress(progress), job.limits.timeout_seconds)
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
    )
    answer = begun.answering(calls, gate)
    files = None if executor.workspace is None else FilesHome(executor.workspace, calls, run_id)
    job = replace(job, takes_home=files)
    try:
        await _audited_begin(executor, request, job, run_id)
        outcome = await _run(executor, request, job, gate, answer, journal=journal, reporter=reporter, files=files)
        _go_on_without_worker(request, outcome, journal)
        outcome = told_of_full_python(job, outcome, lambda: executor.pools.offered)
        outcome = _unstored(outcome, await calls.stored())
        await _confirm(executor, job)
    except BaseException as error:
        journal.broken_off(Status.CANCELLED.value, job.isolation.value, _called(calls))
        _audit_broken_off(executor, request, job, calls, error)
        if isinstance(error, asyncio.CancelledError):
            executor.stats.count_cancelled()
        if isinstance(error, asyncio.CancelledError) and files is not None and files.running is not None:
            goes_on = isinstance(journal, RunJournal) and journal.is_left_open
            leaving = partial(_left_behind, executor, job, calls, files, gate)
            executor.cancelled.begin(run_id, files.running, None if goes_on else leaving, gate.drop)
        else:
            gate.drop()
        raise
    finally:
        await calls.ended()
    _count(executor, run_id, outcome, calls)
    _audit_end(executor, request, outcome, calls)
    incomplete = await journal.ended(outcome, _called(calls))
    if request.session is not None:
        incomplete = await journal.stored()  # the next call may have to be given its session anew
        await _confirm(executor, job)
    outcome = _noted(outcome, incomplete, calls.log.nulled)
    shown = await gate.shown(_ended(outcome, job, calls, files))
    shown, images = _pictured(shown, run_id, filters=executor.privacy.filters)
    owner = request.caller.scope
    fitted = _kept_soon(executor, run_id, owner, shown.run)
    if fitted is None:
        fitted = await in_thread(Kind.FILES, partial(_kept_and_fitted, executor, run_id, owner, shown.run))
    report = _report(run_id, shown, fitted, images, dry_run=request.dry_run, program=program)
    rebuilt = outcome.rebuilt
    if rebuilt is not None and request.session is not None:
        report["session"] = SessionReport(
            name=request.session, rebuilt=True, programs=rebuilt.programs, ms=round(rebuilt.ms, 3)
        )
    if calls.log.made_up:
        report["made_up"] = dict(islice(calls.log.made_up.items(), ENTRIES_MAX))
    return Execution(report, images)


async def _run(
    executor: Executor,
    request: CodeRequest,
    job: Job,
    gate: Gate,
    answer: HostCalls,
    *,
    journal: Kept,
    reporter: ProgressReporter,
    files: FilesHome | None,
) -> Outcome:
    """Run the job, then send the progress that is left. A run for which there was no place in time is `busy`."""
    with reporter, charged_to(Account.of(job.limits.timeout_seconds)) as account:
        try:
            async with (
                executor.shares.run(job.caller, account, was_queued=executor.takes_queued),
                executor.shares.session(job.caller, job.session, executor.pools),
            ):
                recorder = recorder_of(journal, job.isolation)
                rebuild = None if recorder is None else rebuild_of(executor, request, job)
                running = executor.pools.run(job, answer, recorder, rebuild)
                outcome = await (running if job.isolation is not Isolation.PROCESS else accompanied(files, running))
                if request.isolation == AUTO:
                    outcome = await escalated(
                        executor,
                        job,
                        answer,
                        outcome,
                        caller=gate.caller,
                        files=files,
                        background=request.background,
                        was_routed=True,
                    )
                outcome = await told_of_packages(executor.offer.full_python, outcome)
            await reporter.flush()
        except Busy as busy:
            executor.audit.limited(request.caller, busy.limit)
            return Outcome(Status.BUSY, error=Failure("Busy", str(busy)), isolation=job.isolation)
    return outcome


async def _left_behind(executor: Executor, job: Job, calls: Calls, files: FilesHome, gate: Gate) -> LeftFiles | None:
    """Keep what a cancelled run had written, and return what is said of it; None where that is nothing."""
    if files.cancelled is None and not files.landed.is_anything:
        return None
    outcome = files.cancelled or Outcome(Status.CANCELLED, isolation=Isolation.PROCESS)
    shown = (await gate.shown(_ended(outcome, job, calls, files))).run
    run_id, note = calls.attachments.run_id, shown.outcome.notes.get("files")
    if shown.attached:
        keeping = partial(
            executor.archive.archive.keep,
            run_id,
            owner=job.caller,
            code=shown.code,
            attached=shown.attached,
        )
        try:
            await in_thread(Kind.FILES, keeping, charged=False)
        except WorkspaceError as error:
            _LOG.warning("The files of the cancelled run %s could not be kept: %s", run_id, error)
            return LeftFiles(note=f"What the code wrote could not be kept: {error}")
    changed = shown.changed
    return (
        LeftFiles(note=note)
        if changed is None
        else LeftFiles(changed_files(changed, ENTRIES_MAX), len(changed.kept), note)
    )


async def _confirm(executor: Executor, job: Job) -> None:
    """Raise an error where the session of a job has moved to another server meanwhile: its answer may not count."""
    if job.session is not None and executor.places is not None:
        await executor.places.confirm(job.session)


async def _audited_begin(executor: Executor, request: CodeRequest, job: Job, run_id: str) -> None:
    """Have the audit log say that a run begins. Raises `AuditUnwritten`."""
    await executor.audit.run_began(
        request.caller,
        run_id,
        isolation=job.isolation.value,
        code_bytes=_bytes_of(job.code),
        dry_run=request.dry_run,
    )


def _audit_end(executor: Executor, request: CodeRequest, outcome: Outcome, calls: Calls) -> None:
    executor.audit.run_ended(
        request.caller,
        calls.attachments.run_id,
        status=outcome.status.value,
        isolation=outcome.isolation.value,
        ms=outcome.duration_ms,
        calls=len(calls.log.entries),
        shown_bytes=_bytes_of(outcome.output) + _bytes_of(outcome.stderr),
        moved_bytes=calls.log.moved_bytes,
    )


def _audit_broken_off(executor: Executor, request: CodeRequest, job: Job, calls: Calls, error: BaseException) -> None:
    """Have the audit log say how a run ended that has no outcome; one that goes on elsewhere has not ended."""
    status = {
        AuditUnwritten: Status.REFUSED.value,
        asyncio.CancelledError: Status.CANCELLED.value,
        RunCut: "cut",
    }.get(type(error), "failed")
    executor.audit.run_ended(
        request.caller,
        calls.attachments.run_id,
        status=status,
        isolation=job.isolation.value,
        ms=0.0,
        calls=len(calls.log.entries),
        moved_bytes=calls.log.moved_bytes,
    )


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _go_on_without_worker(request: CodeRequest, outcome: Outcome, journal: Kept) -> None:
    """Raise `RunCut` for a run that outlives its worker and has lost it."""
    if request.outlives_worker and outcome.status is Status.CRASHED and isinstance(journal, RunJournal):
        journal.leave_open()
        raise RunCut


def _called(calls: Calls) -> list[tuple[str, bool]]:
    return [(each.tool, each.ok) for each in calls.log.entries if each.found]


def _unstored(outcome: Outcome, lost: str | None) -> Outcome:
    """Return the outcome of a run whose last files could not be stored: it failed, or says so in a note."""
    if lost is None:
        return outcome
    if outcome.status is Status.OK:
        failure = Failure("OSError", f"The last files that the code wrote could not be stored. {lost}")
        return replace(outcome, status=Status.ERROR, error=failure)
    return replace(outcome, notes={**outcome.notes, "files": f"The last files could not be stored. {lost}"})


def _noted(outcome: Outcome, incomplete: str | None, nulled: Iterable[str]) -> Outcome:
    """Return the outcome with notes where its journal is incomplete, and where answers held what JSON does not have."""
    notes = dict(outcome.notes)
    if incomplete is not None:
        notes["journal"] = f"incomplete: {incomplete}"
    if tools := ", ".join(islice(nulled, ENTRIES_MAX)):
        notes["answers"] = f"NaN and infinities became null in what was answered by {tools}"
    return replace(outcome, notes=notes) if notes != outcome.notes else outcome


def _count(executor: Executor, run_id: str, outcome: Outcome, calls: Calls) -> None:
    executor.stats.count(outcome, [each.ok for each in calls.log.entries])
    executor.recorder.note(
        run_id,
        duration_ms=outcome.duration_ms,
        status=outcome.status.value,
        isolation=outcome.isolation.value,
        skills=calls.skills,
    )


def _ended(outcome: Outcome, job: Job, calls: Calls, files: FilesHome | None) -> EndedRun:
    """Put together all that there is of a run. The name of a tool that there is not is the code's own text."""
    return EndedRun(
        outcome,
        job.code,
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
    )


def _pictured(shown: ShownRun, run_id: str, *, filters: bool) -> tuple[ShownRun, tuple[Picture, ...]]:
    """Return the run without the bytes of images in its result, and the images: the figures, then those of the result.

    With `filters` the result is left as it is: what an image shows cannot be filtered.
    """
    run, outcome = shown.run, shown.run.outcome
    figures = tuple(Picture(PNG, figure) for figure in outcome.figures)
    if filters or outcome.result is None or isinstance(outcome.result, bool | int | float):
        return shown, figures
    found = pictured(outcome.result, outcome.notes, run.attached, f"{RUNS}/{run_id}")
    if not found.pictures and not found.kept and not found.left_out:
        return shown, figures
    notes = dict(outcome.notes)
    if found.left_out:
        notes["images"] = f"{found.left_out} of the result are too many or too large to show"
    outcome = replace(outcome, result=found.result, notes=notes)
    run = replace(run, outcome=outcome, attached={**run.attached, **found.kept})
    return replace(shown, run=run), (*figures, *found.pictures)


def allowed(request: CodeRequest, executor: Executor) -> Job:
    """Return the job, or raise `RequestRefused`: what is above a maximum is refused, never clamped.

    So is what the policy does not permit.
    """
    settings = executor.settings
    timeout_seconds = settings.timeout_seconds if request.timeout_seconds is None else request.timeout_seconds
    memory_mb = settings.memory_mb if request.memory_mb is None else request.memory_mb
    for name, asked, most in (
        ("timeout_seconds", timeout_seconds, settings.max_timeout_seconds),
        ("memory_mb", memory_mb, settings.max_memory_mb),
    ):
        if not 0 < asked <= most:
            raise RequestRefused(f"{name} is {asked:g}, which is not allowed. Give more than 0 and at most {most:g}.")
    session = None if request.session is None else session_of(request.caller.scope, request.session)
    isolation = executor.offer.named(request.isolation, settings)
    if isolation is None:
        kept_at = None if session is None else executor.pools.home_of(session)
        isolation = kept_at or executor.pools.default
    require(request.caller.identity, ISOLATIONS, isolation.value)
    limits = Limits(timeout_seconds=timeout_seconds, memory_mb=memory_mb, pids_max=settings.pids_max)
    permit_run(
        executor.policy, request.caller.identity, isolation, limits, background=request.background, session=session
    )
    return Job(
        code=request.code,
        context_vars=request.context_vars,
        limits=limits,
        session=session,
        isolation=isolation,
        caller=request.caller.scope,
        arguments=request.arguments,
        start=request.start or Start.now(),
    )


def _kept_soon(executor: Executor, run_id: str, owner: str, run: EndedRun) -> Fitted | None:
    """Keep a small run after its reply, if the report holds all of it; None where that cannot be promised."""
    outcome = run.outcome
    max_chars = min(executor.settings.output_max_chars, SHOWN_CHARS)
    if (
        run.attached
        or run.dry_calls
        or outcome.displayed
        or not fits(outcome.result, outcome.output, outcome.stderr, max_chars=max_chars)
        or not executor.archive.soon(run_id, owner=owner, code=run.code)
    ):
        return None
    return fit(outcome.result, outcome.output, stderr=outcome.stderr, notes=outcome.notes, max_chars=max_chars)


def _kept_and_fitted(executor: Executor, run_id: str, owner: str, run: EndedRun) -> Fitted:
    """Cut what is too long for a model, and keep the run with the whole of what was cut."""
    outcome, attached = run.outcome, run.attached
    cut = partial(
        fit,
        outcome.result,
        outcome.output,
        stderr=outcome.stderr,
        dry_run=run.dry_calls or (),
        displayed=cast("Sequence[Json]", outcome.displayed or ()),
        max_chars=executor.settings.output_max_chars,
    )
    fitted = cut(run_id=run_id, notes=outcome.notes)
    for name, whole in (
        ("dry_run.json", fitted.whole_dry_run),
        ("stderr.txt", fitted.whole_stderr),
        ("displayed.json", fitted.whole_displayed),
    ):
        if whole is not None:
            attached = {**attached, name: whole.encode(errors="backslashreplace")}
    try:
        executor.archive.archive.keep(
            run_id,
            owner=owner,
            code=run.code,
            output=fitted.whole_output,
            result_json=fitted.whole_result,
            attached=attached,
        )
    except WorkspaceError as error:
        _LOG.warning("Run %s could not be kept: %s", run_id, error)
        return cut(run_id=None, notes={**outcome.notes, "run": f"not kept: {error}"})
    return fitted


def _calls(called: Sequence[CalledTool]) -> list[ToolCall]:
    """Return the calls one by one, or, where there are many, those of each tool that ended alike as one."""
    calls = [ToolCall(tool=_name_of(each), ok=each.ok, ms=each.ms) for each in called]
    if len(calls) <= ENTRIES_MAX:
        return calls
    alike: dict[tuple[str, bool], ToolCall] = {}
    for each in calls:
        of_all = alike.setdefault((each["tool"], each["ok"]), ToolCall(tool=each["tool"], ok=each["ok"], ms=0, count=0))
        of_all["ms"] = round(of_all["ms"] + each["ms"], 3)
        of_all["count"] += 1
    return list(alike.values())[:_TOOLS_MAX]


def _counts(called: Sequence[CalledTool]) -> dict[str, CallCounts]:
    """Return how many calls of each tool were done and failed."""
    counts: dict[str, CallCounts] = {}
    for each in called:
        counts.setdefault(_name_of(each), CallCounts(done=0, failed=0))["done" if each.ok else "failed"] += 1
    return dict(list(counts.items())[:_TOOLS_MAX])


def _name_of(call: CalledTool) -> str:
    return call.tool or call.unknown or "(withheld)"


def _left(left: LeftTokens) -> TokensLeft:
    told = TokensLeft(tool=left.tool)
    if left.refused:
        told["refused"] = left.refused
    if left.withheld:
        told["withheld"] = list(left.withheld[:ENTRIES_MAX])
    if left.unknown:
        told["unknown"] = list(left.unknown[:ENTRIES_MAX])
    if left.values:
        told["values"] = dict(left.values)
    return told


def _report(
    run_id: str, shown: ShownRun, fitted: Fitted, images: Sequence[Picture], *, dry_run: bool, program: ProgramTokens
) -> Report:
    run, outcome = shown.run, shown.run.outcome
    report = Report(
        run_id=run_id,
        success=outcome.status is Status.OK,
        status=outcome.status.value,
        result=fitted.result,
        output=fitted.output,
        error=None if outcome.error is None else cast("ErrorReport", asdict(outcome.error)),
        execution_time_ms=round(outcome.duration_ms, 3),
        isolation=outcome.isolation.value,
        layers=list(outcome.layers),
    )
    if fitted.displayed:
        report["displayed"] = list(fitted.displayed)
    if outcome.tables:
        report["tables"] = [table_report(each) for each in outcome.tables]
    if fitted.stderr:
        report["stderr"] = fitted.stderr
    if outcome.queued_ms >= 1:
        report["queued_ms"] = round(outcome.queued_ms, 3)
    if run.called:
        _add_calls(report, run.called)
    if run.returns:
        report["returns"] = {each.tool: each.shape for each in run.returns}
    if dry_run:
        report["dry_run"] = cast("list[DryCall]", list(fitted.dry_run))
    if run.changed is not None:
        if changed := changed_files(run.changed, ENTRIES_MAX):
            report["files"] = changed
    elif run.written:
        report["files"] = written_files(run.written, ENTRIES_MAX)
    truncated = fitted.truncated()
    for what, cut in _left_out(report, run).items():
        truncated[what] = {**cast("Mapping[str, Json]", truncated.get(what, {})), **cast("Mapping[str, Json]", cut)}
    if truncated:
        report["truncated"] = truncated
    if images:
        captions = [*outcome.captions, *[""] * len(images)]
        report["images"] = [_image(each, shows) for each, shows in zip(images, captions, strict=False)]
    if outcome.session_ended is not None:
        report["session_ended"] = outcome.session_ended
    privacy = _privacy(shown, program)
    if privacy:
        report["privacy"] = privacy
    if run.left:
        told = sum(len((*each.get("unknown", ()), *each.get("withheld", ()))) for each in privacy["left"])
        there = sum(len((*each.unknown, *each.withheld)) for each in run.left)
        if told < there or len(run.left) > ENTRIES_MAX:
            truncated["left"] = Cut(note=f"{told} of {there} tokens, of {len(run.left)} tools").to_json()
            report["truncated"] = truncated
    return report


def _image(picture: Picture, shows: str) -> Image:
    told = Image(mime_type=picture.mime_type, size=len(picture.content))
    if shows:
        told["shows"] = shows
    return told


def _privacy(shown: ShownRun, program: ProgramTokens) -> PrivacyReport:
    """Return what was done with personal data; empty where that is nothing."""
    privacy = PrivacyReport()
    if program.values:
        privacy["values"] = program.values
    if program.withheld:
        privacy["withheld"] = dict(program.withheld)
    if program.unknown:
        privacy["unknown"] = list(program.unknown[:ENTRIES_MAX])
    if shown.privacy_ms >= PRIVACY_MS_LEAST:
        privacy["ms"] = round(shown.privacy_ms, 3)
    if shown.types:
        privacy["hidden"] = dict(shown.types)
    if shown.files:
        privacy["files"] = dict(shown.files)
    if shown.run.left:
        privacy["left"] = [_left(each) for each in shown.run.left[:ENTRIES_MAX]]
    return privacy


def _add_calls(report: Report, called: Sequence[CalledTool]) -> None:
    report["tool_calls"] = _calls(called)
    if report["error"] is not None:
        report["error"]["calls"] = _counts(called)


def _left_out(report: Report, run: EndedRun) -> dict[str, Json]:
    """Return how many of its calls and files the report does not name."""
    left_out: dict[str, Json] = {}
    told = sum(each.get("count", 1) for each in report.get("tool_calls", ()))
    if told < len(run.called):
        left_out["tool_calls"] = Cut(told, len(run.called), note="calls, of the first tools alone").to_json()
    if run.changed is not None:
        every = (run.changed.new, run.changed.changed, run.changed.deleted, run.changed.kept)
        if max(map(len, every)) > ENTRIES_MAX:
            named = sum(min(len(each), ENTRIES_MAX) for each in every)
            left_out["files"] = Cut(named, sum(map(len, every)), "list_files() in code").to_json()
    elif len(run.written) > ENTRIES_MAX:
        left_out["files"] = Cut(ENTRIES_MAX, len(run.written), "list_files() in code", "files").to_json()
    return left_out
