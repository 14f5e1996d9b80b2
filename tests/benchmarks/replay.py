"""Run every program of some folders, and again from its record in another server's workers, and say which differ.

    python -m tests.benchmarks.replay FOLDER... [--id ID]

Every `*.jsonl` file in a FOLDER holds one program a line, `{"id", "code"}`, and with `files` what stands in the workspace
before. The first run is recorded as a journal would: its start, its trace, and what each call was answered. The second
one is in a pool of its own, whose zygote has other addresses, and is given all that. Each byte of the report is compared,
but its times; and the calls with their arguments.

Prints what differs, then how large the traces are. Exits 1 where anything differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.host.pools import Pools
from sealab.sandbox.job import HostCalls, Job, Outcome, Start
from sealab.server.app import running
from sealab.server.base.home import Home
from sealab.server.base.settings import read_settings
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.request import CodeRequest

from .habits import SETTINGS, write_files

TIMEOUT_SECONDS = 60
SHOWN_CHARS = 400


@dataclass
class Record:
    """What is kept of one run."""

    start: Start | None = None
    trace: bytes = b""
    calls: list[tuple[str, object]] = field(default_factory=list)

    def started(self, start: Start, _program: int) -> None:
        self.start = start

    def recorded(self, piece: bytes) -> None:
        self.trace += piece


@dataclass
class Twice:
    """Pools that run each job a second time in `again`, and say in `differences` what was not the same."""

    pools: Pools
    again: Pool
    differences: list[str] = field(default_factory=list)
    traces: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pools, name)

    async def run(self, job: Job, host_calls: HostCalls, *_recorder_and_rebuild: object) -> Outcome:
        first, second = Record(), Record()

        async def answer(name: str, arguments: Any) -> Any:
            place = len(first.calls)
            first.calls.append((_asked(name, arguments), None))
            try:
                value = await host_calls(name, arguments)
            except HostCallError as error:
                value = error
            first.calls[place] = first.calls[place][0], value
            return _given(value)

        async def answer_again(name: str, arguments: Any) -> Any:
            place = len(second.calls)
            second.calls.append((_asked(name, arguments), None))
            if place >= len(first.calls) or first.calls[place][0] != second.calls[place][0]:
                self.differences.append(f"call {place + 1}: {second.calls[place][0]}")
                raise HostCallError("not what is recorded")
            return _given(first.calls[place][1])

        outcome = await self.pools.run(job, answer, first)
        other = await self.again.run(replace(job, start=first.start, trace=first.trace), answer_again, second)
        self.traces.append(len(first.trace))
        for part in ("status", "result", "output", "stderr", "error", "notes", "diverged"):
            one, two = getattr(outcome, part), getattr(other, part)
            if one != two:
                self.differences.append(f"{part}: {str(one)[:SHOWN_CHARS]!r}, then {str(two)[:SHOWN_CHARS]!r}")
        return outcome


def _asked(name: str, arguments: object) -> str:
    return json.dumps([name, arguments], sort_keys=True)[:SHOWN_CHARS]


def _given(value: object) -> Any:
    if isinstance(value, HostCallError):
        raise value
    return value


def programs(folders: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of every `*.jsonl` file below the folders that have code."""
    for folder in folders:
        for file in sorted(folder.rglob("*.jsonl")):
            rows = map(json.loads, filter(str.strip, file.read_text(encoding="utf-8").splitlines()))
            yield from (row for row in rows if "code" in row)


async def _all(chosen: list[dict[str, Any]]) -> int:
    differing = 0
    ended: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        home = Path(folder)
        settings = read_settings(file=home / "sealab.toml", file_required=False, environment=SETTINGS, command_line={})
        async with running(settings, Home(home)) as app, Pool(PoolSettings(spares=2)) as again:
            twice = Twice(app.pools, again)
            executor = replace(app.executor, pools=twice)
            for row in chosen:
                write_files(app, row.get("files", {}))
                request = CodeRequest(row["code"], timeout_seconds=TIMEOUT_SECONDS, isolation="restricted")
                report = (await execute(executor, request)).report
                ended[str(report["status"])] += 1
                differing += bool(twice.differences)
                for difference in twice.differences:
                    print(f"{row['id']}: {difference}", flush=True)
                twice.differences.clear()
    sizes = twice.traces
    told = ", ".join(f"{count} {status}" for status, count in sorted(ended.items()))
    print(f"{len(chosen)} programs ({told}), {differing} of which differ when they are run again")
    print(f"bytes of a trace: median {statistics.median(sizes):.0f}, largest {max(sizes)}")
    return 1 if differing else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--id", action="append", default=[], help="only this program; may be given again")
    options = parser.parse_args()
    chosen = [row for row in programs(options.folders) if not options.id or row["id"] in options.id]
    return asyncio.run(_all(chosen))


if __name__ == "__main__":
    sys.exit(main())
