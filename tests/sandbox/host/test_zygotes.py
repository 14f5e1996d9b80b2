"""A zygote is renewed in time, and nobody waits for it or loses anything by it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from sealab.sandbox.confine import cgroups
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.host.worker import WorkerHandle
from sealab.sandbox.host.zygote_launcher import ZygoteLauncher
from sealab.sandbox.job import Isolation, Job, Limits

from ...processes import alive, children
from ...waiting import until
from ..conftest import no_calls

# They look at the processes that they started.
pytestmark = pytest.mark.usefixtures("own_children")

SOON = 0.3
"""Seconds after which a zygote is renewed here, once something ran."""

LAYOUT = "hash(int)"
"""It is made of an address."""


async def value(pool: Pool, code: str, *, isolation: Isolation = Isolation.RESTRICTED, session: str | None = None):
    limits = Limits(timeout_seconds=20.0, memory_mb=100)
    return (await pool.run(Job(code, isolation=isolation, limits=limits, session=session), no_calls)).result


async def until_a_successor_starts(pool: Pool) -> list[ZygoteLauncher]:
    """Run code until a successor is being started; return the list of it and of those that are started later."""
    await pool.ready()
    launch, launched = pool._zygotes._launch_it, []

    def noted():
        launched.append(launch())
        return launched[-1]

    pool._zygotes._launch_it = noted
    while not launched:
        await value(pool, "1")
    return launched


@pytest.mark.parametrize("isolation", [Isolation.RESTRICTED, Isolation.PROCESS])
async def test_after_some_time_the_next_runs_have_another_layout_and_in_full_python_another_hash_seed(isolation):
    code = LAYOUT if isolation is Isolation.RESTRICTED else f"[{LAYOUT}, hash('what one run learns of the next')]"
    async with Pool(PoolSettings(spares=1, isolation=isolation, zygote_seconds=SOON)) as pool:
        await pool.ready()
        before = await value(pool, code, isolation=isolation)
        first = pool._zygotes.newest
        after = before
        while after == before:
            after = await value(pool, code, isolation=isolation)
        assert pool.stats().zygotes >= 2
        if isolation is Isolation.PROCESS:
            assert before[0] != after[0]
            assert before[1] != after[1]
        await until(lambda: not alive(first.pid))


async def test_where_nothing_runs_nothing_is_renewed():
    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON)) as pool:
        await pool.ready()
        await asyncio.sleep(3 * SOON)
        assert pool.stats().zygotes == 1
        await value(pool, "1")
        await until(lambda: pool.stats().zygotes == 2)


async def test_while_a_successor_starts_runs_go_on_with_the_zygote_that_is_there():
    async with Pool(PoolSettings(spares=2, zygote_seconds=SOON)) as pool:
        await pool.ready()
        layouts = []
        while pool._zygotes._renewing is None:
            layouts.append(await value(pool, LAYOUT))
        renewing = pool._zygotes._renewing
        during = []
        while not renewing.done():
            during.append(await value(pool, LAYOUT))
        assert len(during) > 1, "runs waited for the successor"
        assert set(during[:-1]) == set(layouts)
        # Spares of the earlier one serve until each is replaced.
        await until(lambda: not any(each in pool._outdated for each in pool._idle) and len(pool._idle) == 2)
        assert await value(pool, LAYOUT) not in layouts


async def test_a_session_keeps_its_zygote_which_ends_after_it():
    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON)) as pool:
        await value(pool, f"kept = {LAYOUT}", session="a")
        first = pool._zygotes.newest
        while pool.stats().zygotes == 1:
            await value(pool, "1")
        assert await value(pool, f"kept == {LAYOUT}", session="a") is True
        assert alive(first.pid)
        await pool.end_session("a")
        await until(lambda: not alive(first.pid))
        assert await value(pool, "6 * 7") == 42


async def test_all_zygotes_of_a_pool_share_one_bound_on_memory_and_processors():
    def groups(pid: int) -> str:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")

    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON, cpus=1)) as pool:
        await value(pool, "kept = 1", session="a")
        first = pool._zygotes.newest
        while pool.stats().zygotes < 3:
            await value(pool, "1")
        assert alive(first.pid)
        assert groups(first.pid) == groups(pool._zygotes.newest.pid)
        assert os.sched_getaffinity(first.pid) == os.sched_getaffinity(pool._zygotes.newest.pid)
        if {"cgroup", "cpus"} <= set(pool.stats().layers) and cgroups.where_processors() is not None:
            assert groups(first.pid) != groups(os.getpid())


async def test_a_successor_that_does_not_start_leaves_everything_as_it_was(monkeypatch, caplog):
    from sealab.sandbox.host import zygote_launcher

    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON)) as pool:
        await pool.ready()
        with monkeypatch.context() as broken:
            broken.setattr(zygote_launcher, "_BOOT", "import sys; sys.exit('broken')")
            while "could not be renewed" not in caplog.text:
                assert await value(pool, "6 * 7") == 42
        assert pool.stats().zygotes == 1
        while pool.stats().zygotes == 1:
            assert await value(pool, "6 * 7") == 42


async def test_a_zygote_that_dies_while_its_successor_starts_is_replaced_and_none_is_left():
    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON)) as pool:
        await pool.ready()
        while pool._zygotes._renewing is None:
            await value(pool, "1")
        killed = pool._zygotes.newest
        os.kill(killed.pid, signal.SIGKILL)
        await until(lambda: not killed.alive)  # a run that began in one of its workers would end with it
        for _ in range(5):
            assert await value(pool, "6 * 7") == 42
        await until(lambda: pool._zygotes._renewing is None and not pool._zygotes._retired)
    await until(lambda: not children())


@pytest.mark.parametrize("steps", [0, 1, 3])
async def test_a_pool_that_closes_while_a_successor_starts_leaves_no_process(steps):
    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON)) as pool:
        await value(pool, "1", session="a")
        while pool._zygotes._renewing is None:
            await value(pool, "1")
        for _ in range(steps):
            await asyncio.sleep(0.01)
    await until(lambda: not children())


async def test_a_pool_that_closes_while_a_started_successor_waits_to_take_over_leaves_no_process():
    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON)) as pool:
        launched = await until_a_successor_starts(pool)
        async with pool._zygotes._launching:
            await until(lambda: launched[0]._hello is not None and launched[0]._hello.done())
            await asyncio.sleep(0.05)
            assert pool._zygotes.newest is not launched[0]
            await pool.aclose()
            await until(lambda: not children())


async def test_jobs_at_once_lose_nothing_over_many_renewals():
    async with Pool(PoolSettings(spares=2, workers_max=4, zygote_seconds=SOON)) as pool:
        await pool.ready()

        async def loop(number: int) -> None:
            for turn in range(8):
                assert await value(pool, f"{number} * 100 + {turn}") == number * 100 + turn

        async with asyncio.timeout(60):
            while pool.stats().zygotes < 4:
                await asyncio.gather(*(loop(number) for number in range(4)))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(pool._zygotes._renewing or asyncio.sleep(0)), 10)
        await until(lambda: not pool._zygotes._retired)


async def test_one_that_began_to_start_before_all_were_dropped_does_not_take_over():
    async with Pool(PoolSettings(spares=1, zygote_seconds=SOON)) as pool:
        launched = await until_a_successor_starts(pool)
        renewing = pool._zygotes._renewing
        await pool._zygotes.drop()
        await renewing
        await value(pool, "1")  # a spare of the earlier one may run it
        await until(lambda: len(launched) == 2)
        assert pool._zygotes.newest is launched[1]
        await until(lambda: not launched[0].alive)


async def test_a_worker_that_was_being_made_while_packages_were_added_is_not_used(monkeypatch):
    builds, made = ["first"], []
    make = WorkerHandle.make

    async def made_meanwhile(*arguments, **options):
        made.append(await make(*arguments, **options))
        if len(made) == 1:
            builds.append("second")
            await pool._notice_packages()
        return made[-1]

    monkeypatch.setattr(WorkerHandle, "make", made_meanwhile)
    async with Pool(PoolSettings(spares=1, installed=lambda: builds[-1])) as pool:
        await pool.ready()
        assert pool._idle == [made[1]]
        assert made[0].gone
        assert await value(pool, "6 * 7") == 42
