"""What waits is taken in turns of tenants, and in each of its callers; nothing is lost."""

from __future__ import annotations

import gc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.job import Owner
from sealab.server.app import _prepare_process
from sealab.server.base.daemon_threads import DaemonThreads
from sealab.server.base.errors import HostWorkBusy
from sealab.server.base.fair_line import FairLine

OWNERS = st.builds(Owner, st.sampled_from("AB"), st.sampled_from("xyz"))


def test_a_tenant_with_a_thousand_waiting_delays_another_by_one() -> None:
    line: FairLine[str] = FairLine()
    for number in range(1000):
        line.put(Owner("greedy", f"caller {number % 50}"), "greedy")
    line.take()
    line.put(Owner("modest", "one"), "modest")
    assert "modest" in {line.take(), line.take()}


def test_the_callers_of_a_tenant_take_turns_and_each_keeps_its_order() -> None:
    line: FairLine[str] = FairLine()
    for item in ("a1", "a2", "a3", "b1", "c1", "c2"):
        line.put(Owner("T", item[0]), item)
    assert [line.take() for _ in range(6)] == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert not line
    with pytest.raises(IndexError):
        line.take()


@given(st.lists(OWNERS | st.none(), max_size=60))
def test_whatever_is_put_and_taken_nothing_is_lost_and_each_callers_order_is_kept(steps: list[Owner | None]) -> None:
    line: FairLine[tuple[Owner, int]] = FairLine()
    put: Counter[Owner] = Counter()
    taken: Counter[Owner] = Counter()
    for owner in steps:
        if owner is not None:
            line.put(owner, (owner, put[owner]))
            put[owner] += 1
        elif line:
            whose, number = line.take()
            assert number == taken[whose]
            taken[whose] += 1
        assert len(line) == put.total() - taken.total()
    while line:
        whose, number = line.take()
        assert number == taken[whose]
        taken[whose] += 1
    assert put == taken


@given(st.lists(OWNERS, min_size=1, max_size=40), OWNERS)
def test_room_is_made_by_the_newest_of_the_tenant_with_most_and_in_it_of_the_caller_with_most(
    waiting: list[Owner], new: Owner
) -> None:
    line: FairLine[Owner] = FairLine()
    for owner in waiting:
        line.put(owner, owner)
    tenants, callers = Counter(each.tenant for each in waiting), Counter(waiting)
    loser = line.newest_of_most(new)
    if loser is None:
        assert tenants[new.tenant] + 1 >= max(tenants.values())
        assert callers[new] + 1 >= max(
            (count for owner, count in callers.items() if owner.tenant == new.tenant), default=0
        )
    else:
        assert callers[loser] == max(count for owner, count in callers.items() if owner.tenant == loser.tenant)
        assert tenants[loser.tenant] > tenants[new.tenant] + 1 or loser.tenant == new.tenant
        assert len(line) == len(waiting) - 1


def test_what_is_over_is_dropped() -> None:
    line: FairLine[int] = FairLine()
    for number in range(6):
        line.put(Owner("AB"[number % 2]), number)
    line.drop(lambda number: number % 2 == 0)
    assert not line.any(lambda number: number % 2 == 0)
    assert [line.take() for _ in range(3)] == [1, 3, 5]


def test_a_full_line_of_threads_refuses_the_newest_of_the_tenant_that_fills_it() -> None:
    from threading import Event

    began, end = Event(), Event()
    threads = DaemonThreads(1, "work", 4)

    def holds() -> None:
        began.set()
        end.wait(30)

    first = threads.submit(holds)
    assert began.wait(30)
    done: list[str] = []
    greedy = [threads.submit_for(Owner("greedy", "g"), lambda: done.append("greedy")) for _ in range(4)]
    with pytest.raises(HostWorkBusy, match="4 calls wait"):
        threads.submit_for(Owner("greedy", "g"), lambda: done.append("greedy"))
    modest = threads.submit_for(Owner("modest", "m"), lambda: done.append("modest"))
    end.set()
    for each in (first, modest, *greedy[:3]):
        each.result(30)
    assert isinstance(greedy[3].exception(30), HostWorkBusy)
    assert done == ["greedy", "modest", "greedy", "greedy"]


async def test_requests_that_wait_are_not_looked_through_for_garbage_again_and_again() -> None:
    full = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal full
        full += phase == "stop" and info["generation"] == 2

    _prepare_process()
    waiting: list[object] = []
    gc.collect()
    gc.callbacks.append(count)
    try:
        while len(waiting) < 150_000:  # Python's own thresholds look at all of them four times and more
            waiting.append([])
    finally:
        gc.callbacks.remove(count)
    assert full == 0
