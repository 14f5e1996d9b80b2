"""A server with defects, to see that the driver finds them: `planted.py ARGUMENTS…` is `sealab ARGUMENTS…`."""

from __future__ import annotations

import itertools
import os
import sys
from typing import Any

from sealab.sandbox.host.pool import Pool
from sealab.server.cli import main
from sealab.server.use_cases.runs import execute
from sealab.skills_db.skills import Saved, SkillStore

_numbers = itertools.count(1)
LEAKED_DESCRIPTORS, LOST_TURNS, WARM_RUNS = 40, 2, 12


def wrong_results() -> None:
    """Add one to every third whole number."""
    right = execute.report_of

    def report(*arguments: Any, **more: Any) -> Any:
        made = right(*arguments, **more)
        if isinstance(made["result"], int) and next(_numbers) % 3 == 0:
            made["result"] += 1
        return made

    execute.report_of = report


def lost_skills() -> None:
    """Acknowledge skills without storing them."""

    def save(_store: SkillStore, draft: Any) -> Saved:
        return Saved(draft.name, next(_numbers), created=True, content_hash=draft.content_hash())

    SkillStore.save = save  # type: ignore[method-assign]  # to break it is the point


def lost_turns_and_descriptors() -> None:
    """Keep the turns of some runs, and open files for nothing."""
    right = Pool.run
    kept: list[Any] = []
    runs = itertools.count()

    async def run(pool: Pool, job: Any, calls: Any, *more: Any) -> Any:
        if next(runs) > WARM_RUNS and len(kept) < LOST_TURNS:
            kept.append(pool._scheduler.seat(job))
            await kept[-1].__aenter__()
            for _ in range(LEAKED_DESCRIPTORS):
                os.open(os.devnull, os.O_RDONLY)
        return await right(pool, job, calls, *more)

    Pool.run = run  # type: ignore[method-assign]


if __name__ == "__main__":
    wrong_results()
    lost_skills()
    lost_turns_and_descriptors()
    sys.exit(main())
