"""A run as a context: each aspect that began is told once how the run ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sealab.sandbox.job import Outcome, Status
from sealab.server.use_cases.runs.execute import ASPECTS
from sealab.server.use_cases.runs.run import Aspect, Run


class _RefusedError(Exception):
    pass


def aspect(name: str, told: list[str], *, refuses: bool = False, fails: bool = False) -> Aspect:
    class Telling(Aspect):
        async def begun(self) -> None:
            told.append(f"{name} begun")
            if refuses:
                raise _RefusedError

        async def ended(self, outcome: Outcome) -> Outcome:
            told.append(f"{name} ended")
            if fails:
                raise _RefusedError
            return outcome

        async def broken_off(self, _error: BaseException) -> None:
            told.append(f"{name} broken off")

    return Telling(SimpleNamespace())  # type: ignore[arg-type]  # they ask it for nothing


def run_with(*aspects: Aspect, told: list[str]) -> Run:
    async def closed() -> None:
        told.append("closed")

    some: Any = SimpleNamespace()
    return Run(some, some, some, some, some, some, SimpleNamespace(ended=closed), None, aspects)  # type: ignore[arg-type]


async def _ended(run: Run) -> None:
    async with run:
        await run.begin()
        await run.ended(Outcome(Status.OK))


async def test_aspects_begin_in_their_order_and_end_in_the_other() -> None:
    told: list[str] = []
    await _ended(run_with(aspect("a", told), aspect("b", told), told=told))
    assert told == ["a begun", "b begun", "b ended", "a ended", "closed"]


async def test_where_one_refuses_those_that_began_are_told_and_itself_and_no_other() -> None:
    told: list[str] = []
    run = run_with(aspect("a", told), aspect("b", told, refuses=True), aspect("c", told), told=told)
    with pytest.raises(_RefusedError):
        await _ended(run)
    assert told == ["a begun", "b begun", "b broken off", "a broken off", "closed"]


async def test_where_one_fails_at_the_end_the_others_are_told_that_the_run_broke_off() -> None:
    told: list[str] = []
    run = run_with(aspect("a", told), aspect("b", told, fails=True), told=told)
    with pytest.raises(_RefusedError):
        await _ended(run)
    assert told == ["a begun", "b begun", "b ended", "a broken off", "closed"]


def test_the_journal_and_the_filter_are_told_of_a_run_that_the_audit_log_refuses() -> None:
    names = [each.__name__ for each in ASPECTS]
    assert max(names.index("Journaled"), names.index("Filtered")) < names.index("Audited")
