"""Runs as an operator lists them, those in the background among them, and the end of a background run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ....skills_db.errors import JournalErased, JournalNotFound
from ....skills_db.journal.background_store import ENDED, WAITING
from ....skills_db.journal.records import ERASED
from ...errors import RequestRefused
from ...journal.transcript import Transcript, summary
from .background_reports import cancelled, execution_told

if TYPE_CHECKING:
    from ....skills_db.journal.background_store import BackgroundState, BackgroundStore
    from ....skills_db.journal.journal_store import JournalStore

_LISTED_MAX = 10_000
_STOP_SECONDS = 10.0
"""How long a server is given to stop a run: it looks every 4 seconds whether it shall."""
_LOOK_SECONDS = 0.1


def listed_runs(
    journals: JournalStore, store: BackgroundStore, *, since: float, status: str | None, tool: str | None, limit: int
) -> list[Transcript]:
    """Return what a list says of the newest runs, newest first.

    Some background runs have no journal: those that wait, those of which none is written yet, and those that write
    none. Where the journal does not say how a background run ended, it has the status that `get_run` tells.
    """
    states = {each.run_id: each for each in store.listed(most=_LISTED_MAX)}
    now = {run_id: _status(store, each) for run_id, each in states.items() if not each.has_ended_journal}
    found = journals.runs(since=since, status=status, tool=tool, limit=limit, now=now)
    told = [summary(run) | ({"background": True} if run.run_id in states else {}) for run in found]
    told += [
        _told(each, now[run_id])
        for run_id, each in states.items()
        if not each.has_journal and each.queued >= since and status in (None, now[run_id]) and tool is None
    ]
    return sorted(told, key=lambda run: str(run["began"]), reverse=True)[:limit]


def _status(store: BackgroundStore, state: BackgroundState) -> str:
    """Return the status of a run; of one that has ended, that of its report."""
    if state.status != ENDED:
        return state.status
    try:
        return _reported(store.state(state.run_id))
    except JournalErased:
        return ERASED
    except JournalNotFound:  # its time ran out just now
        return state.status


def _reported(state: BackgroundState) -> str:
    report = None if state.report is None else state.report["report"]
    return str(report["status"]) if isinstance(report, Mapping) else "cancelled"


def cancel(store: BackgroundStore, run_id: str) -> tuple[str, str]:
    """Have a background run end; return its status and one sentence on it. Raises `JournalNotFound`."""
    before = store.state(run_id)
    store.cancel(run_id, execution_told(cancelled(run_id)))
    for state in _seen(store, run_id):
        if state.report is not None:
            status = _reported(state)
            if before.report is not None:
                return status, f"The run {run_id} had ended before: {status}."
            return status, f"The run {run_id} is cancelled." if status == "cancelled" else f"The run ended: {status}."
    return "running", f"The run {run_id} will be cancelled by the server that runs it, or by the next one that starts."


def check_foreground(store: BackgroundStore, run_id: str) -> None:
    """Raise `RequestRefused` where a run is in the background, since servers go on with it by themselves."""
    try:
        state = store.state(run_id)
    except (JournalNotFound, JournalErased):
        return
    if state.status == WAITING:
        raise RequestRefused(
            f"The run {run_id} waits for an answer, and a server goes on with it then. `sealab approvals list` shows "
            "the question."
        )
    if state.status == ENDED:
        raise RequestRefused(f"The run {run_id} has ended: {_reported(state)}. `sealab runs show` shows what it did.")
    raise RequestRefused(
        f"The run {run_id} is in the background: the server that runs it, or the next one that starts, goes on with "
        "it. Start a server, or end the run with `sealab runs cancel`."
    )


def _seen(store: BackgroundStore, run_id: str) -> Iterator[BackgroundState]:
    until = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < until:
        yield store.state(run_id)
        time.sleep(_LOOK_SECONDS)


def _told(state: BackgroundState, status: str) -> Transcript:
    return {
        "run_id": state.run_id,
        "status": status,
        "began": _moment(state.queued),
        "ms": None,
        "isolation": None,
        "scope": state.owner,
        "bytes": 0,
        "kept_until": _moment(state.expires),
        "tools": {},
        "background": True,
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
