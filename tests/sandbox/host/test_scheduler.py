"""Who waits for something holds up nobody, and nobody's long runs delay another's."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sealab.sandbox.errors import Busy, WorkerLost
from sealab.sandbox.host import pool as pool_module
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.host.process_state import family
from sealab.sandbox.host.zygote_launcher import ZygoteLauncher
from sealab.sandbox.job import Isolation, Job, Json, Limits, Status

from ..conftest import no_calls

BURN = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < {}:\n    pass\n'burnt'"
ISOLATIONS = pytest.mark.parametrize("isolation", [Isolation.RESTRICTED, Isolation.PROCESS])


class Meeting:
    """A host function that answers when as many have asked as were expected."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.here = 0
        self.everybody = asyncio.Event()
        self.all_but_one = asyncio.Event()

    async def answer(self, _name: str, _arguments: Mapping[str, Json]) -> Json:
        self.here += 1
        if self.here == self.expected - 1:
            self.all_but_one.set()
        if self.here == self.expected:
            self.everybody.set()
        await self.everybody.wait()
        return "met"


@ISOLATIONS
async def test_runs_that_wait_for_an_answer_hold_no_turn(isolation: Isolation) -> None:
    meeting = Meeting(13)
    code = "await call_tool('a.meet', {})"
    async with Pool(PoolSettings(spares=1, workers_max=2, isolation=isolation)) as pool:
        runs = [
            asyncio.create_task(pool.run(Job(code, caller=f"{number % 3}", isolation=isolation), meeting.answer))
            for number in range(12)
        ]
        await meeting.all_but_one.wait()
        assert (await pool.run(Job("6 * 7", isolation=isolation), no_calls)).result == 42
        stats = pool.stats()
        assert stats.running + stats.resting == 12
        await meeting.answer("", {})
        assert [(await run).result for run in runs] == ["met"] * 12
        assert pool._scheduler.whole


@ISOLATIONS
@pytest.mark.parametrize("sleep", ["time.sleep({})", "await asyncio.sleep({})"])
async def test_runs_that_sleep_hold_no_turn(isolation: Isolation, sleep: str) -> None:
    code = f"import time, asyncio\n{sleep.format(30)}\n'woke'"
    async with Pool(PoolSettings(spares=1, workers_max=2, isolation=isolation)) as pool:
        limits = Limits(timeout_seconds=60)
        runs = [
            asyncio.create_task(pool.run(Job(code, limits=limits, caller="a", isolation=isolation), no_calls))
            for _ in range(6)
        ]
        for caller in ("a", "b"):
            outcome = await pool.run(Job("6 * 7", caller=caller, isolation=isolation), no_calls)
            assert outcome.result == 42
        assert not any(run.done() for run in runs)
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        assert pool._scheduler.whole


async def test_many_runs_are_alive_at_once_while_few_compute() -> None:
    meeting = Meeting(100)
    async with Pool(PoolSettings(spares=2, workers_max=2)) as pool:
        outcomes = await asyncio.gather(
            *(
                pool.run(Job("await call_tool('a.meet', {})", caller=f"{number % 4}"), meeting.answer)
                for number in range(100)
            )
        )
        assert {outcome.result for outcome in outcomes} == {"met"}


@ISOLATIONS
async def test_a_caller_with_long_runs_does_not_delay_another(isolation: Isolation) -> None:
    endless = Job("while True:\n    pass", limits=Limits(timeout_seconds=50), caller="greedy", isolation=isolation)
    async with Pool(PoolSettings(spares=1, workers_max=2, isolation=isolation)) as pool:
        greedy = [asyncio.create_task(pool.run(endless, no_calls)) for _ in range(6)]
        await asyncio.sleep(0.3)
        for _ in range(3):
            assert (await pool.run(Job("6 * 7", caller="modest", isolation=isolation), no_calls)).result == 42
        assert not any(run.done() for run in greedy)
        assert pool._scheduler.whole
        for run in greedy:
            run.cancel()
        await asyncio.gather(*greedy, return_exceptions=True)
        assert pool.stats().running == 0


async def test_runs_that_are_stopped_for_others_go_on_to_their_end_and_pay_no_time_for_it() -> None:
    async with Pool(PoolSettings(spares=1, workers_max=1)) as pool:
        await pool.ready()
        limits = Limits(timeout_seconds=3)
        outcomes = await asyncio.gather(
            *(
                pool.run(Job(BURN.format(0.4), limits=limits, caller=f"{number}"), no_calls)  # 3.2 seconds in all
                for number in range(8)
            )
        )
        assert [outcome.result for outcome in outcomes] == ["burnt"] * 8


async def test_a_stopped_run_in_a_session_leaves_the_session_alive() -> None:
    async with Pool(PoolSettings(spares=1, workers_max=1)) as pool:
        mine = Job(f"x = 1\n{BURN.format(0.4)}", session="a/s", caller="a")
        others = [Job(BURN.format(0.2), caller=f"{number}") for number in range(3)]
        outcomes = await asyncio.gather(*(pool.run(job, no_calls) for job in (mine, *others)))
        assert [outcome.result for outcome in outcomes] == ["burnt"] * 4
        assert (await pool.run(Job("x", session="a/s", caller="a"), no_calls)).result == 1


async def test_a_worker_that_wakes_by_itself_computes_only_in_its_turn() -> None:
    """One of two sleepers wakes while a third run computes: with one turn, no two of them compute at once."""
    wakes = f"import time\ntime.sleep(0.3)\n{BURN.format(0.3)}"
    async with Pool(PoolSettings(spares=1, workers_max=1)) as pool:
        runs = [asyncio.create_task(pool.run(Job(wakes, caller=f"{number}"), no_calls)) for number in range(3)]
        runs.append(asyncio.create_task(pool.run(Job(BURN.format(1.0), caller="busy"), no_calls)))
        computing = 0
        while not all(run.done() for run in runs):
            await asyncio.sleep(0.05)
            seats = pool._scheduler._seats
            computing = max(computing, sum(seat.turn.held for seat in seats))
        assert [(await run).result for run in runs] == ["burnt"] * 4
        assert computing == 1


async def test_a_timeout_ends_a_stopped_worker() -> None:
    endless = "while True:\n    pass"
    async with Pool(PoolSettings(spares=1, workers_max=1)) as pool:
        limits = Limits(timeout_seconds=0.5)
        outcomes = await asyncio.gather(
            *(pool.run(Job(endless, limits=limits, caller=f"{number}"), no_calls) for number in range(4))
        )
        assert {outcome.status for outcome in outcomes} == {Status.TIMEOUT}
        assert (await pool.run(Job("6 * 7"), no_calls)).result == 42


async def test_a_run_that_cannot_begin_in_time_is_refused_and_the_rest_goes_on() -> None:
    settings = PoolSettings(spares=1, workers_max=1, queue_seconds=0.3, queue_max=3)
    async with Pool(settings) as pool:
        first = asyncio.create_task(pool.run(Job(BURN.format(2)), no_calls))
        await asyncio.sleep(0.2)
        later = await asyncio.gather(*(pool.run(Job("1"), no_calls) for _ in range(8)), return_exceptions=True)
        assert [type(each) for each in later] == [Busy] * 8
        assert sum("wait to begin already" in str(each) for each in later) == 5
        assert (await first).result == "burnt"
        assert (await first).queued_ms < 100
        assert pool._scheduler.whole


class LittleMemory:
    """A machine with so much memory left."""

    def __init__(self, free_mb: int) -> None:
        self.free_mb = free_mb

    def free_bytes(self) -> int:
        return self.free_mb * 1024 * 1024

    def limit_bytes(self) -> int:
        return self.free_bytes()


async def test_runs_wait_for_memory_that_others_were_promised_and_one_runs_alone_with_what_there_is() -> None:
    async with Pool(PoolSettings(spares=1, workers_max=8)) as pool:
        pool._scheduler._memory = LittleMemory(1100)  # type: ignore[assignment]
        jobs = [Job(BURN.format(0.2), limits=Limits(memory_mb=500), caller="a") for _number in range(6)]
        runs = [asyncio.create_task(pool.run(job, no_calls)) for job in jobs]
        most = 0
        while not all(run.done() for run in runs):
            await asyncio.sleep(0.01)
            most = max(most, pool.stats().running)
        assert (most, [(await run).result for run in runs]) == (2, ["burnt"] * 6)
        endless = Job("while True: pass", limits=Limits(memory_mb=500, timeout_seconds=50), caller="a")
        runs = [asyncio.create_task(pool.run(endless, no_calls)) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert (await pool.run(Job("6 * 7", caller="b"), no_calls)).result == 42
        assert not any(run.done() for run in runs)
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        pool._scheduler._memory = LittleMemory(10)  # type: ignore[assignment]
        assert (await pool.run(Job("6 * 7"), no_calls)).result == 42


@contextmanager
def descriptors_left(number: int) -> Iterator[None]:
    """Let this process open only so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    taken = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(min(number, len(taken))):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


@pytest.mark.parametrize("left", range(9))
@pytest.mark.parametrize("started", [True, False])
async def test_where_descriptors_run_out_every_run_is_answered_and_all_is_well_after(
    left: int, started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "_BACK_OFF_SECONDS", (0.0, 0.01))
    spare = [os.dup(0) for _ in range(12)]
    async with Pool(PoolSettings(spares=1, workers_max=2)) as pool:
        if started:
            assert (await pool.run(Job("1"), no_calls)).result == 1
        for descriptor in spare:
            os.close(descriptor)
        with descriptors_left(left):
            async with asyncio.timeout(50):
                told = await asyncio.gather(
                    *(pool.run(Job("6 * 7"), no_calls) for _ in range(6)), return_exceptions=True
                )
        for each in told:
            if isinstance(each, BaseException):
                assert isinstance(each, WorkerLost), each
            else:
                assert each.result == 42
        assert pool._scheduler.whole
        stats = pool.stats()
        assert (stats.running, stats.waiting) == (0, 0)
        assert (await pool.run(Job("6 * 7"), no_calls)).result == 42


def oom_score(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="proc(5) is Linux's")
@ISOLATIONS
async def test_the_kernel_ends_workers_before_their_host(isolation: Isolation) -> None:
    async with Pool(PoolSettings(spares=1, isolation=isolation)) as pool:
        await pool.ready()
        newest = pool._zygotes.newest
        assert isinstance(newest, ZygoteLauncher)
        assert newest.pid is not None
        assert min(oom_score(pid) for pid in family(newest.pid)) >= max(oom_score("self"), 800)
        assert len(family(newest.pid)) > 1
