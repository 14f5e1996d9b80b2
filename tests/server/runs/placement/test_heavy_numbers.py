"""When a restricted run that ran out of time is told of full Python."""

from __future__ import annotations

from collections.abc import Collection

from sealab.sandbox.job import Failure, Isolation, Job, Outcome, Status
from sealab.server.runs.placement.heavy_numbers import told_of_full_python

BOTH = (Isolation.RESTRICTED, Isolation.PROCESS)
TIMED_OUT = Failure("TimeoutError", "It ran longer than its 2 seconds.", hint="Do less at once.")


def hint(
    cpu_ms: float | None,
    *,
    status: Status = Status.TIMEOUT,
    isolation: Isolation = Isolation.RESTRICTED,
    session: str | None = None,
    offered: Collection[Isolation] = BOTH,
) -> str:
    outcome = Outcome(status, error=TIMED_OUT, isolation=isolation, duration_ms=2000.0, cpu_ms=cpu_ms)
    told = told_of_full_python(Job("1", session=session), outcome, lambda: offered)
    assert told.error is not None
    return str(told.error.hint)


def test_one_that_computed_until_its_time_was_over_is_told_where_numbers_are_fast() -> None:
    assert hint(1900.0).startswith("Do less at once. Where it computes on many numbers")
    assert hint(1900.0).endswith('ask for isolation="process".')
    assert hint(1900.0, offered=(Isolation.RESTRICTED, Isolation.CONTAINER)).endswith('isolation="container".')


def test_one_that_waited_or_cannot_have_it_or_has_it_is_not() -> None:
    assert hint(20.0) == hint(None) == "Do less at once."
    assert hint(1900.0, offered=(Isolation.RESTRICTED,)) == "Do less at once."
    assert hint(1900.0, isolation=Isolation.PROCESS) == "Do less at once."
    assert hint(1900.0, session="kept") == "Do less at once."
    assert hint(1900.0, status=Status.ERROR) == "Do less at once."
