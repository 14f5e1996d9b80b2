"""What becomes of code that full Python would run, or run faster: it runs there, or a hint says how."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from .....sandbox.errors import ContainerMissing, WorkerLost
from .....sandbox.guest_names import needs_network
from .....sandbox.job import HostCalls, Isolation, Job, Outcome, Refusal, Status
from ....base.host_work import Kind, in_thread
from ....base.startup.package_names import distribution_of, installed_distributions
from ....governance.questions import Question
from ..files_home import FilesHome, accompanied
from ..isolations import allowed_isolations
from .missing_packages import HELPERS, hinted
from .routing import can_start, why_not_for

if TYPE_CHECKING:
    from ....governance.caller import Ask, Caller
    from ...managed_python.full_python import FullPythonInterpreter
    from ..executor import Executor

_LOG = logging.getLogger(__name__)
_COMPUTED_SHARE = 0.3
"""Of the time of a run: one that computed for less of it waited, for a tool, a sleep or its turn."""


async def escalated(
    executor: Executor,
    job: Job,
    calls: HostCalls,
    outcome: Outcome,
    *,
    caller: Caller,
    files: FilesHome | None = None,
    background: bool = False,
    was_routed: bool = False,
) -> Outcome:
    """Return what full Python makes of refused code, or the refusal with a hint that says what would allow it.

    That is `process` where it has a module that was refused, else a container. A refused run has not begun, so that
    there is its first. A session stays where it is. Where the operator set APPROVE_CONTAINER, the user of `caller` is
    asked before a container is used. Of a job that `was_routed` it was tried already whether full Python starts.
    """
    refusal = outcome.refusal
    if refusal is None or outcome.isolation is not Isolation.RESTRICTED:
        return outcome
    await in_thread(Kind.FILES, installed_distributions, charged=False)
    full_python = executor.offer.full_python
    if (full_python.why_not() is None or full_python.obstacle) and full_python.has_one_of(refusal.modules):
        in_process = _obstacle_of_process(executor, job, caller, background=background)
        may_try = full_python.why_not() is None and not (was_routed and full_python.obstacle)
        if in_process is None and may_try and await can_start(executor):
            return await accompanied(files, executor.pools.run(replace(job, isolation=Isolation.PROCESS), calls))
        if in_process is None and (in_process := _of_failure(full_python)) is not None:
            outcome = hinted(outcome, "", in_vain=True)
        if in_process is not None and (job.session is not None or Isolation.CONTAINER not in executor.pools.offered):
            return hinted(outcome, in_process, in_vain=True)
    if (advice := full_python.set_up_for(refusal.modules)) is not None:
        return hinted(outcome, advice)
    obstacle = _obstacle(executor, job, refusal)
    if obstacle is None:
        obstacle = why_not_for(executor, job, caller, background=background, isolation=Isolation.CONTAINER)
    if obstacle is None and executor.settings.approve_container:
        obstacle = await _not_approved(outcome, caller.ask)
    if obstacle is None:
        try:
            return await executor.pools.run(replace(job, isolation=Isolation.CONTAINER), calls)
        except (ContainerMissing, WorkerLost) as error:
            _LOG.warning("Refused code could not run in a container: %s", error)
            obstacle = f"In a container it could run, but: {error}"
    if refusal.module is not None and job.session is None:
        # What to use instead of a module, the hint says already; what would make it available, only the operator can.
        _LOG.info("%s was refused. %s", refusal.module, obstacle)
        return outcome
    return hinted(outcome, obstacle)


def with_full_python_hint(job: Job, outcome: Outcome, offered: Callable[[], Collection[Isolation]]) -> Outcome:
    """Return the outcome with a hint at full Python, where that may be asked for and would be faster."""
    if (
        outcome.status is not Status.TIMEOUT
        or outcome.isolation is not Isolation.RESTRICTED
        or outcome.error is None
        or job.session is not None
        or (outcome.cpu_ms or 0.0) < _COMPUTED_SHARE * outcome.duration_ms
    ):
        return outcome
    there = offered()
    wider = next((each for each in (Isolation.PROCESS, Isolation.CONTAINER) if each in there), None)
    if wider is None:
        return outcome
    advice = f'Where it computes on many numbers, numpy and pandas are far faster: ask for isolation="{wider.value}".'
    return hinted(outcome, advice)


def _of_failure(full_python: FullPythonInterpreter) -> str | None:
    """Return why full Python, which has the module, does not run; None where nothing is known against it."""
    if full_python.obstacle is None:
        return full_python.why_not()
    return full_python.why_not() or f"{full_python.failed} The same code again tries anew."


def _obstacle_of_process(executor: Executor, job: Job, caller: Caller, *, background: bool) -> str | None:
    """Return why code cannot run in full Python, which has what it imports, and what to do; None where it can."""
    obstacle = why_not_for(executor, job, caller, background=background)
    if obstacle is None and job.session is not None:
        return (
            "The variables of this session are the dialect's and cannot go to full Python, which has the module. Give "
            "another session name: a session whose first program imports it runs in full Python. Values come along as "
            "context_vars or in a file."
        )
    return obstacle


async def _not_approved(outcome: Outcome, ask: Ask | None) -> str | None:
    """Ask the user whether the code may run in a container; return the obstacle, or None after a yes."""
    if ask is None:
        return (
            "A container could run it once a user approves, whom this client cannot ask: the operator can set "
            'APPROVE_CONTAINER to false, or the request can ask for isolation="container".'
        )
    reason = "" if outcome.error is None else f" The sandbox refused it: {outcome.error.message}."
    question = Question(plain=f"May this code run in a container, with full Python but no network?{reason}")
    if (await ask(question)).choice is not None:
        return None
    return "The user did not approve running it in a container."


def _obstacle(executor: Executor, job: Job, refusal: Refusal) -> str | None:
    """Return why a container cannot take the code and what would change that (or nothing), or None where it can."""
    package = None if refusal.module is None else refusal.module.partition(".")[0]
    if package in HELPERS or (package is not None and needs_network(package)):
        return ""
    if package in sys.stdlib_module_names:
        package = None
    if package is None and refusal.module is not None and Isolation.CONTAINER in executor.offer.missing:
        return ""  # what a container has of the standard library reaches no further than what the hint names
    if Isolation.CONTAINER not in allowed_isolations(executor.settings):
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
