"""Says of a restricted run that computed until its time was over that full Python has what is made for many numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from ....sandbox.job import Isolation, Job, Outcome, Status

COMPUTED_SHARE: Final = 0.3
"""Of the time of a run: one that computed for less of it waited, for a tool, a sleep or its turn."""


def told_of_full_python(job: Job, outcome: Outcome, offered: Callable[[], Collection[Isolation]]) -> Outcome:
    """Return the outcome with a hint at full Python, where that may be asked for and would be faster."""
    if (
        outcome.status is not Status.TIMEOUT
        or outcome.isolation is not Isolation.RESTRICTED
        or outcome.error is None
        or job.session is not None
        or (outcome.cpu_ms or 0.0) < COMPUTED_SHARE * outcome.duration_ms
    ):
        return outcome
    there = offered()
    wider = next((each for each in (Isolation.PROCESS, Isolation.CONTAINER) if each in there), None)
    if wider is None:
        return outcome
    told = f'Where it computes on many numbers, numpy and pandas are far faster: ask for isolation="{wider.value}".'
    hint = told if outcome.error.hint is None else f"{outcome.error.hint} {told}"
    return replace(outcome, error=replace(outcome.error, hint=hint))
