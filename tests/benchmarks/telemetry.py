"""What telemetry costs: the same calls in turns at two servers over stdio, one of which tells a collector what it does.

    python -m tests.benchmarks.telemetry [--rounds N] [--calls N]

For each kind of call it prints, with telemetry and without, the processor time of the server's own process, that of all
its processes, and the time that a call took: the means over all rounds but the slowest. Two processors that are busy with nothing else
do as many calls as the second line says: the goal is at most 3 % there. The collector is in this process, so that it
takes none of the server's time.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from mcp import Client, stdio_client

from ..server.conftest import stdio
from ..server.telemetry.collector import collecting

KINDS = {"trivial": "1 + 1", "of 100 ms": "import time\ntime.sleep(0.1)"}


@dataclass(slots=True)
class Server:
    """A server with its client, and what its rounds took for each call, in milliseconds, by what was measured."""

    client: Client
    process: psutil.Process
    rounds: dict[str, list[float]] = field(default_factory=dict)

    async def round(self, code: str, calls: int) -> None:
        before = self._clocks()
        for _ in range(calls):
            answer = await self.client.call_tool("execute_code", {"code": code})
            assert not answer.is_error, answer.content
        for name, now in self._clocks().items():
            self.rounds.setdefault(name, []).append((now - before[name]) * 1000 / calls)

    def _clocks(self) -> dict[str, float]:
        """Read clocks in seconds; that of one process is exact (proc(5), schedstat), those of all count in hundredths."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        own = sum(int(each.read_text().split()[0]) for each in tasks) / 1e9
        others = (each.cpu_times() for each in self.process.children())
        of_others = sum(each.user + each.system + each.children_user + each.children_system for each in others)
        return {"server's CPU": own, "CPU of all": own + of_others, "a call took": time.perf_counter()}


@asynccontextmanager
async def serving(home: Path, **env: str) -> AsyncIterator[Server]:
    me, before = psutil.Process(), set(psutil.Process().children())
    async with Client(stdio_client(stdio(home, **env))) as client:
        await client.call_tool("execute_code", {"code": "1"})
        (process,) = set(me.children()) - before
        yield Server(client, process)


async def measured(rounds: int, calls: int) -> None:
    print(f"{'calls':<10} {'':<16} {'without ms':>11} {'with ms':>11} {'change':>8}")
    with tempfile.TemporaryDirectory() as folder, collecting() as collector:
        async with AsyncExitStack() as stack:
            told = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
            servers = [
                await stack.enter_async_context(serving(Path(folder, name), **env))
                for name, env in (("without", {}), ("with", told))
            ]
            for kind, code in KINDS.items():
                for number in range(rounds + 1):
                    for each in servers if number % 2 else servers[::-1]:
                        await each.round(code, calls)
                for name in servers[0].rounds:
                    without, with_it = (statistics.fmean(sorted(each.rounds[name][1:])[:-1]) for each in servers)
                    print(f"{kind:<10} {name:<16} {without:>11.3f} {with_it:>11.3f} {with_it / without - 1:>+8.1%}")
                for each in servers:
                    each.rounds.clear()
        print(f"{len(collector.spans)} spans came.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--calls", type=int, default=25)
    asked = parser.parse_args()
    asyncio.run(measured(asked.rounds, asked.calls))


if __name__ == "__main__":
    main()
