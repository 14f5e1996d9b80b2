"""Reports of runs, made from their journals.

A security boundary: a journal holds what the code saw. A report that is made from it goes through the gate as the
report of a run does, once what the run was given is learned again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from .....sandbox.job import Failure, Isolation, Json, Outcome, Status
from .....workspace.names import RUNS
from ....base.host_work import Account
from ....governance.caller import Caller
from ....privacy.gates.run_gate import EndedRun, Gate
from ...journal.replaying import recorded_calls
from ..report import plain_report
from ..request import Execution
from ..truncation import fit
from .background_reports import without_result

if TYPE_CHECKING:
    from .....skills_db.journal.records import StoredJournal
    from ..executor import Executor


async def recorded(executor: Executor, record: StoredJournal) -> Execution:
    """Return the report of a run of which a journal says how it ended, with tokens in place of personal data."""
    run = record.run
    end = record.end
    if end is None:
        status = Status(run.status) if run.status in {each.value for each in Status} else Status.CRASHED
        message = "The run left no result. `sealab runs show` says what it had done."
        left = await executor.cancelled.left_by(run.run_id)
        if left is not None and "kept" in left.changes:
            message += f" What it wrote is kept below {RUNS}/{run.run_id}/files/."
        return without_result(run.run_id, status, "RunCut", message)
    outcome = await _shown(executor, record, _outcome_of(record, end))
    fitted = fit(
        outcome.result,
        outcome.output,
        stderr=outcome.stderr,
        notes=outcome.notes,
        max_chars=executor.settings.output_max_chars,
    )
    report = plain_report(run.run_id, outcome, fitted)
    if truncated := fitted.truncated():
        report["truncated"] = truncated
    return Execution(report)


async def _shown(executor: Executor, record: StoredJournal, outcome: Outcome) -> Outcome:
    account = Account.of(executor.settings.max_timeout_seconds)
    gate = Gate(executor.privacy, Caller(record.scope), account, run=record.run.run_id)
    for call in recorded_calls(record.records):
        await gate.learn_given(call.name, call.arguments, call.answer)
    return (await gate.shown(EndedRun(outcome))).run.outcome


def _outcome_of(record: StoredJournal, end: Mapping[str, object]) -> Outcome:
    run, error = record.run, cast("Mapping[str, object] | None", end["error"])
    return Outcome(
        status=Status(cast("str", end["status"])),
        result=cast("Json", end["result"]),
        output=cast("str", end["output"]),
        stderr=cast("str", end["stderr"]),
        error=None
        if error is None
        else Failure(
            cast("str", error["type"]),
            cast("str", error["message"]),
            cast("int | None", error["line"]),
            traceback=cast("str | None", error["traceback"]),
        ),
        notes=cast("Mapping[str, str]", end["notes"]),
        duration_ms=0.0 if run.ended is None else (run.ended - run.began) * 1000,
        isolation=Isolation(run.isolation),
    )
