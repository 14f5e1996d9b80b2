"""Background runs while everything that carries them is killed at random: what was acknowledged ends as it would have.

Each run makes 5 to 20 calls, half of them writes of an upstream server that keeps a line of each on the disk. Killed by
SIGKILL are the server, its zygotes and workers, the upstream server and PostgreSQL, every few seconds. What fails is
tried again, but for a write that may have been done (`OutcomeUnknown`). Wrong is a run that was acknowledged and does not
end well, a result that is not that of an undisturbed run, but for writes whose outcome is unknown, a write that was done
twice, and what stays locked.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from mcp import Client

from tests.chaos.served import Served

from .places import CALL_SECONDS, Place, called, is_upstream, killed_and_started, served_at, upstream_in, written_twice

CODE = """
import asyncio

async def called(tool, **arguments):
    for turn in range(100):
        try:
            return await tool(**arguments)
        except OutcomeUnknown as error:
            return ['unknown', str(error)]
        except ToolError as error:
            last = error
            await asyncio.sleep(0.1 * turn)
    raise last

result = []
for n in range(calls):
    progress(n / calls)
    result.append(await (called(tools.counter.look, n=n) if n % 2 else called(tools.counter.add, run=run, n=n)))
"""
AT_ONCE = 8


@dataclass
class Life:
    """What was asked for, what became of it, and what was killed."""

    runs: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By the id of each acknowledged run: its number, and how many calls it makes."""
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)
    waited_for: set[str] = field(default_factory=set)
    unknown: int = 0
    numbers: int = 0


async def ask_for(served: Served, life: Life, runs: int, dice: random.Random) -> None:
    """Ask for runs until so many are acknowledged; each asks with a number of its own."""
    while len(life.runs) < runs:
        life.numbers += 1
        number, calls = life.numbers, dice.randint(5, 20)
        with suppress(Exception):
            async with asyncio.timeout(CALL_SECONDS), Client(served.url, read_timeout_seconds=CALL_SECONDS) as client:
                asked = {"code": CODE, "context_vars": {"run": number, "calls": calls}, "background": True}
                answer = await client.call_tool("execute_code", {**asked, "timeout_seconds": 600})
            report = answer.structured_content
            if isinstance(report, dict) and report.get("status") == "queued":
                life.runs[report["run_id"]] = (number, calls)
                continue
        await asyncio.sleep(0.3)


async def follow(served: Served, life: Life, asking: asyncio.Task[Any]) -> None:
    """Wait for the reports of all runs, the eldest first."""
    while not asking.done() or len(life.reports) < len(life.runs):
        run_id = next((each for each in life.runs if each not in life.reports and each not in life.waited_for), None)
        if run_id is None:
            await asyncio.sleep(0.2)
            continue
        life.waited_for.add(run_id)
        report = await called(served, "get_run", run_id=run_id, wait_seconds=20)
        life.waited_for.discard(run_id)
        if report["status"] not in {"queued", "running", "waiting"}:
            life.reports[run_id] = report


async def kill(served: Served, place: Place, life: Life, dice: random.Random, ended: asyncio.Event) -> None:
    """Kill something every few seconds until the runs have ended."""
    while not ended.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(dice.uniform(1, 8)):
                await ended.wait()
            return
        what = dice.choices(("server", "sandbox", "upstream", "database"), (3, 3, 2, 3 if place.cluster else 0))[0]
        if what == "server":
            await asyncio.to_thread(killed_and_started, served)
        elif what == "database" and place.cluster is not None:
            await asyncio.to_thread(place.cluster.stop, signal.SIGKILL)
            await asyncio.sleep(dice.uniform(0, 1))
            await asyncio.to_thread(place.cluster.start)
        else:
            found = [each for each in served.family() if is_upstream(each) is (what == "upstream")]
            if not found:
                continue
            with suppress(psutil.NoSuchProcess):
                dice.choice(found).kill()
        life.killed[what] += 1


def faults(life: Life, lines: Path) -> Iterator[str]:
    """Give what is wrong after all that."""
    done = Counter(lines.read_text().splitlines())
    yield from written_twice(lines)
    for run_id, (number, calls) in life.runs.items():
        report = life.reports[run_id]
        if report["status"] != "ok":
            yield f"run {number} ended as {report['status']}: {json.dumps(report.get('error'))[:300]}"
            continue
        result = report["result"]
        if len(result) != calls:
            yield f"run {number} made {len(result)} calls of {calls}"
        for n, told in enumerate(result):
            if isinstance(told, list) and not n % 2:
                life.unknown += 1
            elif told != (f"saw {n}" if n % 2 else f"added {number} {n}"):
                yield f"run {number} was told {told!r} by call {n}"
            elif not n % 2 and not done[f"{number} {n}"]:
                yield f"run {number} was told that {n} is written, and it is not"


async def undisturbed(served: Served) -> list[str]:
    """Return what does not work after all that."""
    report = await called(served, "execute_code", code="await tools.counter.add(run=0, n=0)")
    return [] if report.get("result") == "added 0 0" else [f"something stays locked: {report}"]


async def live(place: Place, runs: int, dice: random.Random) -> tuple[Life, list[str]]:
    """Let so many runs be acknowledged and end while everything is killed now and then."""
    lines = upstream_in(place.home)
    life, served, ended = Life(), served_at(place), asyncio.Event()
    try:
        await called(served, "execute_code", code="await tools.counter.look(n=1)")
        killing = asyncio.create_task(kill(served, place, life, dice, ended))
        asking = asyncio.create_task(ask_for(served, life, runs, dice))
        await asyncio.gather(asking, *(follow(served, life, asking) for _ in range(AT_ONCE)))
        ended.set()
        await killing
        wrong = [*faults(life, lines), *await undisturbed(served)]
    finally:
        served.end(signal.SIGTERM)
    return life, wrong


def runs_survive(place: Place, runs: int, dice: random.Random) -> tuple[str, list[str]]:
    """Let so many runs be acknowledged; return figures, and what is wrong."""
    life, wrong = asyncio.run(live(place, runs, dice))
    well = sum(report["status"] == "ok" for report in life.reports.values())
    killed = ", ".join(f"{what} {count}" for what, count in sorted(life.killed.items()))
    return f"{len(life.runs)} runs, {well} ok, {life.unknown} writes unknown, killed: {killed}", wrong
