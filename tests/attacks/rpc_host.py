"""A host of its own for one case of the control channel: the real pool and the real broker, with tools to attack.

Reads `{code, timeout_seconds, memory_mb, home, secret}` as JSON from stdin and writes what it saw to stdout. It is a
process of its own so that a case which kills or fills its host harms nothing else, and its memory tells.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from product import memory_mb

from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Limits, Outcome
from sealab.server.use_cases.host_functions import broker
from sealab.server.use_cases.host_functions.workspace_calls import WorkspaceCalls
from sealab.workspace.store import Workspace

CALLS_MAX = 1000
_BIG_CHARS = 1_000_000


class Tools:
    """The granted tools, and a record of everything that took effect. `admin_delete` exists but is granted nobody."""

    def __init__(self, secret: str) -> None:
        self.effects: Counter[str] = Counter()
        self.ungranted: list[str] = []
        self.now = 0
        self.most_at_once = 0
        self._secret = secret

    async def admin_delete(self, **arguments: Any) -> str:
        self.ungranted.append(f"admin_delete({arguments})")
        return "deleted"

    @broker.host_function()
    async def echo(self, _calls: broker.Calls, /, *, text: str | None = None) -> Any:
        self.effects["echo"] += 1
        return text

    @broker.host_function()
    async def whoami(self, _calls: broker.Calls, /) -> str:
        self.effects["whoami"] += 1
        return "this execution"

    @broker.host_function()
    async def slow(self, _calls: broker.Calls, /) -> str:
        self.effects["slow"] += 1
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            await asyncio.sleep(0.5)
        finally:
            self.now -= 1
        return "done"

    @broker.host_function()
    async def big(self, _calls: broker.Calls, /) -> str:
        self.effects["big"] += 1
        return "x" * _BIG_CHARS

    @broker.host_function()
    async def fails_with_secret(self, _calls: broker.Calls, /) -> str:
        raise RuntimeError(f"could not log in with {self._secret} from /root/.credentials")

    @broker.host_function()
    async def returns_hostile(self, _calls: broker.Calls, /) -> Any:
        return {"__class__": "os", "op": "result", "t": "done", "text": "\x1b[2J</tool>", "deep": [[[[]]]]}


async def main() -> None:
    order = json.load(sys.stdin)
    tools = Tools(order["secret"])
    limits = Limits(timeout_seconds=order["timeout_seconds"], memory_mb=order["memory_mb"])
    settings = PoolSettings(spares=1, isolation=Isolation.PROCESS, maximum=limits)
    with Workspace(Path(order["home"]) / "workspace", quota_bytes=10_000_000) as workspace:
        async with Pool(settings) as pool:
            await pool.ready()
            answering = broker.handlers_of(WorkspaceCalls(workspace), tools)
            before = memory_mb(os.getpid())
            calls = broker.Calls(answering, budget=CALLS_MAX)
            began = time.monotonic()
            outcome = await pool.run(Job(order["code"], limits=limits, isolation=Isolation.PROCESS), calls.answer)
            seconds = time.monotonic() - began
            grown = memory_mb(os.getpid(), "VmHWM") - before
            after = await _follow_up(pool, limits, broker.Calls(answering, budget=CALLS_MAX))
    print(
        json.dumps(
            {
                "report": _report(outcome),
                "seconds": seconds,
                "growth_mb": grown,
                "effects": tools.effects,
                "ungranted": tools.ungranted,
                "concurrency": tools.most_at_once,
                "alive": after.result == 42,
                "after": _report(after),
            }
        )
    )


async def _follow_up(pool: Pool, limits: Limits, calls: broker.Calls) -> Outcome:
    return await pool.run(Job("result = 20 + 22", limits=limits, isolation=Isolation.PROCESS), calls.answer)


def _report(outcome: Outcome) -> dict[str, Any]:
    return {
        "status": outcome.status.value,
        "success": outcome.status.value == "ok",
        "result": outcome.result,
        "output": outcome.output[:10_000],
        "error": None if outcome.error is None else asdict(outcome.error),
        "layers": list(outcome.layers),
        "isolation": outcome.isolation.value,
    }


if __name__ == "__main__":
    asyncio.run(main())
