"""`sealab status`: what runs, waits and fails now, and what is used of shares and disk; `sealab top` repeats it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json
from ....skills_db import DATABASE_FILE
from ....skills_db.journal.records import QUEUED, RUNNING, WAITING
from ....skills_db.tenants.tenant_store import CpuDayStore
from ...base.errors import UsageError
from ...base.home import Home
from ...base.terminal_escaping import one_line
from ...governance.scopes import principal_of
from ...governance.shares.cpu_days import CpuDays
from ...use_cases.runs.background.background_listing import RunFilter
from ...use_cases.upstream_tools.registry_state import failing_servers, opened_state
from .approvals import approvals_in
from .command import Command
from .opened import OpenedHome, opened_homes
from .runs import run_lines, runs_in
from .terminal import Here, Output, counted, moment, moment_of

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ...base.settings import Settings

_SHOWN = 10
_ERRORS_SHOWN = 5
_ERRORS_SINCE = "1d"
_UNENDED_MAX = 1000
_CLEAR = b"\x1b[H\x1b[2J"
"""Cursor to the top left, and clear the screen (ECMA-48, CUP and ED)."""
_MB = 1_000_000
_BLOCK_BYTES = 512
"""What `st_blocks` counts (POSIX, sys/stat.h)."""


def _status(here: Here) -> Output:
    """Show on one screen what runs, waits and fails, and what is used of shares and disk."""
    overview = now(here)
    overview["disk"] = {**cast("Mapping[str, Json]", overview["disk"]), "used": cast("Json", _sizes(here.home.root))}
    return Output(overview, _lines(overview))


def _top(here: Here, *, every: float = 2.0, once: bool = False) -> int:
    """Show what `sealab status` shows again and again, until Ctrl-C.

    every SECONDS: how long one screen stays (2)
    once: show it once, as where stdout is no terminal
    """
    if every <= 0:
        raise UsageError(f"--every cannot be {every:g}. Give a number of seconds above 0.")
    while True:
        lines = [*_lines(now(here))]
        if once or not sys.stdout.isatty():
            return Output(None, lines).printed(as_json=False)
        sys.stdout.flush()
        sys.stdout.buffer.write(_CLEAR)
        Output(None, lines[: shutil.get_terminal_size().lines - 1]).printed(as_json=False)
        sys.stdout.flush()
        time.sleep(every)


status = Command(_status, of_all_tenants=True)
top = Command(_top, has_json=False, of_all_tenants=True)


def now(here: Here, *, scope: str | None = None) -> dict[str, Json]:
    """Return how all tenants stand, or the one that is named; with a scope, of its runs and questions alone."""
    unended = RunFilter(unended=True, limit=_UNENDED_MAX, scope=scope)
    failed = RunFilter(failed=True, since=moment_of(_ERRORS_SINCE, "--since"), limit=_ERRORS_SHOWN, scope=scope)
    at_work, errors, approvals = [], [], []
    shares: list[Json] = []
    schedules: list[Json] = []
    journals_bytes = 0
    for home in opened_homes(here):
        at_work += runs_in(home, unended)
        errors += runs_in(home, failed)
        approvals += approvals_in(home, fits=lambda asked: scope in {None, asked.scope})
        schedules += _failing_schedules(home, scope)
        journals_bytes += home.journal.store().used_bytes()
        if home.home.operators is None:
            shares = [*_shares(here.settings, home.database())]
    at_work.sort(key=lambda run: run.began)
    errors.sort(key=lambda run: run.began, reverse=True)
    with opened_state(here.home, here.settings.database_url) as state:
        failing = failing_servers(state)
    rows = [run.summary for run in at_work]
    return {
        "at": moment(time.time()),
        "running": [run for run in rows if run["status"] == RUNNING],
        "waiting": [run for run in rows if run["status"] in {QUEUED, WAITING}],
        "approvals": cast("Json", approvals),
        "failing_servers": [
            {
                "name": name,
                "since": moment(cast("float", each["since"])),
                "last_error": cast("Json", each["last_error"]),
            }
            for name, each in failing.items()
        ],
        "failing_schedules": schedules,
        "shares": shares,
        "disk": {**_disk(here.home), "journals_bytes": journals_bytes},
        "last_errors": [run.summary for run in errors[:_ERRORS_SHOWN]],
    }


def _failing_schedules(home: OpenedHome, scope: str | None) -> Iterator[Json]:
    """Give the schedules whose last time failed or was skipped, and those that are paused, as `schedules list` does."""
    schedules = home.journal.background().schedules
    for each in schedules.all():
        if each.reason and (scope is None or schedules.is_of(each, scope)):
            yield {
                "tenant": home.home.tenant,
                "name": each.name,
                "state": "paused" if each.next_time is None else "active",
                "next": None if each.next_time is None else moment(each.next_time),
                "run_id": each.last_run,
                "why_not": each.reason,
            }


def _shares(settings: Settings, database: Database) -> Iterator[dict[str, Json]]:
    """Give the CPU seconds of today (UTC), which are kept where they are bounded."""
    most = settings.caller_cpu_seconds_per_day
    for key, seconds in CpuDayStore(database).of_day(CpuDays(lambda: database).today()).items():
        used: dict[str, Json] = {"tenant": key.tenant, "who": principal_of(key.principal)}
        yield used | {"cpu_seconds_today": round(seconds, 1), "cpu_seconds_per_day": most or None}


def _disk(home: Home) -> dict[str, Json]:
    disk = shutil.disk_usage(home.root)
    database = home.root / DATABASE_FILE
    return {
        "home": str(home.root),
        "free_bytes": disk.free,
        "total_bytes": disk.total,
        "database_bytes": database.stat().st_size if database.exists() else None,
    }


def _sizes(root: Path) -> dict[str, int]:
    """Return what the files and folders of a home take, in bytes, the largest first."""
    sizes: dict[str, int] = dict.fromkeys((each.name for each in root.iterdir()), 0) if root.exists() else {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):  # it was removed meanwhile
                sizes.setdefault(first := path.relative_to(root).parts[0], 0)
                sizes[first] += path.lstat().st_blocks * _BLOCK_BYTES
    return dict(sorted(sizes.items(), key=lambda each: -each[1]))


def _lines(overview: Mapping[str, Json]) -> Iterator[str]:
    names = ("running", "waiting", "approvals", "failing_servers", "failing_schedules", "shares", "last_errors")
    running, waiting, approvals, failing, schedules, shares, errors = (
        cast("Sequence[Mapping[str, Json]]", overview[name]) for name in names
    )
    disk = cast("Mapping[str, Json]", overview["disk"])
    yield (
        f"{overview['at']}  {len(running)} running, {len(waiting)} waiting, "
        f"{counted(len(approvals), 'approval')}, {counted(len(failing), 'failing server')}"
        + (f", {counted(len(schedules), 'failing schedule')}" if schedules else "")
    )
    kept = disk["database_bytes"]
    database = "" if not isinstance(kept, int) else f", database {kept / _MB:.1f} MB"
    free, total = (cast("int", disk[name]) // _MB for name in ("free_bytes", "total_bytes"))
    journals = f", its journals {cast('int', disk['journals_bytes']) / _MB:.1f} MB" if database else ""
    yield one_line(f"disk of {disk['home']}: {free} of {total} MB free{database}{journals}")
    if used := cast("Mapping[str, int]", disk.get("used") or {}):
        yield one_line("    " + ", ".join(f"{name} {size / _MB:.1f} MB" for name, size in used.items() if size))
    for each in shares:
        most = "" if each["cpu_seconds_per_day"] is None else f" of {each['cpu_seconds_per_day']:g}"
        yield one_line(f"share of {each['tenant']}/{each['who']}: {each['cpu_seconds_today']} CPU s today{most}")
    for title, runs in (("running", running), ("waiting", waiting), ("last errors", errors)):
        if runs:
            yield from ("", f"{title}:", *run_lines(runs[:_SHOWN]))
        if len(runs) > _SHOWN:
            yield f"and {len(runs) - _SHOWN} more; `sealab runs list` shows them."
    if approvals:
        yield from ("", "approvals:")
    for each in approvals[:_SHOWN]:
        asked = " ".join(str(each["question"]).splitlines()[:2])  # what is asked, and the first call
        yield one_line(f"{each['id']}  {each['at']}  {each['tenant']}/{each['who']}  {asked}")
    if failing:
        yield from ("", "failing servers:")
    for each in failing:
        yield one_line(f"{each['name']}  since {each['since']}  {each['last_error']}")
    if schedules:
        yield from ("", "failing schedules:")
    for each in schedules:
        yield one_line(f"{each['tenant']}/{each['name']}  {each['state']}  {each['why_not']}")
