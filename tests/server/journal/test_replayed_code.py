"""What code in a worker meets when its calls are answered from a record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from sealab.sandbox.confine.levels import Level
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Job, Limits, Outcome, Status
from sealab.server.journal.replaying import RecordedCall, RunReplay

SEND = {"name": "crm.send", "arguments": {"text": "a"}}


@pytest.fixture(scope="module")
async def pool() -> AsyncIterator[Pool]:
    async with Pool(PoolSettings(required_level=Level.LIMITS, spares=1)) as opened:
        yield opened


async def replayed(pool: Pool, code: str, calls: Sequence[RecordedCall]) -> Outcome:
    """Run code whose tool calls nobody judges beforehand, as they are made by name."""
    return await pool.run(Job(code, limits=Limits(timeout_seconds=20)), RunReplay(calls).answer)


@pytest.mark.parametrize("caught", ["OutcomeUnknown", "ToolError"])
async def test_code_can_catch_that_an_outcome_is_unknown(pool: Pool, caught: str) -> None:
    code = (
        f"call, name = call_tool, 'crm.' + 'send'\ntry:\n    await call(name, {{'text': 'a'}})\n"
        f"except {caught} as error:\n    result = [type(error).__name__, str(error)]"
    )
    outcome = await replayed(pool, code, [RecordedCall(1, "call_tool", SEND, changes=True)])
    assert outcome.status is Status.OK, outcome.error
    kind, said = outcome.result  # type: ignore[misc]
    assert kind == "OutcomeUnknown"
    assert said.startswith('Whether crm.send({"text": "a"}) was done is not known')


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    read_file('b')\nexcept BaseException:\n    pass\n1",
        "call, name = call_tool, 'crm.' + 'find'\ntry:\n    await call(name, {})\nexcept BaseException:\n    pass\n1",
    ],
    ids=["at once", "in a task"],
)
async def test_code_cannot_go_on_after_a_call_that_is_not_the_recorded_one(pool: Pool, code: str) -> None:
    outcome = await replayed(pool, code, [RecordedCall(1, "read_file", {"filename": "a"}, {"answer": {}})])
    assert outcome.diverged
    assert outcome.result is None
    assert outcome.error is not None
    assert outcome.error.line is not None
    assert "call 1 was read_file(" in outcome.error.message
