"""The use case: run a program again from its journal, and say whether it does the same.

In a replay nothing is sent to anybody: each call is answered from the record. A program of a session needs those before
it, which are run again first, in a session of its own. Code that was edited makes calls from its first new one on.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from ...sandbox.host.pools import Pools
from ...sandbox.job import Isolation, Job, Json, Limits, Outcome, Start
from ..caller import Caller
from ..errors import RequestRefused
from ..host_work import Kind, in_thread
from ..journal.journal import Journal
from ..journal.recording import told_of
from ..journal.replaying import RunReplay, recorded_calls
from .execute import CodeRequest, execute

if TYPE_CHECKING:
    from ...skills_db.journal.records import Journal as RunRecord
    from .executor import Executor
    from .report import Report

_COMPARED = ("status", "error", "result", "output", "stderr")
_SHOWN_CHARS_MAX = 200
_BEFORE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run that was run again: `difference` is the first one from what is recorded, or None."""

    run_id: str
    outcome: Outcome
    answered: int
    difference: str | None


async def replay(pools: Pools, journal: Journal, run_id: str) -> Replayed:
    """Run a program again, and those of its session before it; the first that differs is the last to be run.

    Raises `RequestRefused` where a run cannot be replayed, and what reading its journal raises.
    """
    programs = await in_thread(Kind.DATABASE, lambda: journal.store().session_until(run_id))
    session = None if len(programs) == 1 else f"replay/{secrets.token_hex(8)}"
    try:
        for each in programs:
            record = await in_thread(Kind.DATABASE, partial(_read, journal, each))
            replayed = await _again(pools, record, session)
            if replayed.difference is not None:
                break
    finally:
        if session is not None:
            await pools.end_session(session)
    return replayed


async def replay_edited(executor: Executor, run_id: str, code: str, *, caller: Caller) -> tuple[Report, RunReplay]:
    """Run other code on the recorded answers of a run, with its variables, random numbers and time.

    From the first call on that the run did not make, calls are made: `caller` is asked where a user has to approve.
    Raises `RequestRefused` where that cannot be done, and what reading the journal raises.
    """
    record = await in_thread(Kind.DATABASE, partial(_read, executor.journal, run_id))
    if record.run.number:
        raise RequestRefused(
            f"The run {run_id} is program {record.run.number} of the session {record.run.session!r}, and needs what "
            "those before it left. Edit a run without a session, or the first of one."
        )
    job = _job(record, None)
    request = CodeRequest(
        code,
        context_vars=job.context_vars,
        timeout_seconds=min(job.limits.timeout_seconds, executor.settings.max_timeout_seconds),
        memory_mb=min(job.limits.memory_mb, executor.settings.max_memory_mb),
        isolation=Isolation.RESTRICTED,
        dry_run=record.header["dry_run"] is True,
        caller=caller,
        arguments=job.arguments,
        start=job.start,
    )
    answers = RunReplay(recorded_calls(record.records), edited=True)
    return (await execute(executor, request, recorded=answers.before)).report, answers


def _read(journal: Journal, run_id: str) -> RunRecord:
    return journal.store().journal(run_id)


async def _again(pools: Pools, record: RunRecord, session: str | None) -> Replayed:
    answers = RunReplay(recorded_calls(record.records))
    outcome = await pools.run(_job(record, session), answers.answer)
    difference = None if answers.diverged is None else _where(outcome, f"{answers.diverged}")
    if difference is None and outcome.diverged:
        difference = _where(outcome, "" if outcome.error is None else outcome.error.message)
    if difference is None:
        difference = _first_difference(record, outcome)
    return Replayed(record.run.run_id, outcome, answers.answered, difference)


def _job(record: RunRecord, session: str | None) -> Job:
    header = cast("Mapping[str, Json]", record.header)
    _check(record, header)
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
        start=Start(bytes.fromhex(cast("str", header["seed"])), cast("int", header["time_ns"])),
        trace=record.trace,
    )


def _check(record: RunRecord, header: Mapping[str, Json]) -> None:
    """Raise `RequestRefused` for a run that cannot be run again from its journal."""
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
    if run.ended is None:
        raise RequestRefused(
            f"The run {run.run_id} has no end: it still runs, or was cut. `sealab runs show` shows what there is."
        )


def _where(outcome: Outcome, what: str) -> str:
    line = None if outcome.error is None else outcome.error.line
    return what if line is None else f"line {line}: {what}"


def _first_difference(record: RunRecord, outcome: Outcome) -> str | None:
    ends = [each.value for each in record.records if each.kind == _END]
    recorded: Mapping[str, object] = ends[-1] if ends else {}
    now = json.loads(json.dumps(told_of(outcome)))
    for name in _COMPARED:
        if recorded.get(name) != now[name]:
            return f"{name} was {_shown(recorded.get(name), now[name])} and is {_shown(now[name], recorded.get(name))}"
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


_END = 4
