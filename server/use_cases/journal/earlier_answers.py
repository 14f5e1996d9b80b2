"""What a caller's runs were answered that this process did not carry out, and which of all runs are erased by now."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....sandbox.job import Json
from .replaying import recorded_calls

if TYPE_CHECKING:
    from .journal import Journal

RUNS_MAX = 100
BYTES_MAX = 8_000_000
_ERASED = "erased"


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """A call of a run and its answer; `at` is when the run began, as `time.time()`."""

    run_id: str
    session: str | None
    at: float
    name: str
    arguments: Mapping[str, Json]
    answer: Json


@dataclass(slots=True)
class EarlierAnswers:
    """Answers, the oldest first; `is_whole` says whether these are all, and `erased` which runs are no more."""

    answers: Sequence[EarlierAnswer] = ()
    erased: set[str] = field(default_factory=set)
    is_whole: bool = True


def earlier_answers(journal: Journal, scope: str, known: Collection[str], *, seconds: float) -> EarlierAnswers:
    """Read what the runs of a scope were answered within so many seconds, but those that are known. Blocks.

    A journal that cannot be read leaves it incomplete. Raises what opening the database raises.
    """
    from ....skills_db.errors import SkillsDbError

    store = journal.store()
    runs = store.runs(since=time.time() - seconds, scope=scope, limit=RUNS_MAX)
    found = EarlierAnswers(
        erased={each.run_id for each in runs if each.status == _ERASED}, is_whole=len(runs) < RUNS_MAX
    )
    read: list[EarlierAnswer] = []
    room = BYTES_MAX
    for run in runs:
        if run.run_id in known or run.run_id in found.erased:
            continue
        room -= run.bytes
        try:
            records = store.journal(run.run_id).records if room >= 0 else ()
            calls = recorded_calls(records)
        except (SkillsDbError, ValueError):
            calls = ()
            found.is_whole = False
        found.is_whole &= room >= 0
        read += [
            EarlierAnswer(run.run_id, run.session, run.began, each.name, each.arguments, each.answer)
            for each in reversed(calls)
            if each.succeeded
        ]
    found.answers = read[::-1]
    return found
