"""Background runs while everything that carries them is killed at random: what was acknowledged ends as it would have.

    python -m tests.benchmarks.crash_runs [--runs N] [--database sqlite|postgresql] [--seed N] [--log FILE]

Each run makes 5 to 20 calls, half of them writes of an upstream server that keeps a line of each on the disk. Killed by
SIGKILL are the server, its zygotes and workers, the upstream server and PostgreSQL, every few seconds. What fails is
tried again, but for a write that may have been done (`OutcomeUnknown`). Exits 1 when a run that was acknowledged does not
end well, when a result is not that of an undisturbed run, but for writes whose outcome is unknown, when a write was done
twice, or when something stays locked. The seed decides the moments, as far as it can. FILE takes what the server logs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import psutil
from mcp import Client

from tests.benchmarks.crash import Place, place_of

UPSTREAM = """
import os, random, sys, time
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer('counter', log_level='ERROR')
lines = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(n: int) -> str:
    'Look.'
    return f'saw {n}'

@server.tool(annotations=ToolAnnotations(read_only_hint=False))
def add(run: int, n: int) -> str:
    'Add.'
    os.write(lines, f'{run} {n}\\n'.encode())
    time.sleep(random.uniform(0, 0.02))
    return f'added {run} {n}'

server.run()
"""
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
CALL_SECONDS = 60
LONGEST_SECONDS = 900
"""How long the last run may take to end after the last kill."""


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


def upstream_in(home: Path) -> Path:
    """Configure the upstream server of a home; return the file that has a line of each write."""
    program, lines = home / "counter.py", home / "lines"
    program.write_text(UPSTREAM)
    command = {"command": sys.executable, "args": [str(program), str(lines)], "approve": "never"}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"counter": command}}))
    return lines


class Served:
    """A server over HTTP that is started anew whenever it was killed."""

    def __init__(self, place: Place, log: BinaryIO | None = None) -> None:
        self._place = place
        self._log = log or subprocess.DEVNULL
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.process = self._started()

    @property
    def url(self) -> str:
        return f"http://{self.address}/mcp"

    def again(self) -> None:
        self.process.wait()
        self.process = self._started()

    def descendants(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SEALAB_")}
        environment |= {"SEALAB_VAULT_KEYRING": "false", "SEALAB_REQUIRED_LEVEL": "limits", "SEALAB_DRAIN_SECONDS": "1"}
        environment |= {} if self._place.url is None else {"SEALAB_DATABASE_URL": self._place.url}
        command = [sys.executable, "-P", "-m", "sealab.server", "serve", "--http", self.address]
        return subprocess.Popen(
            [*command, "--home", str(self._place.home)],
            stderr=self._log,
            stdout=subprocess.DEVNULL,
            env=environment,
        )


async def called(served: Served, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool until there is an answer. What was asked and not answered may have been done."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        with suppress(Exception):
            async with asyncio.timeout(CALL_SECONDS), Client(served.url, read_timeout_seconds=CALL_SECONDS) as client:
                answer = await client.call_tool(tool, arguments)
            if isinstance(answer.structured_content, dict) and "run_id" in answer.structured_content:
                return answer.structured_content
        if time.monotonic() > deadline:
            raise SystemExit(f"{tool} was not answered for {LONGEST_SECONDS} s.")
        await asyncio.sleep(0.3)


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
            served.process.kill()
            await asyncio.to_thread(served.again)
        elif what == "database" and place.cluster is not None:
            await asyncio.to_thread(place.cluster.stop, signal.SIGKILL)
            await asyncio.sleep(dice.uniform(0, 1))
            await asyncio.to_thread(place.cluster.start)
        else:
            found = [each for each in served.descendants() if is_upstream(each) is (what == "upstream")]
            if not found:
                continue
            with suppress(psutil.NoSuchProcess):
                dice.choice(found).kill()
        life.killed[what] += 1


def is_upstream(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return any("counter.py" in part for part in process.cmdline())
    return False


def faults(life: Life, lines: Path) -> Iterator[str]:
    """Give what is wrong after all that."""
    done = Counter(lines.read_text().splitlines())
    yield from (f"the write {line!r} was done {count} times" for line, count in done.items() if count > 1)
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
    """Say what does not work after all that."""
    report = await called(served, "execute_code", code="await tools.counter.add(run=0, n=0)")
    return [] if report.get("result") == "added 0 0" else [f"something stays locked: {report}"]


async def live(place: Place, runs: int, dice: random.Random, log: BinaryIO | None) -> tuple[Life, list[str]]:
    """Have so many runs acknowledged and ended while everything is killed now and then."""
    lines = upstream_in(place.home)
    life, served, ended = Life(), Served(place, log), asyncio.Event()
    try:
        await called(served, "execute_code", code="await tools.counter.look(n=1)")
        killing = asyncio.create_task(kill(served, place, life, dice, ended))
        asking = asyncio.create_task(ask_for(served, life, runs, dice))
        await asyncio.gather(asking, *(follow(served, life, asking) for _ in range(AT_ONCE)))
        ended.set()
        await killing
        wrong = [*faults(life, lines), *await undisturbed(served)]
    finally:
        served.end()
    return life, wrong


@contextmanager
def _timed(found: list[float]) -> Iterator[None]:
    began = time.monotonic()
    yield
    found.append(time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--log", type=argparse.FileType("ab"))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    print(f"{'database':<12}{'runs':>6}{'ok':>6}{'wrong':>7}{'unknown':>9}{'s':>7}  killed")
    broken = False
    for kind in options.database or ["sqlite", "postgresql"]:
        took: list[float] = []
        with place_of(kind) as place, _timed(took):
            life, wrong = asyncio.run(live(place, options.runs, random.Random(options.seed), options.log))
        well = sum(report["status"] == "ok" for report in life.reports.values())
        killed = ", ".join(f"{what} {count}" for what, count in sorted(life.killed.items()))
        figures = f"{len(life.runs):>6}{well:>6}{len(wrong):>7}{life.unknown:>9}{took[0]:>7.0f}"
        print(f"{kind:<12}{figures}  {killed}", flush=True)
        for each in wrong[:20]:
            print(f"  {each}")
        broken = broken or bool(wrong)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
