"""What a policy costs: a decision of 10 to 1,000 rules, kept or not, and what it adds to a run and to a call of a tool.

    python tests/benchmarks/policy.py [RUNS]

Prints a table and asserts nothing. The goals are 0.5 ms for a decision by 100 rules that is not kept, and a few
microseconds for one that is.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from sealab.sandbox.confine.levels import Level
from sealab.sandbox.job import Isolation
from sealab.server.app import App, running
from sealab.server.home import Home
from sealab.server.identity import ALL_RIGHTS, LOCAL_IDENTITY, Identity
from sealab.server.policy.access import run_access
from sealab.server.policy.policy_rules import rules_of
from sealab.server.policy.rulebook import Rulebook
from sealab.server.runs.execute import CodeRequest, execute
from sealab.server.settings import Settings

UPSTREAM = """
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer('up', log_level='ERROR')

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def get(number: int) -> int:
    'Get a number.'
    return number

server.run()
"""
CALLS = 10
CODES: Mapping[str, tuple[str, int]] = {
    "1 + 1": ("1 + 1", 1),
    "a call of a tool": (f"for i in range({CALLS}): await tools.up.get(number=i)", CALLS),
}
ACCESS = run_access(Isolation.RESTRICTED, timeout_seconds=30, memory_mb=500, background=False, session=False)


def rules(count: int) -> str:
    """Return so many rules, of which the last permits what is asked."""
    others = [
        f'permit(principal == Principal::"acme/u{number}", action == Action::"call", resource in Server::"s{number}") '
        'when { resource.name like "get_*" && !resource.writes };'
        for number in range(count - 1)
    ]
    return "\n".join([*others, 'permit(principal in Tenant::"default", action, resource);'])


def microseconds(work: Callable[[int], object], times: int) -> float:
    """Return the median time of a piece of work."""
    taken = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


def print_decisions() -> None:
    print(f"{'rules':>8}{'to read, ms':>14}{'decided, µs':>14}{'kept, µs':>12}")
    for count in (10, 100, 1000):
        began = time.perf_counter()
        book = Rulebook(rules_of({"bench.cedar": rules(count)}))
        read_ms = (time.perf_counter() - began) * 1000
        fresh = microseconds(lambda number: book.decide(Identity("default", f"n{number}", ALL_RIGHTS), ACCESS), 300)  # noqa: B023
        kept = microseconds(lambda _number: book.decide(LOCAL_IDENTITY, ACCESS), 3000)  # noqa: B023
        print(f"{count:>8}{read_ms:>14.0f}{fresh:>14.0f}{kept:>12.1f}")


async def taken_ms(app: App, code: str, parts: int) -> float:
    began = time.perf_counter()
    report = (await execute(app.executor, CodeRequest(code))).report
    assert report["success"], report["error"]
    return (time.perf_counter() - began) * 1000 / parts


async def print_runs(runs: int) -> None:
    """Time the same runs by each server, one after the other in turns."""
    async with AsyncExitStack() as stack:
        apps: dict[str, App] = {}
        for name, count in (("no policy", 0), ("10 rules", 10), ("100 rules", 100), ("1000 rules", 1000)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (folder / "up.py").write_text(UPSTREAM)
            server = {"command": sys.executable, "args": [str(folder / "up.py")], "approve": "never"}
            (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"up": server}}))
            (folder / "p.cedar").write_text(rules(count) if count else "")
            settings = Settings(required_level=Level.LIMITS, policy="p.cedar" if count else None, workers_spare=1)
            apps[name] = await stack.enter_async_context(running(settings, Home(folder), serves=True))
        print(f"\n{'p50 of ' + str(runs) + ' runs, ms':<24}" + "".join(f"{name:>14}" for name in apps))
        for case, (code, parts) in CODES.items():
            times: dict[str, list[float]] = {name: [] for name in apps}
            for _ in range(runs + 2):
                for name, app in apps.items():
                    times[name].append(await taken_ms(app, code, parts))
            medians: Sequence[float] = [statistics.median(each[2:]) for each in times.values()]
            print(f"{case:<24}" + "".join(f"{each:>14.3f}" for each in medians))


if __name__ == "__main__":
    print_decisions()
    asyncio.run(print_runs(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
