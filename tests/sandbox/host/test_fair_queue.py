"""Turns are shared fairly between callers, and none is ever lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.sandbox.errors import Busy
from sealab.sandbox.host.fair_queue import Turn, Turns
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Job, Owner

from ..conftest import no_calls


class Running:
    """One job that has begun; `wanted` says that it waits for its turn again."""

    def __init__(self, caller: str, turn: Turn[None]) -> None:
        self.caller = caller
        self.turn = turn
        self.end = asyncio.Event()
        self.again = asyncio.Event()
        self.wanted = False


class Jobs:
    """Jobs that hold their turn until they are told to rest or to end, and the order in which they began."""

    def __init__(self, turns: Turns[None]) -> None:
        self.turns = turns
        self.began: list[str] = []
        self.numbers: list[tuple[str, int]] = []
        self.refused: list[str] = []
        self.running: list[Running] = []
        self.tasks: dict[asyncio.Task[None], str] = {}
        self.started = 0

    async def _job(self, caller: str, tenant: str, number: int) -> None:
        async with self.turns.turn(Owner(tenant, caller), None) as turn:
            job = Running(caller, turn)
            self.began.append(caller)
            self.numbers.append((caller, number))
            self.running.append(job)
            try:
                while not job.end.is_set():
                    await asyncio.wait(
                        [asyncio.ensure_future(each.wait()) for each in (job.end, job.again)],
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if job.again.is_set():
                        job.again.clear()
                        job.wanted = True
                        await turn.take_again()
                        job.wanted = False
            finally:
                self.running.remove(job)

    def start(self, caller: str, tenant: str = "") -> asyncio.Task[None]:
        self.started += 1
        task = asyncio.create_task(self._job(caller, tenant, self.started))
        self.tasks[task] = caller
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        caller = self.tasks.pop(task)
        if not task.cancelled() and isinstance(task.exception(), Busy):
            self.refused.append(caller)

    async def end_oldest(self) -> None:
        self.running[0].end.set()
        await settled()


async def settled() -> None:
    for _ in range(8):
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
    jobs.running[2].end.set()  # a short one ends: its caller has none now, the other two
    await settled()
    jobs.running[2].end.set()
    await settled()
    assert jobs.began == ["long", "long", "short", "short", "short"]
    while jobs.running:
        await jobs.end_oldest()
    assert jobs.began[5:] == ["long"]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["start", "start", "end", "cancel waiting", "cancel running", "end and cancel", "settle", "rest", "go on"]
        ),
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
                jobs.running[number % len(jobs.running)].end.set()
                if action == "end and cancel":
                    await asyncio.sleep(0)  # the turn is on its way to another
                    one_of(list(jobs.tasks), number, asyncio.Task.cancel)
            elif action == "rest" and jobs.running:
                jobs.running[number % len(jobs.running)].turn.give_back()
            elif action == "go on" and jobs.running:
                jobs.running[number % len(jobs.running)].again.set()
            elif action == "settle":
                await settled()
            assert turns.free + turns.running == maximum
            assert sum(job.turn.held for job in jobs.running) <= turns.running <= maximum
            assert not (turns.free and turns.wanted)
        await settled()
        holders = sum(job.turn.held for job in jobs.running)
        resting = sum(not job.turn.held and not job.wanted for job in jobs.running)
        assert holders == turns.running == min(maximum, len(jobs.tasks) - resting)
        while jobs.running:  # one that waits for its turn ends once another has ended
            for job in jobs.running:
                job.end.set()
            await settled()
        assert (turns.free, turns.running, turns.waiting, len(jobs.tasks)) == (maximum, 0, 0, 0)

    asyncio.run(play())


async def test_who_has_begun_goes_on_before_who_has_not() -> None:
    jobs = Jobs(Turns(1))
    jobs.start("a")
    await settled()
    first = jobs.running[0]
    first.turn.give_back()
    for _ in range(3):
        jobs.start("a")
    await settled()
    first.again.set()
    await settled()
    assert (jobs.began, first.turn.held, jobs.turns.waiting) == (["a", "a"], False, 2)
    jobs.running[1].end.set()
    await settled()
    assert (jobs.began, first.turn.held) == (["a", "a"], True)
    while jobs.running:
        await jobs.end_oldest()
    assert len(jobs.began) == 4


async def test_what_waits_too_long_is_told_so_and_has_taken_nothing() -> None:
    turns: Turns[None] = Turns(1, queue_seconds=0.05)
    async with turns.turn(Owner("", "a"), None):
        with pytest.raises(Busy, match=r"0\.05 seconds.*Call again in about 1 seconds"):
            async with turns.turn(Owner("", "b"), None):
                raise AssertionError("there was no turn to have")
        assert (turns.free, turns.waiting) == (0, 0)
    assert (turns.free, turns.running) == (1, 0)


async def test_a_full_queue_refuses_the_newest_of_whoever_has_most_of_it() -> None:
    jobs = Jobs(Turns(1, queue_max=4))
    for caller in ("greedy", "greedy", "greedy", "greedy", "greedy"):
        jobs.start(caller)
    await settled()
    assert jobs.turns.waiting == 4
    jobs.start("greedy")
    await settled()
    assert jobs.refused == ["greedy"]
    jobs.start("modest")
    await settled()
    assert (jobs.refused, jobs.turns.waiting) == (["greedy", "greedy"], 4)
    await jobs.end_oldest()
    assert jobs.began == ["greedy", "modest"]
    while jobs.running:
        await jobs.end_oldest()
    assert jobs.began == ["greedy", "modest", "greedy", "greedy", "greedy"]


async def test_what_does_not_fit_waits_and_holds_up_no_other_caller() -> None:
    large = {"a"}
    turns: Turns[str] = Turns(2, refusal=lambda owner, _what: "it is too large" if owner.caller in large else None)
    began = []

    async def job(caller: str) -> None:
        async with turns.turn(Owner("", caller), "job"):
            began.append(caller)

    waits = asyncio.create_task(job("a"))
    await settled()
    await job("b")
    assert (began, turns.next_owner()) == (["b"], None)
    large.clear()
    turns.serve()
    await waits
    assert began == ["b", "a"]


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


async def test_callers_of_one_name_in_two_tenants_are_two() -> None:
    jobs = Jobs(Turns(1))
    for tenant in ("A", "A", "A", "B", "B"):
        jobs.start("bot", tenant)
        await settled()
    order = [jobs.running[0].turn.owner.tenant]
    for _ in range(4):
        await jobs.end_oldest()
        order.append(jobs.running[0].turn.owner.tenant)
    assert order == ["A", "B", "A", "B", "A"]
    await jobs.end_oldest()


async def test_a_full_queue_refuses_the_newest_of_the_tenant_and_in_it_of_the_caller_with_most() -> None:
    jobs = Jobs(Turns(1, queue_max=4))
    jobs.start("first", "A")
    await settled()
    for caller in ("a", "b", "b", "b"):
        jobs.start(caller, "A")
        await settled()
    jobs.start("modest", "B")
    await settled()
    assert (jobs.refused, jobs.turns.waiting) == (["b"], 4)
    await cancelled(jobs)


async def cancelled(jobs: Jobs) -> None:
    for task in list(jobs.tasks):
        task.cancel()
    await asyncio.wait(list(jobs.tasks))
    turns = jobs.turns
    assert (turns.free, turns.running, turns.waiting, turns.begun_by_all) == (turns.maximum, 0, 0, 0)


_TWO_LEVEL_STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "start", "start", "end", "cancel"]), st.sampled_from("AB"), st.integers(0, 9)),
    max_size=50,
)


@given(maximum=st.integers(1, 3), steps=_TWO_LEVEL_STEPS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
def test_the_next_turn_goes_to_the_tenant_with_the_fewest_each_caller_keeps_its_order_and_no_turn_stays_free(
    maximum: int, steps: list[tuple[str, str, int]]
) -> None:
    async def play() -> None:
        jobs = Jobs(Turns(maximum))
        turns = jobs.turns
        for action, tenant, number in steps:
            if action == "start":
                jobs.start(f"{tenant}{number % 3}", tenant)
            elif action == "cancel" and jobs.tasks:
                list(jobs.tasks)[number % len(jobs.tasks)].cancel()
            elif action == "end" and jobs.running:
                ends = jobs.running[number % len(jobs.running)]
                waits = {each for each in "AB" if turns._waiting[each]}
                held = {each: turns.taken_by_tenant(each) - (each == ends.turn.owner.tenant) for each in "AB"}
                count = len(jobs.began)
                ends.end.set()
                await settled()
                if waits:  # one turn became free: it went to the tenant with the fewest of those that wait
                    (began,) = jobs.began[count:]
                    assert held[began[0]] == min(held[each] for each in waits)
            await settled()
            assert not (turns.free and turns.wanted)  # work conserving
            assert turns.running == min(maximum, len(jobs.tasks))
        for caller in {caller for caller, _ in jobs.numbers}:
            order = [number for each, number in jobs.numbers if each == caller]
            assert order == sorted(order)
        if jobs.tasks:
            await cancelled(jobs)

    asyncio.run(play())
