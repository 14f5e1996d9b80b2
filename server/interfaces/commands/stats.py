"""`sealab stats`: CPU seconds and tokens of runs, the tokens of direct calls, and which tools failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal, cast

from ....skills_db.tenants.used import Use
from ...governance.scopes import principal_of
from ...use_cases.runs.ledger import TOKENIZER, use_tokens
from ...use_cases.tenants.contents import operators_database
from .command import Command
from .opened import opened_homes
from .terminal import Here, Output, moment_of

By = Literal["day", "tenant", "who", "session", "run", "tool"]
_RUNS_MAX = 10_000
"""Of each tenant, the newest: of as many there are records."""


def _stats(
    here: Here, *, tenant: str | None = None, who: str | None = None, since: str = "7d", by: By = "day"
) -> Output:
    """Show what runs used, and what the same calls of tools would have cost the model directly.

    tenant: of one tenant
    who PRINCIPAL: of one person
    since TIME: from when on, such as 12h, 7d or a date; kept are 35 days, of UTC
    by: add it up by day, tenant or person; by session or run, of those that are kept; or count calls by tool
    """
    began = moment_of(since, "--since")
    if by == "tool":
        return _tools(here, tenant, who, began)
    first = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d")
    sums: dict[str, Use] = {}
    for row, use in (
        _of_days(here, tenant, who, first, by) if by in _OF_DAYS else _of_runs(here, tenant, who, began, by)
    ):
        sums[row] = sums.get(row, Use()).plus(use)
    rows = [{by: row, **_use_json(use)} for row, use in sorted(sums.items())]
    total = Use()
    for use in sums.values():
        total = total.plus(use)
    lines = [_line(str(row[by]), row) for row in rows] + ([_line("in all", _use_json(total))] if rows else [])
    lines.append(f"Tokens are estimated at {TOKENIZER}.")
    return Output({"since": first, "by": by, "rows": rows, "total": _use_json(total), "tokenizer": TOKENIZER}, lines)


stats = Command(_stats)
_OF_DAYS = frozenset(("day", "tenant", "who"))


def _of_days(here: Here, tenant: str | None, who: str | None, first: str, by: By) -> Iterator[tuple[str, Use]]:
    from ....skills_db.tenants.tenant_store import CpuDayStore

    with operators_database(here.settings, here.home) as database:
        for key, use in CpuDayStore(database).since(first).items():
            person = principal_of(key.principal)
            if tenant in {None, key.tenant} and who in {None, person}:
                yield {"day": key.day, "tenant": key.tenant}.get(by, f"{key.tenant}/{person}"), use


def _of_runs(here: Here, tenant: str | None, who: str | None, began: float, by: By) -> Iterator[tuple[str, Use]]:
    """Give the use of each run that has a record, by its name, or by that of its session."""
    for run, use in _listed(here, tenant, who, began):
        if use is not None:
            session = cast("Mapping[str, object] | None", run.get("session"))
            place = f"{run['tenant']}/{run['who']}"
            row = str(run["run_id"]) if by == "run" else f"{place} {session['name']}" if session else f"{place}, alone"
            yield row, use._replace(seconds=cast("float", run["cpu_ms"] or 0.0) / 1000)


def _tools(here: Here, tenant: str | None, who: str | None, began: float) -> Output:
    """Count the calls of each tool by how they went; those that failed most are first."""
    counts: dict[str, dict[str, int]] = {}
    for run, _ in _listed(here, tenant, who, began):
        for tool, ends in cast("Mapping[str, Mapping[str, int]]", run["tools"]).items():
            counted = counts.setdefault(tool, {"runs": 0, "done": 0, "failed": 0})
            counted["runs"] += 1
            for end, count in ends.items():
                counted[end] = counted.get(end, 0) + count
    ordered = sorted(counts.items(), key=lambda each: (-each[1]["failed"], each[0]))
    lines = [
        f"{tool}  {tool_counts['failed']} of {sum(tool_counts.values()) - tool_counts['runs']} calls failed, "
        f"in {tool_counts['runs']} runs"
        for tool, tool_counts in ordered
    ]
    rows = [{"tool": tool, **tool_counts} for tool, tool_counts in ordered]
    return Output({"by": "tool", "rows": rows}, lines or ["No run called a tool."])


def _listed(
    here: Here, tenant: str | None, who: str | None, began: float
) -> Iterator[tuple[Mapping[str, object], Use | None]]:
    """Give what lists say of the runs that are kept, with the use of those that have a record."""
    from ....skills_db.runs import RunStore
    from ...use_cases.runs.background.background_listing import RunFilter
    from .runs import runs_in

    for home in opened_homes(here):
        if tenant in {None, home.home.tenant}:
            uses = RunStore(home.database()).uses(since=datetime.fromtimestamp(began, UTC))
            for run in runs_in(home, RunFilter(who, since=began, limit=_RUNS_MAX)):
                yield run.summary, uses.get(str(run.summary["run_id"]))


def _use_json(use: Use) -> dict[str, object]:
    return {"runs": use.runs, "cpu_seconds": round(use.seconds, 3), **use_tokens(use)}


def _line(row: str, counts: dict[str, object]) -> str:
    from .runs import tokens_line

    return f"{row}  {counts['runs']} runs  {counts['cpu_seconds']} CPU s  {tokens_line(counts)}"
