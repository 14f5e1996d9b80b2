"""What a run in a container costs, beside what a user would pick instead, all in turns in one run.

Usage: python tests/benchmarks/container.py [RUNS]    (needs podman)

The turns slow all of them alike when the machine is busy: read the ratios, and the minima.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from sealab.sandbox.container import engine, image
from sealab.sandbox.container.container_pool import ContainerPool, ContainerSettings
from sealab.sandbox.container.engine import Engine
from sealab.sandbox.container.image import ContainerImage
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Json

PAUSE_SECONDS = 0.06
"""Between runs, as between the calls of one agent: time for the next spare."""

RUNS = 60
SLOW_EACH = 10
"""What takes a hundred times as long runs in every tenth turn only."""
CODE = "print(1 + 1)"


async def no_calls(_name: str, _arguments: Mapping[str, Json]) -> Json:
    return None


class Bench:
    """The contestants: each name with what it does once."""

    def __init__(self, built: ContainerImage, folder: Path, found: Engine) -> None:
        self._image = built
        self._folder = folder
        self._engine = found
        self._kept = engine.new_name()

    async def enter(self, stack: AsyncExitStack) -> Mapping[str, Callable[[], Awaitable[object]]]:
        restricted = await stack.enter_async_context(Pool(PoolSettings()))
        process = await stack.enter_async_context(Pool(PoolSettings(isolation=Isolation.PROCESS)))
        direct = await stack.enter_async_context(self._containers(self._engine.program))
        streams = await stack.enter_async_context(self._containers(str(self._without("--preserve-fds"))))
        await self._keep_a_container(stack)

        def of(pool: Pool | ContainerPool, isolation: Isolation, session: str | None = None) -> Callable[[], object]:
            return lambda: pool.run(Job(CODE, isolation=isolation, session=session), no_calls)

        inside = [self._image.python, "-I", "-c", CODE]
        return {
            "restricted": of(restricted, Isolation.RESTRICTED),
            "process": of(process, Isolation.PROCESS),
            "container": of(direct, Isolation.CONTAINER),
            "container, in a session": of(direct, Isolation.CONTAINER, "bench"),
            "container, over its streams alone": of(streams, Isolation.CONTAINER),
            "a Python process for each run": lambda: self._run([sys.executable, "-I", "-c", CODE]),
            "podman exec for each run": lambda: self._run([*self._engine.base(), "exec", self._kept, *inside]),
            "podman run for each run": lambda: self._run(self._command(engine.new_name(), inside)),
        }

    def _containers(self, wanted: str) -> ContainerPool:
        return ContainerPool(ContainerSettings(PoolSettings(spares=1), self._image, self._folder, wanted))

    def _without(self, option: str) -> Path:
        """Make a podman that ignores an option which takes a value."""
        podman = self._folder / "podman"
        podman.write_text(
            f"#!{sys.executable}\nimport os, sys\nwords = sys.argv[1:]\n"
            f"place = words.index({option!r}) if {option!r} in words else len(words)\n"
            f"os.execv({self._engine.program!r}, ['podman', *words[:place], *words[place + 2:]])\n"
        )
        podman.chmod(0o755)
        return podman

    async def _keep_a_container(self, stack: AsyncExitStack) -> None:
        sleeping = [self._image.python, "-I", "-c", "import time; time.sleep(3600)"]
        command = self._command(self._kept, sleeping)
        kept = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.DEVNULL, cwd=self._engine.cwd(), env=engine.environment()
        )

        async def end() -> None:
            await self._engine.remove(self._kept)
            await kept.wait()

        stack.push_async_callback(end)
        await asyncio.sleep(2)

    def _command(self, name: str, command: list[str]) -> list[str]:
        code = image.code(self._folder)
        return self._engine.run(self._image, code, name=name, memory_mb=500, processes=64, command=command)

    async def _run(self, command: list[str]) -> None:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self._engine.cwd(),
            env=engine.environment(),
        )
        if await process.wait():
            raise SystemExit(f"{command[:3]} failed")


async def main(runs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="sb-") as home:
        folder = Path(home) / "container"
        built = image.build(folder)
        found = await engine.find(None, built, image.code(folder), folder / "engine")
        async with AsyncExitStack() as stack:
            contestants = await Bench(built, folder, found).enter(stack)
            first = {}
            for name, once in contestants.items():
                first[name] = await timed(once)
                await asyncio.sleep(1)
            taken: dict[str, list[float]] = {name: [] for name in contestants}
            for turn in range(runs):
                for name, once in contestants.items():
                    if turn % SLOW_EACH == 0 or "for each run" not in name:
                        taken[name].append(await timed(once))
                        await asyncio.sleep(PAUSE_SECONDS)
        show(taken, first)


async def timed(once: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    await once()
    return (time.perf_counter() - began) * 1000


def show(taken: Mapping[str, list[float]], first: Mapping[str, float]) -> None:
    print(f"{'milliseconds':36}{'least':>9}{'p50':>9}{'p95':>9}{'first':>9}{'p50 beside restricted':>23}")
    usual = statistics.median(taken["restricted"])
    for name, times in taken.items():
        ordered = sorted(times)
        middle = statistics.median(ordered)
        print(
            f"{name:36}{ordered[0]:9.2f}{middle:9.2f}{ordered[int(len(ordered) * 0.95)]:9.2f}"
            f"{first[name]:9.0f}{middle / usual:23.1f}"
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
