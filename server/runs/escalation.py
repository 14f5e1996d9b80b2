"""What becomes of code that the dialect refused though full Python might run it: a container, or a hint at one."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ...sandbox.errors import ContainerMissing, WorkerLost
from ...sandbox.guest_names import needs_network
from ...sandbox.job import HostCalls, Isolation, Job, Outcome, Refusal
from ..errors import PolicyRefused
from ..rights import ISOLATIONS, missing
from ..startup.package_names import distribution_of
from .permitted_runs import permit_run

if TYPE_CHECKING:
    from ..caller import Ask, Caller
    from .executor import Executor

_LOG = logging.getLogger(__name__)
_HELPERS = frozenset({"mcp", "skills", "tools"})
"""Modules that are made of sealab's own helpers: no container has more of them."""


async def escalated(
    executor: Executor, job: Job, calls: HostCalls, outcome: Outcome, *, caller: Caller, background: bool = False
) -> Outcome:
    """Return what a container makes of refused code, or the refusal with a hint that says what would allow it.

    A refused run has not begun, so that in the container is its first. A session stays where it is. Where the operator
    set APPROVE_CONTAINER, the user of `caller` is asked first.
    """
    if outcome.refusal is None or outcome.isolation is not Isolation.RESTRICTED:
        return outcome
    obstacle = _obstacle(executor, job, outcome.refusal)
    if obstacle is None and (lacks := list(missing(caller.identity, ISOLATIONS[Isolation.CONTAINER]))):
        obstacle = f"A container could run it, for which the token lacks the scope {' '.join(lacks)}."
    if obstacle is None:
        obstacle = _not_permitted(executor, job, caller, background=background)
    if obstacle is None and executor.settings.approve_container:
        obstacle = await _not_approved(outcome, caller.ask)
    if obstacle is None:
        try:
            return await executor.pools.run(replace(job, isolation=Isolation.CONTAINER), calls)
        except (ContainerMissing, WorkerLost) as error:
            _LOG.warning("Refused code could not run in a container: %s", error)
            obstacle = f"In a container it could run, but: {error}"
    if outcome.refusal.module is not None and job.session is None:
        # What to use instead of a module, the hint says already; what would make it available, only the operator can.
        _LOG.info("%s was refused. %s", outcome.refusal.module, obstacle)
        return outcome
    return _hinted(outcome, obstacle)


def _not_permitted(executor: Executor, job: Job, caller: Caller, *, background: bool) -> str | None:
    """Say that the policy does not let the code run in a container, or None where it does."""
    try:
        permit_run(
            executor.policy,
            caller.identity,
            Isolation.CONTAINER,
            job.limits,
            background=background,
            session=job.session,
        )
    except PolicyRefused as refused:
        return f"A container could run it, but: {refused}"
    return None


async def _not_approved(outcome: Outcome, ask: Ask | None) -> str | None:
    """Ask the user whether the code may run in a container; say what is in the way, or None after a yes."""
    if ask is None:
        return (
            "A container could run it once a user approves, whom this client cannot ask: the operator can set "
            'APPROVE_CONTAINER to false, or the request can ask for isolation="container".'
        )
    reason = "" if outcome.error is None else f" The sandbox refused it: {outcome.error.message}."
    if await ask(f"May this code run in a container, with full Python but no network?{reason}", ()) is not None:
        return None
    return "The user did not approve running it in a container."


def _obstacle(executor: Executor, job: Job, refusal: Refusal) -> str | None:
    """Say why a container cannot take the code and what would change that (or nothing), or None where it can."""
    package = None if refusal.module is None else refusal.module.partition(".")[0]
    if package in _HELPERS or (package is not None and needs_network(package)):
        return ""
    if package in sys.stdlib_module_names:
        package = None
    if package is None and refusal.module is not None and Isolation.CONTAINER in executor.offer.missing:
        return ""  # what a container has of the standard library reaches no further than what the hint names
    if Isolation.CONTAINER not in executor.settings.allowed_isolation:
        return "A container could run it; for that the operator has to add container to ALLOWED_ISOLATION."
    if Isolation.CONTAINER in executor.offer.missing:
        wanted = f" `sealab container build{_with(package)}` makes one with that package." if _with(package) else ""
        return f"A container could run it. {executor.offer.missing[Isolation.CONTAINER]}{wanted}"
    image = executor.offer.image
    if package is not None and image is not None and image.root is not None and package not in image.modules:
        return (
            f"The image that containers run has no module {package}; the operator can add its package with "
            f"`sealab container build{_with(package) or ' --with PACKAGE'}`."
        )
    if job.session is not None:
        return 'In a session of its own it can run in a container: give another session name and isolation="container".'
    return None


def _with(module: str | None) -> str:
    """Return the option that names the distribution of a module; empty where that is not known."""
    package = None if module is None else distribution_of(module)
    return "" if package is None else f" --with {package}"


def _hinted(outcome: Outcome, told: str) -> Outcome:
    if outcome.error is None or not told:
        return outcome
    hint = told if outcome.error.hint is None else f"{outcome.error.hint} {told}"
    return replace(outcome, error=replace(outcome.error, hint=hint))
