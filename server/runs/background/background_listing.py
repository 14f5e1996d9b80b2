"""Background runs as an operator sees them: in the list of all runs, those that wait among them, and the end of one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ....sandbox.job import Json
from .background_reports import cancelled, execution_told

if TYPE_CHECKING:
    from ....skills_db.journal.background_store import BackgroundState, BackgroundStore

_LISTED_MAX = 10_000
_STOP_SECONDS = 10.0
"""How long a server is given to stop a run: it looks every 4 seconds whether it shall."""
_LOOK_SECONDS = 0.1


def with_background(
    told: list[dict[str, Json]], store: BackgroundStore, *, since: float, status: str | None, tool: str | None
) -> list[dict[str, Json]]:
    """Return a list of runs with those marked that run in the background, and with those first that wait to."""
    states = store.listed(most=_LISTED_MAX)
    waiting = [
        _waiting(each)
        for each in states
        if each.status == "queued" and each.queued >= since and status in (None, "queued") and tool is None
    ]
    known = {each.run_id for each in states}
    return waiting + [run | ({"background": True} if run["run_id"] in known else {}) for run in told]


def cancel(store: BackgroundStore, run_id: str) -> tuple[str, str]:
    """Have a background run end; return its status and one sentence on it. Raises `JournalNotFound`."""
    before = store.state(run_id)
    store.cancel(run_id, execution_told(cancelled(run_id)))
    for state in _seen(store, run_id):
        if state.report is not None:
            report = state.report["report"]
            status = str(report["status"]) if isinstance(report, Mapping) else "cancelled"
            if before.report is not None:
                return status, f"The run {run_id} had ended before: {status}."
            return status, f"The run {run_id} is cancelled." if status == "cancelled" else f"The run ended: {status}."
    return "running", f"The run {run_id} will be cancelled by the server that runs it, or by the next one that starts."


def _seen(store: BackgroundStore, run_id: str) -> Iterator[BackgroundState]:
    until = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < until:
        yield store.state(run_id)
        time.sleep(_LOOK_SECONDS)


def _waiting(state: BackgroundState) -> dict[str, Json]:
    return {
        "run_id": state.run_id,
        "status": state.status,
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
