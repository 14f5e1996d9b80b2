"""The use case: go on with a run that was cut, by a crash, a kill or a restart of its server.

The program is run again from its beginning, with its seed, its clock and its variables, and its calls are answered from
its journal up to where that ends. From there on it goes on live, and the same journal records it. A call that may have
changed something and whose outcome is not recorded is not sent again: the code gets `OutcomeUnknown`.

Its time limit counts anew. Its temporary files are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Isolation, Job, Json
from ...base.errors import RequestRefused
from ...base.host_call import Answers
from ...base.host_work import Kind, in_thread
from ...base.settings import Settings
from ...governance.caller import Ask, Caller, OnProgress
from ...governance.scopes import kept_identity, session_of
from ...privacy.gates.program_gate import ProgramTokens
from ..host_functions.skill_calls import take_again
from ..journal.journal import BegunRun
from ..journal.replaying import RecordedCall, RunResume, recorded_calls, said_by_user
from .admission import permit_run
from .execute import executed
from .recorded_runs import job_of
from .request import CodeRequest, Execution
from .run import Begun, Run

if TYPE_CHECKING:
    from .executor import Executor


async def resume(
    executor: Executor,
    run_id: str,
    *,
    ask: Ask | None = None,
    scope: str | None = None,
    progress: OnProgress | None = None,
    background: bool = False,
    outlives_worker: bool = False,
) -> Execution:
    """Go on with a run of a scope, or of any, that was cut, and return its report; see `CodeRequest.outlives_worker`.

    It goes on with the identity that it was begun with, by the policy of now. Of two that try, one goes on. Raises
    `RunNotCut` where it has ended or a process is at work on it, `RequestRefused` where it cannot be run again or the
    policy refuses it, and what reading its journal raises.
    """
    journal = executor.journal
    record = await in_thread(Kind.DATABASE, lambda: journal.store().journal(run_id, scope=scope), charged=False)
    name = record.run.session
    session = None if name is None else session_of(record.scope, name)
    identity = kept_identity(cast("Mapping[str, Json]", record.header).get("identity"), record.scope)
    limits = _within_maxima(job_of(record, session, was_cut=True), executor.settings).limits
    permit_run(executor.policy, identity, Isolation.RESTRICTED, limits, background=background, session=session)
    if name is not None:
        await _check_session(executor, record.scope, name, record.after)
    record = await in_thread(Kind.DATABASE, partial(journal.resume, run_id, scope), charged=False)
    job = _within_maxima(job_of(record, session, was_cut=True), executor.settings)
    request = CodeRequest(
        job.code,
        session=name,
        isolation=Isolation.RESTRICTED,
        dry_run=record.header["dry_run"] is True,
        caller=Caller(record.scope, ask, identity),
        background=background,
        outlives_worker=outlives_worker,
    )
    begun_run = BegunRun(
        run_id, job, record.scope, name, request.dry_run, is_patient=outlives_worker, identity=identity
    )
    going_on = journal.going_on(record, begun_run)

    def journaled(run: Run, answer: Answers) -> Answers:
        async def note(call: RecordedCall) -> None:
            run.calls.note_made_before(call.name, call.arguments, ok=call.succeeded, ms=call.ms or 0.0)
            take_again(run.calls, call.name, call.arguments, call.answer)
            await run.gate.learn_given(call.name, call.arguments, call.answer)
            if run.calls.sources is not None:
                await run.calls.sources.note_recorded(call)

        going_on.notes(run.calls.approvals.as_texts)
        run.calls.approvals.restore(said_by_user(record.records))
        return RunResume(recorded_calls(record.records), going_on, answer, note).answer

    begun = Begun(run_id, ProgramTokens(literals=job.literals), going_on, journaled)
    return await executed(executor, request, job, begun, progress)


def _within_maxima(job: Job, settings: Settings) -> Job:
    """Return a job under the limits that it was accepted with, or the maxima where the operator has lowered these."""
    timeout_seconds = min(job.limits.timeout_seconds, settings.max_timeout_seconds)
    memory_mb = min(job.limits.memory_mb, settings.max_memory_mb)
    return replace(job, limits=replace(job.limits, timeout_seconds=timeout_seconds, memory_mb=memory_mb))


async def _check_session(executor: Executor, scope: str, name: str, after: str | None) -> None:
    session = await in_thread(Kind.DATABASE, lambda: executor.journal.session(scope, name), charged=False)
    last = session.programs[-1] if session.programs else None
    if session.gap is not None or last != after:
        why = session.gap or "it went on with other programs, or was closed"
        raise RequestRefused(
            f"The run cannot be taken up, since its session {name!r} is not as it found it: {why}. Run its program in "
            "a new session; `sealab runs show` shows what it did."
        )
