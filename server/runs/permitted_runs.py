"""Security boundary: whether the policy lets somebody run code at an isolation, within these limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..policy.access import Decider, Ruling, run_access

if TYPE_CHECKING:
    from ...sandbox.job import Isolation, Limits
    from ..identity import Identity


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
    ruling = ruling_on_run(policy, who, isolation, limits, background=background, session=session)
    if not ruling.allowed:
        where = f"{isolation.value}, for {limits.timeout_seconds:g} s with {limits.memory_mb} MB"
        how = " in the background" * background + " in a session" * (session is not None)
        raise ruling.refusal(
            f"to run code at the isolation {where}{how}",
            "Ask for less, or for another isolation, or ask the operator to change the policy.",
        )


def ruling_on_run(
    policy: Decider,
    who: Identity,
    isolation: Isolation,
    limits: Limits,
    *,
    background: bool = False,
    session: str | None = None,
) -> Ruling:
    """Return what the policy says of a run."""
    access = run_access(
        isolation,
        timeout_seconds=limits.timeout_seconds,
        memory_mb=limits.memory_mb,
        background=background,
        session=session is not None,
    )
    return policy.decide(who, access)
