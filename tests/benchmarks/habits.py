"""Run programs as models write them by habit, each alone in a fresh workspace, and say which do not hold.

    python -m tests.benchmarks.habits FOLDER [--group NAME] [--id ID] [--verbose]

FOLDER has a `programs.jsonl`, or is such a file itself, with one row a line: `{"id", "group", "files", "code", "expect":
{"result", "stdout"}, "files_after"}`. `files` stand in the workspace before the run, as text or `{"b64": …}`. A row holds
when the run succeeds, its result equals `expect.result` as JSON (null is not compared), its output equals
`expect.stdout` but for white space at the end, and each file of `files_after` has the SHA-256 given (null: is there).

Prints what does not hold and why, then a table by group. Exits 1 when less than `FLOOR` of all programs hold.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sealab.server.app import App, running
from sealab.server.base.home import Home
from sealab.server.base.settings import read_settings
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.workspace.errors import WorkspaceError

FLOOR = 0.97
"""The share of all programs that has to hold."""
TIMEOUT_SECONDS = 20
SETTINGS = {"SEALAB_REQUIRED_LEVEL": "limits", "SEALAB_OUTPUT_MAX_CHARS": "1000000"}
SHOWN_CHARS = 160
AT_ONCE = 4
"""Programs that run at the same time: most of their time is the start and the end of a server's parts."""


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, or of a folder's `programs.jsonl`."""
    file = path / "programs.jsonl" if path.is_dir() else path
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def write_files(app: App, files: dict[str, Any]) -> None:
    for name, content in files.items():
        app.workspace.write(name, content if isinstance(content, str) else base64.b64decode(content["b64"]))


async def run_row(row: dict[str, Any], home: Path) -> tuple[dict[str, Any], str | None]:
    """Run one row in a home of its own; return its report, and why it does not hold or None."""
    settings = read_settings(file=home / "sealab.toml", file_required=False, environment=SETTINGS, command_line={})
    async with running(settings, Home(home)) as app:
        write_files(app, row["files"])
        request = CodeRequest(row["code"], timeout_seconds=TIMEOUT_SECONDS, isolation="restricted")
        report: dict[str, Any] = dict((await execute(app.executor, request)).report)
        return report, _why_not(row, report, app)


def _why_not(row: dict[str, Any], report: dict[str, Any], app: App) -> str | None:
    error = report.get("error")
    if not report["success"]:
        line = "" if error["line"] is None else f", line {error['line']}"
        return f"{report['status']}{line}: {error['type']}: {error['message']}"
    wanted = row["expect"]
    if wanted["result"] is not None and _json(report["result"]) != _json(wanted["result"]):
        return f"result: {_json(report['result'])} instead of {_json(wanted['result'])}"
    if report.get("output", "").rstrip() != wanted["stdout"].rstrip():
        return f"output: {_difference(report['output'].rstrip(), wanted['stdout'].rstrip())}"
    return next(filter(None, (_file(app, *each) for each in row["files_after"].items())), None)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _difference(found: str, wanted: str) -> str:
    lines = zip([*found.splitlines(), None], [*wanted.splitlines(), None], strict=False)
    return next((f"{mine!r} instead of {theirs!r}" for mine, theirs in lines if mine != theirs), "other line ends")


def _file(app: App, name: str, digest: str | None) -> str | None:
    try:
        found = app.workspace.read(name, encoding="base64")
    except WorkspaceError as error:
        return f"file {name}: {error}"
    if digest is None or hashlib.sha256(base64.b64decode(found.content)).hexdigest() == digest:
        return None
    return f"file {name}: other content ({found.size} bytes)"


async def _all(chosen: list[dict[str, Any]], verbose: bool) -> dict[str, str]:
    failures = {}
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(row: dict[str, Any]) -> None:
        async with turns:
            with tempfile.TemporaryDirectory(prefix="habits-") as home:
                report, why = await run_row(row, Path(home))
        if why is None:
            return
        failures[row["id"]] = why
        print(f"{row['id']}: {why if verbose else ' '.join(why.split())[:SHOWN_CHARS]}", flush=True)
        if verbose:
            print(json.dumps(report, indent=1, ensure_ascii=False))

    await asyncio.gather(*map(one, chosen))
    return failures


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--group", action="append", default=[], help="only this group; may be given again")
    parser.add_argument("--id", action="append", default=[], help="only this program; may be given again")
    parser.add_argument("--verbose", action="store_true", help="show the reports of those that do not hold")
    options = parser.parse_args()
    chosen = [
        row
        for row in rows(options.folder)
        if (not options.group or row["group"] in options.group) and (not options.id or row["id"] in options.id)
    ]
    began = time.perf_counter()
    failures = asyncio.run(_all(chosen, options.verbose))
    seconds = time.perf_counter() - began
    counts = Counter(row["group"] for row in chosen)
    failed = Counter(row["group"] for row in chosen if row["id"] in failures)
    for group, count in counts.items():
        print(f"{group:<16} {count - failed[group]:4} of {count:4}")
    share = 1 - len(failures) / len(chosen) if chosen else 0.0
    print(f"{len(chosen) - len(failures)} of {len(chosen)} programs hold ({share:.1%}) in {seconds:.1f} s")
    return 0 if share >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
