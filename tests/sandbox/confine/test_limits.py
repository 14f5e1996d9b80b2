"""Resource limits as the kernel sees them, on spares and on workers at work."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from sealab.sandbox.confine.limits import MIB, REPORT_RESERVE_BYTES, Allowance, reserve_bytes
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Job, Limits, Status

from ..conftest import no_calls, run, spare

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes are read from /proc")

MAXIMUM = Limits(timeout_seconds=120, memory_mb=400, open_files_max=64, file_size_mb=64)


def kernel_limits(pid: int) -> dict[str, tuple[str, str]]:
    """Soft and hard limits by the name that proc(5) gives them."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    return {line[:26].strip(): tuple(line[26:].split()[:2]) for line in lines}


async def working(pool, session=None, **limits):
    """Start an endless run and give its task and its process id once it runs."""
    worker = await spare(pool)
    job = Job(
        "while True:\n    pass", limits=Limits(**{"timeout_seconds": 1.0, "memory_mb": 100, **limits}), session=session
    )
    task = asyncio.create_task(pool.run(job, no_calls))
    await asyncio.sleep(0.3)
    return task, worker.pid


@pytest.fixture(scope="module")
async def pool():
    async with Pool(PoolSettings(spares=1, maximum=MAXIMUM)) as pool:
        await pool.ready()
        yield pool


async def test_a_spare_stands_at_what_the_operator_allows(pool):
    limits = kernel_limits((await spare(pool)).pid)
    assert limits["Max core file size"] == ("0", "0")
    assert limits["Max processes"] == ("0", "0")
    assert limits["Max open files"] == ("64", "64")
    assert limits["Max file size"] == (str(64 * MIB), str(64 * MIB))
    soft, hard = map(int, limits["Max address space"])
    assert hard - soft == reserve_bytes(400 * MIB) == REPORT_RESERVE_BYTES
    assert soft > 400 * MIB


async def test_a_worker_goes_down_to_what_its_job_asked_for_and_cannot_go_back(pool):
    before = kernel_limits((await spare(pool)).pid)
    task, pid = await working(pool, memory_mb=100, open_files_max=16, file_size_mb=1)
    after = kernel_limits(pid)
    assert after["Max open files"] == ("16", "16")
    assert after["Max file size"] == (str(MIB), str(MIB))
    assert after["Max cpu time"] == ("3", "3")
    lowered = [int(a) - int(b) for a, b in zip(before["Max address space"], after["Max address space"], strict=True)]
    assert lowered == [300 * MIB, 300 * MIB + reserve_bytes(400 * MIB) - reserve_bytes(100 * MIB)]
    assert (await task).status is Status.TIMEOUT


async def test_a_session_lowers_only_what_it_can_raise_again(pool):
    before = kernel_limits((await spare(pool)).pid)["Max address space"]
    task, pid = await working(pool, session="a", memory_mb=100)
    after = kernel_limits(pid)
    assert int(before[0]) - int(after["Max address space"][0]) == 300 * MIB
    assert after["Max address space"][1] == before[1]
    assert after["Max cpu time"][0] == "unlimited"
    await task


def test_the_reserve_for_a_report_never_carries_a_run_past_what_is_promised_of_its_limit():
    for memory_mb in (1, 16, 64, 100, 320, 500, 2000):
        assert 0 < reserve_bytes(memory_mb * MIB) <= min(0.1 * memory_mb * MIB, REPORT_RESERVE_BYTES)


async def test_memory_counts_above_what_the_warm_interpreter_holds(pool):
    outcome = await run(pool, "len(bytearray(48 * 1024 * 1024))", memory_mb=60)
    assert outcome.result == 48 * MIB
    assert (await run(pool, "len(bytearray(64 * 1024 * 1024))", memory_mb=60)).status is Status.MEMORY


async def test_the_stack_is_deep_enough_for_the_interpreters_own_recursion(pool):
    assert int(kernel_limits((await spare(pool)).pid)["Max stack size"][0]) >= 64 * MIB


def test_an_allowance_comes_back_from_a_frame_as_it_went_in():
    allowance = Allowance.of(Limits(), session=False)
    assert Allowance(**allowance.to_json()) == allowance
    assert Allowance.of(Limits(), session=True).cpu_seconds is None
    assert Allowance.of(Limits(timeout_seconds=1.5), session=False).cpu_seconds == 3  # a net below the wall clock
