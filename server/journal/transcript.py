"""A journal as a person or a program reads it: what the run began with, each call with its times, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from ...sandbox.job import Json
from .replaying import JUDGE_CALLS, RecordedCall, recorded_calls

if TYPE_CHECKING:
    from ...skills_db.journal.records import Journal, RunSummary

Transcript: TypeAlias = dict[str, Json]

FORMAT = "sealab run 1"


def transcript(journal: Journal) -> Transcript:
    """Return all that a journal holds but for what only a replay needs, the seed and the trace: these stay secret."""
    header = cast("Mapping[str, Json]", journal.header)
    calls = [_call(each) for each in recorded_calls(journal.records) if each.name != JUDGE_CALLS]
    return {
        "format": FORMAT,
        **summary(journal.run),
        "code": header["code"],
        "context_vars": header["context_vars"],
        "arguments": header["arguments"],
        "dry_run": header["dry_run"],
        "calls": calls,
        "end": cast("Json", journal.end),
    }


def summary(run: RunSummary) -> Transcript:
    """Return what a list says of a run; `scope` is the name that the database has for its owner."""
    told: Transcript = {
        "run_id": run.run_id,
        "status": run.status,
        "began": moment(run.began),
        "ms": None if run.ended is None else round((run.ended - run.began) * 1000),
        "isolation": run.isolation,
        "scope": run.owner,
        "bytes": run.bytes,
        "kept_until": moment(run.expires),
        "tools": {name: dict(counts) for name, counts in run.tools.items()},
    }
    if run.session is not None:
        told["session"] = {"name": run.session, "number": run.number}
    if run.incomplete is not None:
        told["incomplete"] = run.incomplete
    return told


def _call(call: RecordedCall) -> Json:
    name, arguments = call.name, call.arguments
    if name == "call_tool" and isinstance(arguments.get("name"), str):
        name, arguments = str(arguments["name"]), cast("Mapping[str, Json]", arguments.get("arguments", {}))
    told: Transcript = {"n": call.number, "call": name, "arguments": arguments, "at_ms": call.at_ms, "ms": call.ms}
    if call.changes:
        told["changes"] = True
    return told | ({"outcome": "unknown"} if call.reply is None else dict(call.reply))


def moment(seconds: float) -> str:
    """Return a time as RFC 3339 writes it, in UTC and to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
