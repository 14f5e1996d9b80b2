"""Who is asked before refused code runs in a container."""

from __future__ import annotations

import pytest

from sealab.sandbox.job import Failure, Outcome, Status
from sealab.server.runs.placement import escalation

REFUSED = Outcome(status=Status.REFUSED, error=Failure("ImportError", "module 'numpy' is not available here"))


async def test_where_nobody_can_be_asked_the_hint_says_what_the_operator_can_do() -> None:
    assert "APPROVE_CONTAINER" in (await escalation._not_approved(REFUSED, None) or "")


@pytest.mark.parametrize("approves", [True, False])
async def test_the_user_is_told_why_and_decides(approves: bool) -> None:
    asked: list[str] = []

    async def user(question: str, _choices: object) -> str | None:
        asked.append(question)
        return "" if approves else None

    obstacle = await escalation._not_approved(REFUSED, user)
    assert "module 'numpy' is not available here" in asked[0]
    assert (obstacle is None) is approves
