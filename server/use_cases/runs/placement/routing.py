"""Sends a program to full Python before any of it runs, where it imports what only full Python has.

What a program imports is read by the dialect's compiler in a worker, where hostile source does no harm: it refuses the
program with the names of the modules that it does not have. A program whose text names none of the packages of full
Python is not looked at. An import that the code itself guards by `except ImportError` is no reason: it runs without.
A program that names a stored skill which only full Python can run goes there too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .....sandbox.errors import Busy, LevelMissing, SandboxError, WorkerLost
from .....sandbox.job import Isolation, Job, Limits, Outcome, SourceReading, Status
from .....skills_db.errors import SkillsDbError
from ....base.errors import PolicyRefused, RequestRefused
from ....base.host_work import Kind, in_thread
from ....base.settings import Switch
from ....governance.rights import ISOLATIONS, missing
from ...managed_python.full_python import BELOW_KERNEL, READ_ONLY
from ..admission import permit_run
from ..isolations import AUTO

if TYPE_CHECKING:
    from .....sandbox.host.pools import Pools
    from ....base.settings import Settings
    from ....governance.caller import Caller
    from ..executor import Executor
    from ..request import CodeRequest

_JUDGING_SECONDS = 10.0
"""The most that reading a program may take."""


async def routed(executor: Executor, request: CodeRequest, job: Job) -> Job:
    """Return the job of a request for `auto`, at `process` where that alone can run it and the caller may.

    A session stays where it is: one that is new begins where its first program can run. Raises `RequestRefused` for
    `process` asked for by name where full Python, offered by default, cannot start or cannot write to the workspace.
    """
    full_python = executor.offer.full_python
    if job.isolation is Isolation.PROCESS:
        if full_python.is_default and not await can_start(executor):
            raise RequestRefused(f"{full_python.why_not() or full_python.failed} {executor.offer.others()}")
        return job
    if request.isolation != AUTO or job.isolation is not Isolation.RESTRICTED or full_python.why_not() is not None:
        return job
    imports = full_python.is_imported_by(job.code)
    if not imports and not (named := skills_in(job.code)):
        return job
    if why_not_for(executor, job, request.caller, background=request.background) is not None:
        return job
    if job.session is not None and await _has_begun(executor, request, job.session):
        return job
    needs = await _imports(executor, job) if imports else await _uses_skill(executor, job, named)
    if not needs or not await can_start(executor):
        return job
    return replace(job, isolation=Isolation.PROCESS)


async def _imports(executor: Executor, job: Job) -> bool:
    outcome = await _read(executor, job)
    refusal = None if outcome is None else outcome.refusal
    return refusal is not None and executor.offer.full_python.has_one_of(refusal.modules)


async def _uses_skill(executor: Executor, job: Job, named: Collection[str]) -> bool:
    if executor.wider_skills is None:
        return False
    try:
        wider = frozenset(await executor.wider_skills(named))
    except SkillsDbError:
        return False  # the program gets the error when it uses the skill
    if not wider:
        return False
    outcome = await _read(executor, job)
    result = outcome.result if outcome is not None and isinstance(outcome.result, Mapping) else {}
    used = result.get("skills")
    if not isinstance(used, Sequence):
        return outcome is not None and outcome.refusal is None  # its source says no more than its text did
    return not wider.isdisjoint({*map(str, used), *_CALLED_SKILL.findall(job.code)})


def why_not_for(
    executor: Executor, job: Job, caller: Caller, *, background: bool, isolation: Isolation = Isolation.PROCESS
) -> str | None:
    """Return why this caller may not have the job run in full Python, or in a container; None where it may."""
    where = "A container" if isolation is Isolation.CONTAINER else "Full Python"
    if lacks := list(missing(caller.identity, ISOLATIONS[isolation])):
        return f"{where} could run it, for which the token lacks the scope {' '.join(lacks)}."
    try:
        permit_run(executor.policy, caller.identity, isolation, job.limits, background=background, session=job.session)
    except PolicyRefused as refused:
        return f"{where} could run it, but: {refused}"
    return None


async def _has_begun(executor: Executor, request: CodeRequest, session: str) -> bool:
    """Return whether a session is alive, or its journal could give it back: its variables are the dialect's.

    One that cannot be given back, as none of full Python can, begins anew wherever it goes on.
    """
    if executor.pools.home_of(session) is not None:
        return True
    if executor.settings.journal is Switch.OFF:
        return False
    name, scope = request.session or "", request.caller.scope
    try:
        kept = await in_thread(Kind.DATABASE, lambda: executor.journal.session(scope, name), charged=False)
    except SkillsDbError:
        return True  # which says so where it is rebuilt
    return kept.gap is None and bool(kept.programs)


async def _read(executor: Executor, job: Job) -> Outcome | None:
    limits = Limits(min(job.limits.timeout_seconds, _JUDGING_SECONDS), job.limits.memory_mb, job.limits.pids_max)
    reading = Job(job.code, limits=limits, caller=job.caller, tenant=job.tenant, reads=SourceReading("program"))
    try:
        return await executor.pools.run(reading, _no_calls)
    except (Busy, SandboxError):
        return None  # the run itself says so


def skills_in(code: str) -> frozenset[str]:
    """Return the names of skills that the text of a program looks as if it used."""
    if "skill" not in code:
        return frozenset()
    named = {name for found in _SKILL.findall(code) for name in found if name}
    for imported in _FROM_SKILLS.findall(code):
        named.update(_NAME.findall(imported))
    return frozenset((*named, *_CALLED_SKILL.findall(code)))


_SKILL = re.compile(r"""\bskills\s*(?:\.\s*(\w+)|\[\s*["'](\w+))|\bload_skill\(\s*["'](\w+)""")
_CALLED_SKILL = re.compile(r"""\bcall_skill\(\s*["'](\w+)""")
_FROM_SKILLS = re.compile(r"\bfrom\s+skills\s+import\s*(\([^()]*\)|[^\n]*)")
_NAME = re.compile(r"[^\W\d]\w*")


async def can_start(executor: Executor) -> bool:
    """Return whether a worker of full Python can be made, found out by making the first.

    Where nobody asked for it by name, it must be able to write to the workspace too. Calls that come together wait for
    one attempt. One that failed is tried again by a later call: `full_python.failed` says why it failed.
    """
    full_python = executor.offer.full_python
    if full_python.has_started():
        return True
    failures = full_python.failures
    async with full_python.starting:
        if full_python.has_started():
            return True
        if full_python.failures != failures or full_python.why_not() is not None:
            return False
        return await _started(executor)


async def _started(executor: Executor) -> bool:
    full_python = executor.offer.full_python
    try:
        await executor.pools.ready(Isolation.PROCESS)
        is_whole = not full_python.is_default or await writes_workspace(executor.pools, executor.settings)
    except LevelMissing as lacking:
        full_python.has_failed(f"{BELOW_KERNEL} The start ended with: {lacking}")
        return False
    except WorkerLost as lost:
        full_python.has_failed(f"Full Python does not start: {lost}")
        return False
    except Busy:
        return True  # the run itself says so
    if not is_whole:
        if (why := executor.pools.stats()[Isolation.PROCESS].read_only) is None:
            full_python.cannot(READ_ONLY)
        else:
            full_python.has_failed(f"Full Python cannot write to the workspace: {why}.")
        return False
    full_python.has_worked()
    return True


async def writes_workspace(pools: Pools, settings: Settings) -> bool:
    """Return whether the workspace is the current folder of full Python, which then writes to it.

    Raises `SandboxError` where no worker can say so.
    """
    limits = Limits(settings.timeout_seconds, settings.memory_mb, settings.pids_max)
    job = Job("__import__('os').getcwd() == '/workspace'", limits=limits, isolation=Isolation.PROCESS)
    outcome = await pools.run(job, _no_calls)
    if outcome.status is not Status.OK:
        said = outcome.status.value if outcome.error is None else outcome.error.message
        raise WorkerLost(f"its first program did not run ({said.rstrip('.')}).")
    return outcome.result is True


async def _no_calls(name: str, _arguments: object) -> None:
    raise SandboxError(f"{name} was called by code that is only read.")
