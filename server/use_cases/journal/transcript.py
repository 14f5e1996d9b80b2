"""A journal as a person or a program reads it: what the run began with, each call with its times, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from ....sandbox.job import Json
from ...governance.scopes import principal_of
from .replaying import JUDGE_CALLS, RecordedCall, recorded_calls

if TYPE_CHECKING:
    from ....skills_db.journal.records import RunSummary, StoredJournal

Transcript: TypeAlias = dict[str, Json]

FORMAT = "sealab run 1"


def transcript(journal: StoredJournal) -> Transcript:
    """Return all that a journal holds but for what only a replay needs, the seed and the trace: these stay secret."""
    header = cast("Mapping[str, Json]", journal.header)
    calls = [_call(each) for each in recorded_calls(journal.records) if each.name != JUDGE_CALLS]
    times = cast("Transcript", dict(journal.run.times))
    known = {call["n"] for call in calls}
    calls += (
        {**each, "arguments": None, "outcome": "cut with the run"}
        for each in cast("list[Transcript]", times.pop("cut", []))
        if each["n"] not in known and each["call"] != JUDGE_CALLS
    )
    calls = [{**each, "n": number} for number, each in enumerate(calls, 1)]
    return {
        "format": FORMAT,
        **summary(journal.run),
        "timeline": _timeline(journal.run, times, calls),
        "code": header["code"],
        "context_vars": header["context_vars"],
        "arguments": header["arguments"],
        "dry_run": header["dry_run"],
        "calls": cast("Json", calls),
        "end": cast("Json", journal.end),
    }


def _timeline(run: RunSummary, times: Transcript, calls: Sequence[Transcript]) -> Transcript:
    """Return where the time of a run went, in milliseconds. Calls that are made at the same time count once.

    What is neither waiting nor the program is that of the worker and of the server: starting, and the last checks.
    """
    if run.ended is None or "program_ms" not in times:
        return times
    total = elapsed_ms(run.began, run.ended)
    rest = total - cast("float", times["waiting_ms"]) - cast("float", times["program_ms"])
    calls_ms, until = 0.0, 0.0
    for begins, ms in sorted((cast("float", each["at_ms"]), cast("float | None", each["ms"]) or 0.0) for each in calls):
        calls_ms += max(0.0, begins + ms - max(begins, until))
        until = max(until, begins + ms)
    return times | {"calls_ms": round(calls_ms, 3), "worker_and_server_ms": round(max(rest, 0.0), 3)}


def summary(run: RunSummary) -> Transcript:
    """Return what a list says of a run; `scope` is the name that the database has for its owner."""
    entry: Transcript = {
        "run_id": run.run_id,
        "status": run.status,
        "who": principal_of(run.scope),
        "code": run.code,
        "reason": run.reason,
        "began": moment(run.began),
        "ms": None if run.ended is None else round((run.ended - run.began) * 1000),
        "elapsed_ms": elapsed_ms(run.began, run.ended),
        "cpu_ms": cast("float | None", run.times.get("cpu_ms")),
        "isolation": run.isolation,
        "scope": run.owner,
        "bytes": run.bytes,
        "kept_until": moment(run.expires),
        "tools": {name: dict(counts) for name, counts in run.tools.items()},
    }
    if run.session is not None:
        entry["session"] = {"name": run.session, "number": run.number}
    if run.incomplete is not None:
        entry["incomplete"] = run.incomplete
    return entry


def _call(call: RecordedCall) -> Transcript:
    name, arguments = call.name, call.arguments
    if name == "call_tool" and isinstance(arguments.get("name"), str):
        name, arguments = str(arguments["name"]), cast("Mapping[str, Json]", arguments.get("arguments", {}))
    entry: Transcript = {"n": call.number, "call": name, "arguments": arguments, "at_ms": call.at_ms, "ms": call.ms}
    if call.changes:
        entry["changes"] = True
    if call.sources:
        entry["sources"] = [dict(each) for each in call.sources]
    return entry | ({"outcome": "unknown"} if call.reply is None else dict(call.reply))


def elapsed_ms(began: float, ended: float | None) -> int:
    """Return for how long a run was at work, or is by now."""
    return round(((time.time() if ended is None else ended) - began) * 1000)


def moment(seconds: float) -> str:
    """Return a time as RFC 3339 writes it, to the millisecond, in the machine's zone (`TZ`) and with its offset."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds").replace("+00:00", "Z")
