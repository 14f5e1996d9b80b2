"""Makes jobs of recorded runs, runs them on the recorded answers, and finds the first difference from the record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Isolation, Job, Json, Limits, Outcome, RunBefore, Start
from ...base.errors import RequestRefused
from ...base.host_call import for_worker
from ..journal.recording import outcome_record
from ..journal.replaying import RunReplay, recorded_calls

if TYPE_CHECKING:
    from ....skills_db.journal.records import StoredJournal

_COMPARED = ("status", "error", "result", "output", "output_sha256", "stderr", "stderr_sha256")
_SHOWN_CHARS_MAX = 200
_BEFORE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run that was run again: `difference` is the first one from what is recorded, or None."""

    run_id: str
    outcome: Outcome
    answered: int
    difference: str | None


def job_of(record: StoredJournal, session: str | None = None, *, was_cut: bool = False) -> Job:
    """Return the job of a recorded run, in a session of this name. One that `was_cut` has no end.

    Raises `RequestRefused` where it cannot be run again.
    """
    header = cast("Mapping[str, Json]", record.header)
    _check(record, header, was_cut=was_cut)
    limits = Limits(
        timeout_seconds=cast("float", header["timeout_seconds"]),
        memory_mb=cast("int", header["memory_mb"]),
        pids_max=cast("int", header["pids_max"]),
    )
    return Job(
        code=cast("str", header["code"]),
        context_vars=cast("Mapping[str, Json]", header["context_vars"]),
        limits=limits,
        session=session,
        caller=record.scope,
        arguments=tuple(cast("list[str]", header["arguments"])),
        literals=cast("Mapping[str, Json]", header["literals"]),
        tells_reads=header["tells_reads"] is True,
        start=Start(bytes.fromhex(cast("str", header["seed"])), cast("int", header["time_ns"])),
        trace=record.trace,
    )


async def again(
    run: RunBefore, record: StoredJournal, session: str | None = None, *, job: Job | None = None
) -> Replayed:
    """Run a recorded program on its recorded answers alone, as `job` if there is one. Raises as `job_of`."""
    answers = RunReplay(recorded_calls(record.records))
    outcome = await run(job or job_of(record, session), for_worker(answers.answer))
    difference = None if answers.diverged is None else _where(outcome, f"{answers.diverged}")
    if difference is None and outcome.diverged:
        difference = _where(outcome, "" if outcome.error is None else outcome.error.message)
    if difference is None:
        difference = _first_difference(record, outcome)
    return Replayed(record.run.run_id, outcome, answers.answered, difference)


def _check(record: StoredJournal, header: Mapping[str, Json], *, was_cut: bool) -> None:
    run = record.run
    if run.isolation != Isolation.RESTRICTED or header["seed"] is None:
        raise RequestRefused(
            f"The run {run.run_id} ran at the isolation {run.isolation}, where nothing says what full Python met. "
            "Runs at the isolation restricted can be replayed; `sealab runs show` shows this one."
        )
    if run.incomplete is not None:
        raise RequestRefused(
            f"The journal of the run {run.run_id} is incomplete, so it cannot be replayed: {run.incomplete} "
            "`sealab runs show` shows what there is."
        )
    if run.ended is None and not was_cut:
        raise RequestRefused(
            f"The run {run.run_id} has no end: it still runs, or was cut. `sealab runs show` shows what there is, and "
            "`sealab runs resume` goes on with it."
        )


def _where(outcome: Outcome, what: str) -> str:
    line = None if outcome.error is None else outcome.error.line
    return what if line is None else f"line {line}: {what}"


def _first_difference(record: StoredJournal, outcome: Outcome) -> str | None:
    recorded = record.end or {}
    now = json.loads(json.dumps(outcome_record(outcome)))
    for name in _COMPARED:
        was, is_now = recorded.get(name), now.get(name)
        if was != is_now:
            return f"{name} was {_shown(was, is_now)} and is {_shown(is_now, was)}"
    return None


def _shown(value: object, other: object) -> str:
    """Return a value as text, from a little before the place where it differs from the other."""
    text, beside = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in (value, other))
    at = next((at for at, pair in enumerate(zip(text, beside, strict=False)) if len(set(pair)) > 1), 0)
    start = max(at - _BEFORE_CHARS, 0)
    shown = text[start : start + _SHOWN_CHARS_MAX]
    return json.dumps(
        f"{'…' if start else ''}{shown}{'…' if start + len(shown) < len(text) else ''}", ensure_ascii=False
    )
