"""Runs as an operator lists them, those in the background among them, and the end of a background run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from .....sandbox.job import Status
from .....skills_db.errors import JournalErased, JournalNotFound
from .....skills_db.journal.journal_store import DAMAGED, NEWER
from .....skills_db.journal.records import CUT, ENDED, ERASED, QUEUED, RUNNING, WAITING, StoredJournal, first_line
from ....base.errors import RequestRefused
from ....governance.scopes import principal_of
from ...journal.transcript import Transcript, elapsed_ms, moment, summary

if TYPE_CHECKING:
    from .....skills_db.journal.background_store import BackgroundState, BackgroundStore
    from .....skills_db.journal.journal_store import JournalStore
    from .....skills_db.journal.records import RunSummary

STATUSES = (*(each.value for each in Status), QUEUED, RUNNING, WAITING, CUT, ERASED, DAMAGED, NEWER)
"""What a list says of runs."""
_FAILED = frozenset({*(each.value for each in Status), CUT, DAMAGED}) - {Status.OK.value, Status.CANCELLED.value}
LISTED_TEXTS = ("code", "reason")
"""What a list says of runs in words of the code, which may be personal."""
_UNENDED = frozenset({QUEUED, RUNNING, WAITING})
_LISTED_MAX = 10_000
_STOP_SECONDS = 10.0
"""How long a server is given to stop a run: it looks every 4 seconds whether it shall."""
_LOOK_SECONDS = 0.1
_LOOK_FOREGROUND_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list has: those that fit all that is given, the newest `limit` of them."""

    who: str | None = None
    tool: str | None = None
    outcome: str | None = None
    failed: bool = False
    since: float = 0.0
    limit: int = 50
    unended: bool = False
    scope: str | None = None
    until: float = math.inf

    def fits(self, status: str, scope: str) -> bool:
        """Return whether the list has runs of that status and scope."""
        return (
            self.outcome in (None, status)
            and (not self.unended or status in _UNENDED)
            and self.scope in (None, scope)
            and (self.who is None or self.who == principal_of(scope))
            and (not self.failed or status in _FAILED)
        )


class ListedRun(NamedTuple):
    """One run of a list: when it began, in seconds since 1970, whose it is, and what the list says of it."""

    began: float
    scope: str
    summary: Transcript


def listed_runs(journals: JournalStore, store: BackgroundStore, wanted: RunFilter) -> list[ListedRun]:
    """Return what a list says of runs, newest first.

    Some background runs have no journal: those that wait, those of which none is written yet, and those that write
    none. Where the journal does not say how a background run ended, it has the status that `get_run` reports.
    """
    states = {each.run_id: each for each in store.listed(most=_LISTED_MAX)}
    now = {run_id: _status(store, each) for run_id, each in states.items() if not each.has_ended_journal}
    found = journals.runs(
        since=wanted.since,
        until=wanted.until,
        status=wanted.outcome,
        tool=wanted.tool,
        scope=wanted.scope,
        limit=wanted.limit,
        now=now,
        unended=wanted.unended or wanted.outcome in _UNENDED,
        fits=lambda run: wanted.fits(run.status, run.scope),
    )
    listed = [
        ListedRun(run.began, run.scope, summary(run) | ({"background": True} if run.run_id in states else {}))
        for run in found
    ]
    for run_id, each in states.items():
        if not each.has_journal and wanted.since <= each.queued < wanted.until and wanted.tool is None:
            request = store.request(run_id) or {}
            if wanted.fits(now[run_id], scope := str(request.get("scope", ""))):
                listed.append(ListedRun(each.queued, scope, _summary_without_journal(each, now[run_id], request)))
    return sorted(listed, key=lambda run: run.began, reverse=True)[: wanted.limit]


def _status(store: BackgroundStore, state: BackgroundState) -> str:
    """Return the status of a run; of one that has ended, that of its report."""
    if state.status != ENDED:
        return state.status
    try:
        return _shown_status(store.state(state.run_id))
    except JournalErased:
        return ERASED
    except JournalNotFound:  # its time ran out just now
        return state.status


def _reported(state: BackgroundState) -> str:
    report = None if state.report is None else state.report["report"]
    return str(report["status"]) if isinstance(report, Mapping) else "cancelled"


def recorded_run(journals: JournalStore, store: BackgroundStore, run_id: str) -> StoredJournal:
    """Return the journal of a run, with the status that a list shows.

    Raises as `JournalStore.journal`, and `RequestRefused` for a background run that has no journal.
    """
    state = _state(store, run_id)
    try:
        journal = journals.journal(run_id)
    except JournalNotFound:
        if state is None:
            _raise_erased(store, run_id)
            raise
        raise RequestRefused(_without_journal(state)) from None
    if state is None or journal.run.ended is not None:
        return journal
    return replace(journal, run=replace(journal.run, status=_shown_status(state)))


def check_replayable(journals: JournalStore, store: BackgroundStore, run_id: str) -> StoredJournal:
    """Return the journal of a run that has ended. Raises `RequestRefused` for another, and as `recorded_run`."""
    journal = recorded_run(journals, store, run_id)
    if journal.run.ended is not None:
        return journal
    state, status = _state(store, run_id), journal.run.status
    if status == CUT:
        hint = "`sealab runs resume` goes on with it."
    elif state is not None and state.status == WAITING:
        hint = "It waits for an answer: `sealab approvals list` shows the question."
    elif state is not None and state.status == ENDED:
        hint = "It was ended from outside."
    else:
        hint = "Replay it once it has ended."
    raise RequestRefused(
        f"The journal of the run {run_id} has no end, so it cannot be replayed: its status is {status}. {hint} "
        "`sealab runs show` shows what there is."
    )


def cancel(journals: JournalStore, store: BackgroundStore, run_id: str) -> tuple[str, str]:
    """End a run; return its status and one sentence on it. Raises `JournalNotFound`."""
    try:
        before = store.state(run_id)
    except JournalNotFound as unknown:
        try:
            run = journals.journal(run_id).run
        except JournalNotFound:
            raise unknown from None
        return _cancel_foreground(journals, run)
    from .background_reports import cancelled, execution_json  # of all that runs code, where a list needs nothing of it

    store.cancel(run_id, execution_json(cancelled(run_id)))
    for state in _seen(store, run_id):
        if state.report is not None:
            status = _reported(state)
            if before.report is not None:
                return status, _ended_before(run_id, status)
            return status, _has_now_ended(run_id, status)
    return "running", f"The run {run_id} will be cancelled by the server that runs it, or by the next one that starts."


def _cancel_foreground(journals: JournalStore, run: RunSummary) -> tuple[str, str]:
    if run.ended is not None:
        return run.status, _ended_before(run.run_id, run.status)
    if run.status == CUT:
        return run.status, f"The run {run.run_id} was cut before, and nothing is at work on it."
    until = time.monotonic() + _STOP_SECONDS
    while journals.cancel(run.run_id):
        if time.monotonic() > until:
            return RUNNING, f"The run {run.run_id} will be cancelled by the server that runs it."
        time.sleep(_LOOK_FOREGROUND_SECONDS)
    status = journals.journal(run.run_id).run.status
    return status, _has_now_ended(run.run_id, status)


def _has_now_ended(run_id: str, status: str) -> str:
    return f"The run {run_id} is cancelled." if status == Status.CANCELLED.value else f"The run ended: {status}."


def _ended_before(run_id: str, status: str) -> str:
    return f"The run {run_id} had ended before: {status}."


def check_resumable(journals: JournalStore, store: BackgroundStore, run_id: str) -> StoredJournal:
    """Return the journal of a run of the foreground that was cut.

    Raises `RequestRefused` for any other: servers go on with those in the background by themselves.
    """
    state = _state(store, run_id)
    if state is not None:
        raise RequestRefused(_why_not_resumed(state))
    journal = recorded_run(journals, store, run_id)
    if journal.run.ended is not None:
        raise RequestRefused(_has_ended(run_id, journal.run.status))
    if journal.run.status != CUT:
        raise RequestRefused(
            f"The run {run_id} is at work, or its server ended less than a minute ago. Once `sealab runs list` says "
            f"{CUT}, it can be taken up."
        )
    return journal


def _why_not_resumed(state: BackgroundState) -> str:
    if state.status == WAITING:
        return (
            f"The run {state.run_id} waits for an answer, and a server goes on with it then. `sealab approvals list` "
            "shows the question."
        )
    if state.status == ENDED:
        return _has_ended(state.run_id, _shown_status(state))
    return (
        f"The run {state.run_id} is in the background: the server that runs it, or the next one that starts, goes on "
        "with it. Start a server, or end the run with `sealab runs cancel`."
    )


def _has_ended(run_id: str, status: str) -> str:
    return f"The run {run_id} has ended: {status}. `sealab runs show` shows what it did."


def _without_journal(state: BackgroundState) -> str:
    status = _shown_status(state)
    if state.status == ENDED:
        return f"The run {state.run_id} has ended: {status}. There is no journal of it; its caller has the report."
    return f"The run {state.run_id} is {status}, and nothing is recorded of it yet. Ask again once it is at work."


def _state(store: BackgroundStore, run_id: str) -> BackgroundState | None:
    """Return how far a background run is, None where it is none, or was erased: its journal says so."""
    try:
        return store.state(run_id)
    except (JournalNotFound, JournalErased):
        return None


def _raise_erased(store: BackgroundStore, run_id: str) -> None:
    with suppress(JournalNotFound):
        store.state(run_id)


def _shown_status(state: BackgroundState) -> str:
    return _reported(state) if state.status == ENDED else state.status


def _seen(store: BackgroundStore, run_id: str) -> Iterator[BackgroundState]:
    until = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < until:
        yield store.state(run_id)
        time.sleep(_LOOK_SECONDS)


def _summary_without_journal(state: BackgroundState, status: str, request: Mapping[str, object]) -> Transcript:
    return {
        "run_id": state.run_id,
        "status": status,
        "who": principal_of(str(request.get("scope", ""))),
        "code": first_line(str(request.get("code", ""))),
        "reason": None,
        "began": moment(state.queued),
        "ms": None,
        "elapsed_ms": elapsed_ms(state.queued, state.changed if state.status == ENDED else None),
        "isolation": None,
        "scope": state.owner,
        "bytes": 0,
        "kept_until": moment(state.expires),
        "tools": {},
        "background": True,
    }
