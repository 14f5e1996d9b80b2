"""Security boundary: the job that a request becomes, within what the operator, the rights and the policy allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ....sandbox.job import Isolation, Job, Limits, Start
from ...base.errors import RequestRefused
from ...governance.policy.access import Decider, run_access
from ...governance.rights import ISOLATIONS, require
from ...governance.scopes import session_of
from .isolations import AUTO

if TYPE_CHECKING:
    from ...base.identity import Identity
    from .executor import Executor
    from .request import CodeRequest


def admitted(request: CodeRequest, executor: Executor) -> Job:
    """Return the job. Raises `RequestRefused` for what is above a maximum, which is never clamped, or not permitted."""
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


def permit_run(
    policy: Decider,
    who: Identity,
    isolation: Isolation,
    limits: Limits,
    *,
    background: bool = False,
    session: str | None = None,
) -> None:
    """Raise `PolicyRefused` for a run that the policy does not permit."""
    access = run_access(
        isolation,
        timeout_seconds=limits.timeout_seconds,
        memory_mb=limits.memory_mb,
        background=background,
        session=session is not None,
    )
    ruling = policy.decide(who, access)
    if not ruling.allowed:
        where = f"{isolation.value}, for {limits.timeout_seconds:g} s with {limits.memory_mb} MB"
        how = " in the background" * background + " in a session" * (session is not None)
        raise ruling.refusal(
            f"to run code at the isolation {where}{how}",
            "Ask for less, or for another isolation, or ask the operator to change the policy.",
        )


def can_park(executor: Executor, request: CodeRequest) -> bool:
    """Return whether a run could go on after its worker is gone: it is recorded, in `restricted`, and permitted."""
    may_escalate = request.isolation == AUTO and executor.settings.approve_container
    return (
        executor.journal.keeps
        and request.session is None
        and not may_escalate
        and request.isolation in {AUTO, Isolation.RESTRICTED}
        and _may_go_on(executor, request)
    )


def _may_go_on(executor: Executor, request: CodeRequest) -> bool:
    try:
        admitted(replace(request, background=True), executor)
    except RequestRefused:
        return False
    return True
