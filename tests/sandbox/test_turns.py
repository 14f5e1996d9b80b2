"""Turns are shared fairly between callers, and none is ever lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.sandbox.pool import Pool, PoolSettings
from sealab.sandbox.run import Job
from sealab.sandbox.turns import Turns

from .conftest import no_calls


class Jobs:
    """Jobs that hold their turn until they are told to end, and the order in which they began."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.began: list[str] = []
        self.running: list[tuple[str, asyncio.Event]] = []
        self.tasks: dict[asyncio.Task[None], str] = {}

    async def _job(self, caller: str) -> None:
        async with self.turns.turn(caller):
            end = asyncio.Event()
            entry = (caller, end)
            self.began.append(caller)
            self.running.append(entry)
            try:
                await end.wait()
            finally:
                self.running.remove(entry)

    def start(self, caller: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self._job(caller))
        self.tasks[task] = caller
        task.add_done_callback(self.tasks.pop)
        return task

    async def end_oldest(self) -> None:
        self.running[0][1].set()
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_job_waits_for_the_first_running_one_whoever_has_hundreds_waiting() -> None:
    jobs = Jobs(Turns(8))
    for _ in range(400):
        jobs.start("greedy")
    await settled()
    jobs.start("modest")
    await settled()
    assert jobs.began == ["greedy"] * 8
    assert jobs.turns.waiting == 393
    await jobs.end_oldest()
    assert jobs.began[8:] == ["modest"]
    await jobs.end_oldest()
    assert jobs.began[9:] == ["greedy"]
    for task in list(jobs.tasks):
        task.cancel()
    await asyncio.wait(list(jobs.tasks))
    assert (jobs.turns.free, jobs.turns.running, jobs.turns.waiting) == (8, 0, 0)


async def test_callers_that_all_wait_are_served_in_turn_and_each_in_order() -> None:
    jobs = Jobs(Turns(1))
    for caller in ("a", "a", "a", "b", "b", "c"):
        jobs.start(caller)
        await settled()
    for _ in range(5):
        await jobs.end_oldest()
    assert jobs.began == ["a", "b", "c", "a", "b", "a"]
    await jobs.end_oldest()


async def test_a_turn_goes_to_whoever_has_the_fewest_now() -> None:
    jobs = Jobs(Turns(3))
    for caller in ("long", "long", "short", "long", "short", "short"):
        jobs.start(caller)
        await settled()
    jobs.running[2][1].set()  # a short one ends: its caller has none now, the other two
    await settled()
    jobs.running[2][1].set()
    await settled()
    assert jobs.began == ["long", "long", "short", "short", "short"]
    while jobs.running:
        await jobs.end_oldest()
    assert jobs.began[5:] == ["long"]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "start", "end", "cancel waiting", "cancel running", "end and cancel", "settle"]),
        st.sampled_from("abc"),
        st.integers(0, 50),
    ),
    max_size=60,
)


@given(maximum=st.integers(1, 4), steps=_STEPS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=200)
def test_whatever_ends_and_is_cancelled_no_turn_is_lost_and_none_is_given_twice(
    maximum: int, steps: list[tuple[str, str, int]]
) -> None:
    async def play() -> None:
        jobs = Jobs(Turns(maximum))
        turns = jobs.turns

        def one_of(tasks: list[asyncio.Task[None]], number: int, do: Callable[[asyncio.Task[None]], object]) -> None:
            if tasks:
                do(tasks[number % len(tasks)])

        for action, caller, number in steps:
            if action == "start":
                jobs.start(caller)
            elif action.startswith("cancel"):  # whichever it is: one that waits, runs, or was served a moment ago
                one_of(list(jobs.tasks), number, asyncio.Task.cancel)
            elif action.startswith("end") and jobs.running:
                jobs.running[number % len(jobs.running)][1].set()
                if action == "end and cancel":
                    await asyncio.sleep(0)  # the turn is on its way to another
                    one_of(list(jobs.tasks), number, asyncio.Task.cancel)
            elif action == "settle":
                await settled()
            assert turns.free + turns.running == maximum
            assert len(jobs.running) <= turns.running
            assert not (turns.free and turns.waiting)
        await settled()
        assert len(jobs.running) == turns.running == min(maximum, len(jobs.tasks))
        while jobs.running:
            await jobs.end_oldest()
        assert (turns.free, turns.running, turns.waiting, len(jobs.tasks)) == (maximum, 0, 0, 0)

    asyncio.run(play())


async def test_a_pool_full_of_one_callers_jobs_serves_another_before_those_that_wait() -> None:
    ended: list[str] = []

    async def job(pool: Pool, caller: str) -> None:
        outcome = await pool.run(Job("import time; time.sleep(0.2); 6 * 7", caller=caller), no_calls)
        assert outcome.result == 42
        ended.append(caller)

    async with Pool(PoolSettings(spares=1, workers_max=2)) as pool:
        await pool.ready()
        greedy = [asyncio.create_task(job(pool, "greedy")) for _ in range(10)]
        await asyncio.sleep(0)
        await job(pool, "modest")
        assert len(ended) <= 4
        for task in greedy[1:]:
            task.cancel()
        await asyncio.wait(greedy)
        assert (await pool.run(Job("6 * 7"), no_calls)).result == 42
        stats = pool.stats()
        assert (stats.running, stats.waiting) == (0, 0)


@pytest.mark.parametrize("cancelled", [1, 7])
async def test_a_cancelled_job_leaves_its_turn_to_the_next(cancelled: int) -> None:
    async with Pool(PoolSettings(spares=1, workers_max=1)) as pool:
        await pool.ready()
        tasks = [asyncio.create_task(pool.run(Job("import time; time.sleep(5)"), no_calls)) for _ in range(cancelled)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        assert (await pool.run(Job("6 * 7"), no_calls)).result == 42
