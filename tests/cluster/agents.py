"""Agents as teams have them: most think, some call in bursts. A simulation whose distributions are stated here.

- Half of the agents speak 2026-07-28, half hold an MCP session of 2025-11-25.
- Between bursts an agent thinks: lognormal, median 60 s, sigma 1.2, 600 s at most (mean 111 s), all of it times `slower`.
  It begins somewhere in a thought, as one does who is looked at by chance: long ones are met more often, so that the
  rate of calls is the same from the first second on.
- A burst is one call (60 %) or 2 to 10 (40 %, uniform), with exponential pauses of 1 s.
- A call: 60 % add, 20 % call an upstream tool, 15 % wait 1 to 3 s, 5 % write a file.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.load import at
from tests.benchmarks.load_client import LEGACY, MODERN, Client, Load, body_of

from .harness import Running

AGENT_SECONDS = 120.0
ANSWER_SECONDS = 90.0
THINK_MEDIAN_SECONDS, THINK_SIGMA, THINK_MAX_SECONDS = 60.0, 1.2, 600.0
OPENING_AT_ONCE = 8


def thought(rng: random.Random, slower: float) -> float:
    """Return how many seconds an agent thinks."""
    return slower * min(rng.lognormvariate(math.log(THINK_MEDIAN_SECONDS), THINK_SIGMA), THINK_MAX_SECONDS)


def rest_of_thought(rng: random.Random, slower: float) -> float:
    """Return how many seconds of its thought an agent has left at a moment of chance: thoughts count by their length."""
    while True:
        met = thought(rng, slower)
        if rng.random() * slower * THINK_MAX_SECONDS < met:
            return met * rng.random()


def burst(rng: random.Random) -> int:
    """Return how many calls an agent makes before it thinks."""
    return 1 if rng.random() < 0.6 else rng.randint(2, 10)


def call(rng: random.Random, number: int) -> tuple[str, str]:
    """Return the kind of a call and its code, whose result is the number and one."""
    chance = rng.random()
    if chance < 0.6:
        return "add", f"{number} + 1"
    if chance < 0.8:
        return "tool", f"int(await tools.steady.echo(text='{number + 1}'))"
    if chance < 0.95:
        return "wait", f"import asyncio\nawait asyncio.sleep({rng.uniform(1, 3):.2f})\n{number} + 1"
    return "file", f"write_file('agents/{number}.txt', 'x' * 2000)\n{number} + 1"


class Agents:
    """So many agents of one cluster, each a caller of its own, that think so many times as long."""

    def __init__(self, running: Running, count: int, slower: float = 1.0) -> None:
        self._running, self._count, self._slower = running, count, slower
        self._tokens = running.tokens([f"agent-{number}" for number in range(count)])
        self._numbers = itertools.count(1)
        self._took: dict[str, list[float]] = defaultdict(list)
        self._refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._opening_seconds = 0.0
        self._opened = 0

    def run(self) -> None:
        """Let them work for `AGENT_SECONDS`."""
        asyncio.run(self._all())

    async def _all(self) -> None:
        clients = [self._client(number) for number in range(self._count)]
        began = time.monotonic()
        turns = asyncio.Semaphore(OPENING_AT_ONCE)
        await asyncio.gather(*(self._open(client, turns) for client, era in clients if era == LEGACY))
        self._opening_seconds = time.monotonic() - began
        ends = time.monotonic() + AGENT_SECONDS
        work = (self._work(client, era, number, ends) for number, (client, era) in enumerate(clients))
        await asyncio.gather(*work)

    def _client(self, number: int) -> tuple[Client, str]:
        era = LEGACY if number % 2 else MODERN
        return Client(Load(self._running.balancer.url, era=era, tokens=[self._tokens[number]]), "client-0"), era

    async def _open(self, client: Client, turns: asyncio.Semaphore) -> None:
        async with turns:
            try:
                await client.open()
                self._opened += 1
            except (OSError, EOFError) as error:
                self.wrong.append(f"opening a session: {type(error).__name__} {error}")
            finally:
                client.close()

    async def _work(self, client: Client, era: str, number: int, ends: float) -> None:
        rng = random.Random(number)
        await asyncio.sleep(min(rest_of_thought(rng, self._slower), max(0.0, ends - time.monotonic())))
        while time.monotonic() < ends:
            for _ in range(burst(rng)):
                await self._call(client, era, rng)
                await asyncio.sleep(rng.expovariate(1.0))
            await asyncio.sleep(min(thought(rng, self._slower), max(0.0, ends - time.monotonic())))

    async def _call(self, client: Client, era: str, rng: random.Random) -> None:
        number = next(self._numbers)
        kind, code = call(rng, number)
        began = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                status, _headers, data = await client.post(body_of(number, code, {}, era))
        except (OSError, EOFError, TimeoutError) as error:
            self.wrong.append(f"{kind}: {type(error).__name__} after {time.monotonic() - began:.1f} s")
            return
        finally:
            client.close()
        took = time.monotonic() - began
        report = _report(data) if status == 200 else {}
        if status in {429, 503} or report.get("status") == "busy":
            self._refused[f"HTTP {status}" if status != 200 else "busy"] += 1
        elif report.get("result") != number + 1:
            self.wrong.append(f"{kind} in {era}: HTTP {status} {json.dumps(report)[:200] or data[:200]!r}")
        else:
            self._took[kind].append(took * 1000)

    @property
    def calls(self) -> int:
        """How many calls were right."""
        return sum(len(some) for some in self._took.values())

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give what was seen, by kind of call."""
        everything = [each for some in self._took.values() for each in some]
        rate = len(everything) / AGENT_SECONDS
        yield "opening", f"{self._opened} sessions in {self._opening_seconds:.0f} s"
        yield (
            "all calls",
            (
                f"{len(everything)} right ({rate:.1f}/s), {len(self.wrong)} wrong, refused {dict(self._refused)}; "
                f"mean {statistics.fmean(everything) if everything else math.inf:.0f} ms"
            ),
        )
        for kind, some in sorted(self._took.items()):
            yield kind, f"{len(some)} calls, p50 {at(some, 0.5):.0f} ms, p99 {at(some, 0.99):.0f} ms"


def _report(data: bytes) -> dict[str, Any]:
    lines = [line[6:] for line in data.splitlines() if line.startswith(b"data: {")] or [data]
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "result" in message:
            return dict(message["result"].get("structuredContent") or {})
    return {}
