"""What the journal costs: the same runs with and without it, in turns, in one process.

    python tests/benchmarks/journal.py [RUNS] [--database URL]

Prints a table and asserts nothing. The goals are 0.3 ms on a run without calls and 0.5 ms a call. A call that writes
waits for the disk, or for PostgreSQL, before it is sent; what that takes is the machine's, and many that are made at
once share it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from sealab.sandbox.confine.levels import Level
from sealab.sandbox.job import Job, Outcome, Start, Status
from sealab.server.app import App, running
from sealab.server.database import HomeDatabase
from sealab.server.home import Home
from sealab.server.journal.changes import SENT, before_change
from sealab.server.journal.journal import BegunRun, Journal
from sealab.server.runs.execute import CodeRequest, execute
from sealab.server.settings import Settings, Switch

UPSTREAM = """
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer('up', log_level='ERROR')

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def get(number: int) -> int:
    'Get a number.'
    return number

@server.tool(annotations=ToolAnnotations(read_only_hint=False))
def put(number: int) -> int:
    'Put a number.'
    return number

server.run()
"""
CALLS = 100
MANY = 1000
AT_ONCE = 8
LARGE = 1_000_000
GOAL_RUN_MS, GOAL_CALL_MS = 0.3, 0.5


@dataclass(frozen=True)
class Case:
    """One kind of run: its code, and by what its time is divided; `goal` in milliseconds of that."""

    name: str
    code: str
    calls: int = 1
    goal: float | None = None
    clients: int = 1


CASES = (
    Case("a run without calls", "1 + 1", goal=GOAL_RUN_MS),
    Case(f"{AT_ONCE} clients without calls, each run", "1 + 1", AT_ONCE, GOAL_RUN_MS, AT_ONCE),
    Case("a call that reads files", f"for i in range({CALLS}): list_files()", CALLS, GOAL_CALL_MS),
    Case("a file written", f"for i in range({CALLS}): write_file(f'f{{i % 10}}', 'x')", CALLS, GOAL_CALL_MS),
    Case(
        "a file read and written",
        f"for i in range({CALLS // 2}): write_file('n', str(int(read_file('f0') == 'x')))",
        CALLS,
        GOAL_CALL_MS,
    ),
    Case("a tool that reads", f"for i in range({CALLS}): await tools.up.get(number=i)", CALLS, GOAL_CALL_MS),
    Case(
        f"a tool that reads, of {MANY} in a run",
        f"for i in range({MANY}): await tools.up.get(number=i)",
        MANY,
        GOAL_CALL_MS,
    ),
    Case("a tool that writes", f"for i in range({CALLS}): await tools.up.put(number=i)", CALLS),
    Case(
        f"a tool that writes, {CALLS} at once",
        f"import asyncio\nawait asyncio.gather(*(tools.up.put(number=i) for i in range({CALLS})))",
        CALLS,
        GOAL_CALL_MS,
    ),
)


async def opened(stack: AsyncExitStack, journal: Switch, url: str | None) -> App:
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (home / "up.py").write_text(UPSTREAM)
    up = {"command": sys.executable, "args": [str(home / "up.py")], "approve": "never"}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"up": up}}))
    settings = Settings(required_level=Level("limits"), journal=journal, database_url=url, workers_spare=2)
    app = await stack.enter_async_context(running(settings, Home(home), serves=True))
    for code in ("await tools.up.get(number=1)", "write_file('f0', 'x'); await tools.up.put(number=1)"):
        report = (await execute(app.executor, CodeRequest(code))).report
        assert report["success"], report
    return app


async def timed(app: App, case: Case) -> float:
    while app.pools.stats()[app.pools.default].spares < 2:  # noqa: ASYNC110 - a benchmark waits for what has no event
        await asyncio.sleep(0.001)
    began = time.perf_counter()
    done = await asyncio.gather(*(execute(app.executor, CodeRequest(case.code)) for _ in range(case.clients)))
    took = time.perf_counter() - began
    assert all(each.report["success"] for each in done), done[0].report
    return took * 1000 / case.calls


async def compare(runs: int, url: str | None) -> None:
    async with AsyncExitStack() as stack:
        off, on = await opened(stack, Switch.OFF, url), await opened(stack, Switch.ON, url)
        print(
            f"{'ms each, medians':<40} {'off':>8} {'on':>8} {'more':>8}  {'goal':>5}   CPU ms more, and written later"
        )
        for case in CASES:
            await on.journal.stored()
            times: dict[str, list[float]] = {"off": [], "on": []}
            more, cpu = [], []
            for _ in range(runs if case.calls == 1 else max(runs // 8, 5)):
                spent = {}
                for name, app in (("off", off), ("on", on)):
                    before = time.process_time()
                    times[name].append(await timed(app, case))
                    spent[name] = (time.process_time() - before) * 1000 / case.calls
                more.append(times["on"][-1] - times["off"][-1])
                cpu.append(spent["on"] - spent["off"])
            before = time.process_time()
            await on.journal.stored()
            behind = (time.process_time() - before) * 1000 / case.calls / len(more)
            medians = [statistics.median(each) for each in (*times.values(), more)]
            goal = "" if case.goal is None else f"{case.goal:.1f}"
            print(
                f"{case.name:<40} {medians[0]:8.2f} {medians[1]:8.2f} {medians[2]:8.2f}  {goal:>5}"
                f"   {statistics.median(cpu):8.3f} {behind:8.3f}"
            )
        await on.journal.stored()
        runs_there = on.journal.store().runs(limit=10_000)
        print(f"{len(runs_there)} journals take {sum(run.bytes for run in runs_there) / 1000:.0f} kB")
        await asyncio.to_thread(large, on)


async def alone() -> None:
    """Print what a journal takes of the processor where no worker and no tool is part of it, written to its end."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Settings(), HomeDatabase(None, Path(folder)), lambda: bytes(32))
        count = 0

        async def found(_name: str, _arguments: object) -> str:
            return "found"

        async def sent(_name: str, _arguments: object) -> str:
            await before_change(SENT)
            return "sent"

        async def run(calls: int, host) -> None:
            nonlocal count
            count += 1
            job = Job("1 + 1", start=Start.now())
            kept = journal.begin(BegunRun(f"run{count}", job, "home"))
            kept.started(job.start, 0)
            answer = kept.around(host)
            for number in range(calls):
                kept.recorded(bytes(6))
                await answer("call_tool", {"name": "crm.find", "arguments": {"q": number}})
            kept.recorded(bytes(6))
            await kept.ended(Outcome(Status.OK, result=2), [])

        await run(1, found)
        await journal.stored()
        print(f"{'the journal alone, ms of CPU each':<40} {'loop':>8} {'all':>8} {'wall':>8}")
        for name, runs, calls, host, at_once in (
            ("a run without calls", 200, 0, found, False),
            ("a call that changes nothing", 4, 250, found, False),
            ("a call that leaves, one after another", 1, 100, sent, False),
            ("a call that leaves, of 50 runs at once", 50, 10, sent, True),
        ):
            figures = []
            for _ in range(9):
                began, cpu, loop = time.perf_counter(), time.process_time(), time.thread_time()
                if at_once:
                    await asyncio.gather(*(run(calls, host) for _ in range(runs)))
                else:
                    for _ in range(runs):
                        await run(calls, host)
                loop = time.thread_time() - loop
                await journal.stored()
                took = (loop, time.process_time() - cpu, time.perf_counter() - began)
                figures.append([each * 1000 / runs / max(calls, 1) for each in took])
            medians = [statistics.median(each) for each in zip(*figures, strict=True)]
            print(f"{name:<40} {medians[0]:8.3f} {medians[1]:8.3f} {medians[2]:8.3f}")
        journal.close()


def large(app: App) -> None:
    """Compare where a large answer may lie: in the database with everything else, or in a file beside it."""
    from sealab.skills_db.journal.records import Record, RecordKind, RunBegin, RunChange, joined

    body = os.urandom(LARGE // 2).hex().encode()
    store = app.journal.store()
    rows, files = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(20):
            now = time.time()
            begin = RunBegin(f"large{number}", "home", "restricted", now, now + 60, 30.0, 500, b"{}")
            piece = joined([Record(RecordKind.OUTCOME, body)])
            began = time.perf_counter()
            store.write([RunChange(begin.run_id, 0, begin, piece)], {begin.run_id: "home"}, durable=True)
            rows.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            with (Path(folder) / str(number)).open("wb") as file:
                file.write(store._keys.sealed("home", begin.run_id, "piece", 0, piece))
                file.flush()
                os.fsync(file.fileno())
            beside = replace(begin, run_id=f"{begin.run_id}x")
            store.write([RunChange(beside.run_id, 0, beside)], {beside.run_id: "home"}, durable=True)
            files.append((time.perf_counter() - began) * 1000)
    print(
        f"an answer of 1 MB, durable: {statistics.median(rows):.1f} ms in a row, {statistics.median(files):.1f} ms in a file"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=200)
    parser.add_argument("--database", metavar="URL")
    chosen = parser.parse_args()
    asyncio.run(alone())
    asyncio.run(compare(chosen.runs, chosen.database))


if __name__ == "__main__":
    main()
