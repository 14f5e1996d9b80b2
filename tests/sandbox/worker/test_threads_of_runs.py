"""Threads of code in real workers: confined, limited, in sessions, and while they wait for the host."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sealab.sandbox.host.pool import Pool
from sealab.sandbox.job import Json, Status

from ..conftest import run


async def answer(name: str, arguments: Mapping[str, Json]) -> Json:
    return {"content": "aGk=", "truncated": False}


async def test_a_confined_worker_runs_threads_and_has_no_more_of_them_for_the_kernel(pool: Pool) -> None:
    source = """
import _thread, threading, time
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as executor:
    squares = list(executor.map(lambda n: (time.sleep(0.001), n * n)[1], range(5)))
squares
"""
    assert (await run(pool, source)).result == [0, 1, 4, 9, 16]


async def test_a_deadlock_names_the_line_that_waits(pool: Pool) -> None:
    outcome = await run(pool, "import threading\n\nthreading.Event().wait()\n")

    assert outcome.status is Status.ERROR
    assert outcome.error is not None
    assert outcome.error.type == "RuntimeError"
    assert outcome.error.line == 3
    assert outcome.error.message.startswith("every thread waits")


@pytest.mark.parametrize(
    "last",
    [
        "asyncio.gather(f(1), f(2))",
        "await asyncio.sleep(0)\nasyncio.gather(f(1), f(2))",
        "await asyncio.sleep(0)\nasyncio.ensure_future(g())",
        "t = asyncio.create_task(g())\nawait asyncio.sleep(0.02)\nt",
        "result = asyncio.gather(f(1), f(2))",
    ],
)
async def test_a_task_on_the_last_line_is_waited_for(pool: Pool, last: str) -> None:
    before = "import asyncio\nasync def f(x):\n    await asyncio.sleep(0.01)\n    return x\n"
    outcome = await run(pool, f"{before}async def g():\n    return [await f(1), await f(2)]\n{last}")
    assert outcome.error is None
    assert outcome.result == [1, 2]


async def test_what_a_task_on_the_last_line_raises_ends_the_program(pool: Pool) -> None:
    source = "import asyncio\nasync def f():\n    1 / 0\nawait asyncio.sleep(0)\nasyncio.gather(f())"
    outcome = await run(pool, source)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.line) == ("ZeroDivisionError", 3)


async def test_a_task_that_had_not_ended_is_reported_with_its_line(pool: Pool) -> None:
    source = "import asyncio\nasync def slow():\n    await asyncio.sleep(60)\ntask = asyncio.create_task(slow())\nawait asyncio.sleep(0)\n1"

    outcome = await run(pool, source)

    assert outcome.result == 1
    assert "slow() of line 4" in outcome.notes["tasks"]


async def test_a_thread_that_finds_no_memory_fails_by_itself(pool: Pool) -> None:
    source = """
import threading
def hold():
    own = bytearray(256 << 20)
for _ in range(10):
    threading.Thread(target=hold).start()
"""
    outcome = await run(pool, source, memory_mb=64)

    assert outcome.status is Status.OK
    assert "MemoryError" in outcome.stderr


async def test_switching_without_any_memory_left_ends_the_run_in_order(pool: Pool) -> None:
    source = """
import threading
held, event = [], threading.Event()
def fill(size):
    while size:
        try:
            held.append(bytearray(size))
        except MemoryError:
            size //= 2
        event.wait(0)
threads = [threading.Thread(target=fill, args=(1 << 22,)) for _ in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    assert (await run(pool, source, memory_mb=64)).status in {Status.OK, Status.ERROR, Status.MEMORY}


async def test_a_session_keeps_its_pool_and_its_threads(pool: Pool) -> None:
    first = await run(
        pool,
        "import queue, threading\nfrom concurrent.futures import ThreadPoolExecutor\nexecutor = ThreadPoolExecutor(1)\n"
        "items, got = queue.Queue(), []\n"
        "threading.Thread(target=lambda: got.append(items.get()), daemon=True).start()\nexecutor.submit(abs, -1).result()",
        session="s",
    )
    second = await run(pool, "items.put(5)\n[executor.submit(abs, -2).result(), got]", session="s")

    assert first.result == 1
    assert second.result == [2, [5]]


async def test_threads_ask_the_host(pool: Pool) -> None:
    source = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
async def main():
    return await asyncio.gather(*(asyncio.to_thread(read_file, "a") for _ in range(3)))
with ThreadPoolExecutor(2) as executor:
    texts = list(executor.map(read_file, ["a", "b"]))
texts + asyncio.run(main())
"""
    outcome = await run(pool, source, answer)

    assert outcome.error is None
    assert len(outcome.result) == 5  # type: ignore[arg-type]  # a list
