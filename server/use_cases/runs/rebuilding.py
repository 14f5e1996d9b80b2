"""Rebuilds a session that has lost its worker: runs its programs again in a new one, on their recorded answers.

Nothing is sent anew. What is rebuilt is the session as its last program left it that ended by itself; where its
programs do not do again what is recorded, or take too long, the session ends, and the report says why.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ....sandbox.errors import SessionNotRebuilt, SessionRefused
from ....sandbox.job import Isolation, Job, Outcome, Rebuild, RunBefore
from ....skills_db.errors import DatabaseUnreachable, SkillsDbError
from ...base.errors import ServerError
from ...base.host_work import Kind, in_thread
from .recorded_runs import again, job_of

if TYPE_CHECKING:
    from ....skills_db.journal.records import SessionPrograms
    from .executor import Executor
    from .request import CodeRequest

_WALL_SECONDS_MORE = 5.0
_WALL_FACTOR = 4.0
"""How long a program may take by the wall clock for what it may use of the processor: the machine may be busy."""


def rebuild_of(executor: Executor, request: CodeRequest, job: Job) -> Rebuild | None:
    """Return what rebuilds the session of a job, if it has one that can be rebuilt."""
    if request.session is None or job.isolation is not Isolation.RESTRICTED:
        return None
    return partial(_rebuild, executor, job, request.session)


async def _rebuild(executor: Executor, job: Job, name: str, run: RunBefore) -> int:
    """Run the programs of a session again and return how many. Raises `SessionNotRebuilt` or `SessionRefused`."""
    journal = executor.journal
    try:
        session = await in_thread(Kind.DATABASE, lambda: journal.session(job.caller, name), charged=False)
    except DatabaseUnreachable as error:
        raise SessionRefused(
            f"The session {name!r} has lost its process, and its journal cannot be read now: {error} Nothing of this "
            "call ran; make it again then."
        ) from error
    except SkillsDbError as error:
        raise SessionNotRebuilt(f"its process ended, and its journal cannot be read: {error}") from error
    if session.gap is None and not session.programs:
        return 0
    try:
        await _run_all(executor, job, session, run)
    except SessionNotRebuilt:
        with suppress(SkillsDbError):
            await journal.close_session(job.caller, name)
        raise
    journal.rebuilt(job.session or "", session.programs[-1])
    return len(session.programs)


async def _run_all(executor: Executor, job: Job, session: SessionPrograms, run: RunBefore) -> None:
    if session.gap is not None:
        raise SessionNotRebuilt(session.gap)
    programs = session.programs
    left = total = executor.settings.session_rebuild_seconds
    for number, run_id in enumerate(programs, 1):
        which = f"program {number} of {len(programs)} ({run_id})"
        try:
            record = await in_thread(
                Kind.DATABASE, partial(executor.journal.store().journal, run_id, scope=job.caller), charged=False
            )
            before = job_of(record, job.session)
        except (SkillsDbError, ServerError) as error:
            raise SessionNotRebuilt(f"its process ended, and {which} cannot be run again: {error}") from error
        seconds = min(before.limits.timeout_seconds, left * _WALL_FACTOR + _WALL_SECONDS_MORE)
        before = replace(before, limits=replace(before.limits, timeout_seconds=seconds))
        replayed = await again(run, record, job=before)
        left -= _cpu_seconds(replayed.outcome)
        if left < 0:
            raise SessionNotRebuilt(
                f"its process ended, and to run its {len(programs)} programs again takes more than the {total:g} "
                "seconds that SESSION_REBUILD_SECONDS allows"
            )
        if replayed.difference is not None:
            raise SessionNotRebuilt(f"its process ended, and {which} did something else again: {replayed.difference}")


def _cpu_seconds(outcome: Outcome) -> float:
    return (outcome.duration_ms if outcome.cpu_ms is None else outcome.cpu_ms) / 1000
