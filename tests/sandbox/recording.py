"""Runs a program, and again from its record, as a journal in the server does."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.host.pool import Pool
from sealab.sandbox.job import Job, Json, Limits, Outcome, Start

LIMITS = Limits(timeout_seconds=50.0, memory_mb=150)


@dataclass(frozen=True)
class Recorded:
    """What is kept of a run: its job with start and trace, the pieces of that, and its calls with their answers."""

    job: Job
    outcome: Outcome
    pieces: Sequence[bytes]
    calls: Sequence[tuple[str, Json | HostCallError]]

    @property
    def trace(self) -> bytes:
        return b"".join(self.pieces)


@dataclass
class Journal:
    """Records a run. Calls are answered as in the `record` of an earlier one, up to the first that is not the same."""

    record: Sequence[tuple[str, Json | HostCallError]] = ()
    start: Start | None = None
    pieces: list[bytes] = field(default_factory=list)
    calls: list[tuple[str, Json | HostCallError]] = field(default_factory=list)
    seconds: float = 0.02

    def started(self, start: Start, _program: int) -> None:
        self.start = start

    def recorded(self, piece: bytes) -> None:
        self.pieces.append(piece)

    async def answer(self, name: str, arguments: Mapping[str, Json]) -> Json:
        place, asked = len(self.calls), json.dumps([name, arguments], sort_keys=True)
        if place < len(self.record) and self.record[place][0] == asked:
            answer = self.record[place][1]
        else:
            self.record = ()
            answer = None if name == "judge_calls" else {"asked": asked, "told": random.random()}
            if name == "call_tool" and random.random() < 0.2:
                answer = HostCallError("no luck", type="ToolError")
        self.calls.append((asked, answer))
        await asyncio.sleep(random.random() * self.seconds)
        if isinstance(answer, HostCallError):
            raise answer
        return answer


async def recorded(pool: Pool, job: Job | str, record: Sequence[tuple[str, Json | HostCallError]] = ()) -> Recorded:
    journal = Journal(record)
    job = Job(job, limits=LIMITS) if isinstance(job, str) else job
    outcome = await pool.run(job, journal.answer, journal)
    assert journal.start is not None
    return Recorded(replace(job, start=journal.start), outcome, journal.pieces, journal.calls)


async def run_again(pool: Pool, earlier: Recorded, **changes) -> Recorded:
    """Run the job of a record again, with what is recorded, unless `changes` says otherwise."""
    job = replace(earlier.job, **{"trace": earlier.trace, **changes})
    return await recorded(pool, job, earlier.calls)


def told(outcome: Outcome) -> dict[str, object]:
    """All of a report but its times."""
    return {
        "status": outcome.status,
        "result": outcome.result,
        "output": outcome.output,
        "stderr": outcome.stderr,
        "error": outcome.error,
        "notes": dict(outcome.notes),
        "diverged": outcome.diverged,
    }
