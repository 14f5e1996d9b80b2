"""The use case: run an agent's code and report what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from ....sandbox.errors import Busy
from ....sandbox.job import Failure, Isolation, Job, Outcome, Status
from ...base.errors import KNOWN_ERRORS
from ...base.host_call import Answers
from ...base.telemetry import tracing
from ...governance.caller import OnProgress
from ...privacy.gates.program_gate import with_values
from ..journal.journal import BegunRun
from .admission import admitted
from .aspects import (
    Audited,
    Counted,
    Filtered,
    Journaled,
    Observed,
    OddAnswers,
    Reported,
    RunCut,
    Shared,
    Sourced,
    TakenHome,
)
from .background.background_reports import cancelled
from .executor import Executor
from .files_home import accompanied
from .isolations import AUTO
from .ledger import note_use
from .placement.escalation import escalated, with_full_python_hint
from .placement.missing_packages import with_package_hint
from .placement.routing import routed
from .rebuilding import rebuild_of
from .reporting import report_of, with_pictures
from .request import CodeRequest, Execution, new_run_id
from .run import Aspect, Begun, Run

ASPECTS: tuple[type[Aspect], ...] = (
    *(Observed, Journaled, Filtered, Sourced, Counted, Audited),
    *(TakenHome, Reported, Shared, OddAnswers),
)
"""The aspects of every run, outermost first: they begin in this order and end in the reverse."""


async def execute(
    executor: Executor,
    request: CodeRequest,
    *,
    progress: OnProgress | None = None,
    recorded: Callable[[Answers], Answers] = lambda answer: answer,
) -> Execution:
    """Run the code and return its report, whatever came of it.

    `recorded` returns what answers host calls from the record of an earlier run, and beyond it as it is given.

    Raises `RequestRefused` for what the operator or the policy does not allow, and the sandbox's own errors where
    nothing ran. Cancelling the awaiting task kills the run. An operator can cancel it too: then there is a report.
    Where several servers are one sealab, a program runs on the one that has its session.
    """
    here = partial(execute_here, executor, request, progress=progress, recorded=recorded)
    if executor.places is None or request.session is None:
        return await here()
    return await executor.places.execute(executor, request, here, progress)


async def execute_here(
    executor: Executor,
    request: CodeRequest,
    *,
    progress: OnProgress | None = None,
    recorded: Callable[[Answers], Answers] = lambda answer: answer,
) -> Execution:
    """Run the code on this server and return its report; as `execute`."""
    run_id = request.run_id or new_run_id()
    try:
        job = await routed(executor, request, admitted(request, executor))
    except KNOWN_ERRORS as error:
        executor.audit.run_refused(request.caller, run_id, error)
        raise
    job, program = await with_values(executor.privacy, request.caller, job, run=run_id)
    journal = executor.journal.begin(
        BegunRun(
            run_id,
            job,
            request.caller.scope,
            request.session,
            request.dry_run,
            is_patient=request.outlives_worker,
            identity=request.caller.identity,
        )
    )

    def journaled(run: Run, answer: Answers) -> Answers:
        journal.notes(run.calls.approvals.as_texts)
        return journal.around(answer)

    begun = Begun(run_id, program, journal, journaled, recorded)
    until = asyncio.timeout(None)
    try:
        async with until:
            with executor.journal.cancellable(run_id, until):
                return await executed(executor, request, job, begun, progress)
    except TimeoutError:
        if not until.expired():
            raise
        return cancelled(run_id, await executor.cancelled.left_by(run_id))


async def executed(
    executor: Executor, request: CodeRequest, job: Job, begun: Begun, progress: OnProgress | None
) -> Execution:
    """Run a job whose journal has begun, and return its report; as `execute`."""
    link = request.asked_at or "" if request.background else None
    with tracing.span("sealab.run", {"sealab.run.id": begun.run_id}, link=link):
        async with Run.of(executor, request, job, begun, aspects=ASPECTS, progress=progress) as run:
            outcome = await run.ended(await _outcome(run))
        if executor.hints is not None and outcome.status is Status.OK and not request.dry_run:
            hint = executor.hints.of(request.caller, run.run_id, request.code)
            filters = hint is not None and executor.privacy.filters
            run.hint = await executor.privacy.hide_text(request.caller.scope, hint) if hint and filters else hint
        with tracing.phase("sealab.run.privacy"):
            shown, images = with_pictures(await run.shown(outcome), run.run_id, filters=executor.privacy.filters)
        with tracing.phase("sealab.run.archive"):
            fitted = await executor.archive.kept(
                run.run_id,
                owner=request.caller.scope,
                run=shown.run,
                output_max_chars=executor.settings.output_max_chars,
            )
        report = report_of(run, shown, fitted, images)
        note_use(run, outcome, report)
        label = {} if run.calls.sources is None else run.calls.sources.label
        return Execution(report, images, label)


async def _outcome(run: Run) -> Outcome:
    """Begin the run, have its code run, and return what came of it: `busy` where there was no place in time.

    Raises `RunCut` for a run that outlives its worker and has lost it.
    """
    try:
        await run.begin()
        outcome = await _computed(run)
    except Busy as busy:
        run.executor.audit.limited(run.request.caller, busy.limit)
        return Outcome(Status.BUSY, error=Failure("Busy", str(busy)), isolation=run.job.isolation)
    run.computed = time.time()
    if run.request.outlives_worker and outcome.status is Status.CRASHED and run.journal.leave_open():
        raise RunCut
    await run.confirm_session()
    return with_full_python_hint(run.job, outcome, lambda: run.executor.pools.offered)


async def _computed(run: Run) -> Outcome:
    """Run the code in a worker, or in full Python where the dialect refuses what that could run."""
    executor, request, job = run.executor, run.request, run.job
    answer = run.answer()
    recorder = run.journal.recorder(job.isolation)
    rebuild = None if recorder is None else rebuild_of(executor, request, job)
    running = executor.pools.run(job, answer, recorder, rebuild)
    outcome = await (running if job.isolation is not Isolation.PROCESS else accompanied(run.files, running))
    if request.isolation == AUTO:
        outcome = await escalated(
            executor,
            job,
            answer,
            outcome,
            caller=run.gate.caller,
            files=run.files,
            background=request.background,
            was_routed=True,
        )
    return await with_package_hint(executor.offer.full_python, outcome)
