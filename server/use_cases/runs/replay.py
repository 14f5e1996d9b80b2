"""The use case: run a program again from its journal, and report whether it does the same.

In a replay nothing is sent to anybody: each call is answered from the record. A program of a session needs those before
it, which are run again first, in a session of its own. Code that was edited makes calls from its first new one on.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

from ....sandbox.host.pools import Pools
from ....sandbox.job import Isolation
from ...base.errors import RequestRefused
from ...base.host_work import Kind, in_thread
from ...governance.caller import Caller
from ..journal.journal import Journal
from ..journal.replaying import RunReplay, recorded_calls
from .execute import execute
from .recorded_runs import Replayed, again, job_of
from .request import CodeRequest

if TYPE_CHECKING:
    from ....skills_db.journal.records import StoredJournal
    from .executor import Executor
    from .report import Report


async def replay(pools: Pools, journal: Journal, run_id: str) -> Replayed:
    """Run a program again, and those of its session before it; the first that differs is the last to be run.

    Raises `RequestRefused` where a run cannot be replayed, and what reading its journal raises.
    """
    programs = await in_thread(Kind.DATABASE, lambda: journal.store().session_until(run_id))
    session = None if len(programs) == 1 else f"replay/{secrets.token_hex(8)}"
    try:
        for each in programs:
            record = await in_thread(Kind.DATABASE, partial(_read, journal, each))
            replayed = await again(pools.run, record, session)
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
    job = job_of(record)
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


def _read(journal: Journal, run_id: str) -> StoredJournal:
    return journal.store().journal(run_id)
