"""The use case: run an agent's code and tell honestly what came of it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

from ...sandbox.errors import Busy
from ...sandbox.job import Failure, Job, Json, Limits, Outcome, Status
from ...workspace.errors import WorkspaceError
from ..caller import LOCAL, Caller, Progress
from ..errors import RequestRefused
from ..host_functions.attachments import Attachments
from ..host_functions.broker import Calls
from ..host_functions.call_log import Entry
from ..host_work import Account, Kind, charged_to, in_thread
from ..privacy.gates.run_gate import (
    Gate,
    ShownRun,
    hidden_files,
    hidden_run,
    hidden_value,
    hiding_caller,
    hiding_progress,
)
from ..scopes import session_of
from .escalation import escalated
from .ids import new_run_id
from .isolations import AUTO
from .progress import ProgressReporter
from .report import DryCall, ErrorReport, Hidden, Image, Report, ToolCall, WrittenFile
from .truncation import Fitted, fit, fits

FIGURE_MIME_TYPE = "image/png"
_SMALL_CHARS = 4_000
"""What is no longer than this is looked through in less time than another thread would take to begin."""

if TYPE_CHECKING:
    from .executor import Executor

_LOG = logging.getLogger(__name__)
_SESSION_NAME = re.compile(r"[\w.-]{1,64}")


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


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution: its report, and the figures that the report's `images` speaks of, as PNG."""

    report: Report
    figures: tuple[bytes, ...] = ()


async def execute(executor: Executor, request: CodeRequest, *, progress: Progress | None = None) -> Execution:
    """Run the code and return its report, whatever came of it.

    Raises `RequestRefused` for what the operator does not allow, and the sandbox's own errors where nothing ran.
    Cancelling the awaiting task kills the run.
    """
    run_id = new_run_id()
    job = _allowed(request, executor)
    caller = hiding_caller(executor.privacy, request.caller)
    telling = ProgressReporter(hiding_progress(executor.privacy, caller.scope, progress), job.limits.timeout_seconds)
    calls = Calls(
        executor.host_functions,
        budget=executor.settings.tool_calls_max,
        caller=caller,
        dry_run=request.dry_run,
        tell=telling.tell,
        attachments=Attachments(run_id),
        guest=executor.privacy.guest(caller.scope),
    )
    filtering = Account.of(job.limits.timeout_seconds)
    gate = Gate(executor.privacy, request.caller.scope, calls.answer, filtering, calls.guest)
    try:
        with telling, charged_to(Account.of(job.limits.timeout_seconds)):
            try:
                outcome = await executor.pools.run(job, gate.answer)
                if request.isolation == AUTO:
                    outcome = await escalated(executor, job, gate.answer, outcome, ask=request.caller.ask)
            except Busy as busy:
                outcome = Outcome(Status.BUSY, error=Failure("Busy", str(busy)), isolation=job.isolation)
    except BaseException as error:
        gate.drop()
        if isinstance(error, asyncio.CancelledError):
            executor.stats.count_cancelled()
        raise
    executor.stats.count(outcome)
    executor.recorder.note(
        run_id,
        duration_ms=outcome.duration_ms,
        status=outcome.status.value,
        isolation=outcome.isolation.value,
        skills=calls.skills,
    )
    with charged_to(filtering):
        shown = await hidden_run(gate, outcome, job.code, calls.written)
        dry = cast("list[Json] | None", await hidden_value(gate, calls.log.dry))
        called = await _called(gate, calls.log.entries)
        attached = await hidden_files(gate, calls.attachments.files)
    fitted = None if attached or dry else _kept_soon(executor, run_id, caller.scope, shown)
    if fitted is None:
        keep = partial(
            _kept_and_fitted, executor, run_id, shown, owner=caller.scope, attached=attached, dry_run=dry or ()
        )
        fitted = await in_thread(Kind.FILES, keep)
    report = _report(run_id, shown, fitted)
    if called:
        report["tool_calls"] = called
    if fitted.dry_run:
        report["dry_run"] = cast("list[DryCall]", list(fitted.dry_run))
    return Execution(report, shown.outcome.figures)


async def _called(gate: Gate, entries: Sequence[Entry]) -> list[ToolCall]:
    """Tell of the calls of tools; a name that no tool has is the code's own text, and hidden as such."""
    unknown = await hidden_value(gate, [each.tool for each in entries if not each.found])
    names = iter(cast("list[str]", unknown or []))
    return [
        ToolCall(tool=each.tool if each.found else next(names, "(withheld)"), ok=each.ok, ms=each.ms)
        for each in entries
    ]


def _allowed(request: CodeRequest, executor: Executor) -> Job:
    """Return the job, or raise `RequestRefused`: what is above a maximum is refused, never clamped."""
    settings = executor.settings
    timeout_seconds = settings.timeout_seconds if request.timeout_seconds is None else request.timeout_seconds
    memory_mb = settings.memory_mb if request.memory_mb is None else request.memory_mb
    for name, asked, most in (
        ("timeout_seconds", timeout_seconds, settings.max_timeout_seconds),
        ("memory_mb", memory_mb, settings.max_memory_mb),
    ):
        if not 0 < asked <= most:
            raise RequestRefused(f"{name} is {asked:g}, which is not allowed. Give more than 0 and at most {most:g}.")
    if request.session is not None and not _SESSION_NAME.fullmatch(request.session):
        raise RequestRefused(
            "The session's name cannot be used. Give 1 to 64 letters, digits, dots, dashes or underscores."
        )
    session = None if request.session is None else session_of(request.caller.scope, request.session)
    isolation = executor.offer.named(request.isolation, settings)
    if isolation is None:
        kept_at = None if session is None else executor.pools.home_of(session)
        isolation = kept_at or executor.pools.default
    return Job(
        code=request.code,
        context_vars=request.context_vars,
        limits=Limits(timeout_seconds=timeout_seconds, memory_mb=memory_mb, pids_max=settings.pids_max),
        session=session,
        isolation=isolation,
        caller=request.caller.scope,
    )


def _kept_soon(executor: Executor, run_id: str, owner: str, shown: ShownRun) -> Fitted | None:
    """Have a small run that tells everything kept after its reply; None where that cannot be promised."""
    outcome = shown.outcome
    max_chars = min(executor.settings.output_max_chars, _SMALL_CHARS)
    if not fits(outcome.result, outcome.output, max_chars=max_chars) or not executor.archive.soon(
        run_id, owner=owner, code=shown.code
    ):
        return None
    return fit(outcome.result, outcome.output, notes=outcome.notes, max_chars=max_chars)


def _kept_and_fitted(
    executor: Executor,
    run_id: str,
    shown: ShownRun,
    *,
    owner: str,
    attached: Mapping[str, bytes],
    dry_run: Sequence[Json],
) -> Fitted:
    """Cut what is too long for a model, and keep the run with the whole of what was cut."""
    outcome = shown.outcome
    cut = partial(fit, outcome.result, outcome.output, dry_run=dry_run, max_chars=executor.settings.output_max_chars)
    fitted = cut(run_id=run_id, notes=outcome.notes)
    if fitted.whole_dry_run is not None:
        attached = {**attached, "dry_run.json": fitted.whole_dry_run.encode(errors="backslashreplace")}
    try:
        executor.archive.archive.keep(
            run_id,
            owner=owner,
            code=shown.code,
            output=fitted.whole_output,
            result_json=fitted.whole_result,
            attached=attached,
        )
    except WorkspaceError as error:
        _LOG.warning("Run %s could not be kept: %s", run_id, error)
        return cut(run_id=None, notes={**outcome.notes, "run": f"not kept: {error}"})
    return fitted


def _report(run_id: str, shown: ShownRun, fitted: Fitted) -> Report:
    outcome = shown.outcome
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
    if outcome.queued_ms >= 1:
        report["queued_ms"] = round(outcome.queued_ms, 3)
    if fitted.cuts:
        report["truncated"] = fitted.truncated()
    if shown.written:
        report["files"] = [WrittenFile(name=name, size=size) for name, size in shown.written.items()]
    if outcome.figures:
        report["images"] = [Image(mime_type=FIGURE_MIME_TYPE, size=len(figure)) for figure in outcome.figures]
    if outcome.session_ended is not None:
        report["session_ended"] = outcome.session_ended
    if shown.types:
        report["privacy"] = Hidden(hidden=dict(shown.types))
    return report
