"""What a caller's runs were answered that this process did not carry out, and which of all runs are erased by now."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....skills_db.errors import SkillsDbError
from ....skills_db.journal.records import CUT, QUEUED, RUNNING, WAITING
from .replaying import RecordedCall, recorded_calls

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
    call: RecordedCall


@dataclass(slots=True)
class EarlierAnswers:
    """Answers, the oldest first; `is_whole` says whether these are all, and `erased` which runs are no more.

    `known` says up to which call each run is known by now: of one that goes on, up to the first that is not answered.
    """

    answers: Sequence[EarlierAnswer] = ()
    erased: set[str] = field(default_factory=set)
    is_whole: bool = True
    known: dict[str, float] = field(default_factory=dict)


def earlier_answers(journal: Journal, scope: str, known: Mapping[str, float], *, seconds: float) -> EarlierAnswers:
    """Read what the runs of a scope were answered within so many seconds, beyond what is known of them. Blocks.

    A journal that cannot be read leaves it incomplete. Raises what opening the database raises.
    """
    store = journal.store()
    runs = store.runs(since=time.time() - seconds, scope=scope, limit=RUNS_MAX)
    found = EarlierAnswers(
        erased={each.run_id for each in runs if each.status == _ERASED}, is_whole=len(runs) < RUNS_MAX
    )
    read: list[EarlierAnswer] = []
    room = BYTES_MAX
    for run in runs:
        since = known.get(run.run_id, 0)
        if since == math.inf or run.run_id in found.erased:
            continue
        room -= run.bytes
        try:
            records = store.journal(run.run_id).records if room >= 0 else ()
            calls = recorded_calls(records)
            if room >= 0:
                goes_on = run.status in {QUEUED, RUNNING, WAITING, CUT}
                found.known[run.run_id] = _answered_until(calls) if goes_on else math.inf
        except (SkillsDbError, ValueError):
            calls = ()
            found.is_whole = False
        found.is_whole &= room >= 0
        read += [
            EarlierAnswer(run.run_id, run.session, run.began, each)
            for each in reversed(calls)
            if each.reply is not None and each.number > since
        ]
    found.answers = read[::-1]
    return found


def _answered_until(calls: Sequence[RecordedCall]) -> int:
    """Return the last call up to which each has its answer: those of parallel calls come in any order."""
    until = 0
    for each in calls:
        if each.reply is None or each.number != until + 1:
            break
        until = each.number
    return until
