"""Deadlines come from a thread of their own, and the clock of a run stands still for so long at most."""

from __future__ import annotations

import asyncio
import queue
import threading
import time

import pytest

from sealab.sandbox.host import run_clock
from sealab.sandbox.host.run_clock import Clock, Deadlines

LATER_SECONDS = 1000.0


@pytest.fixture
def come() -> queue.Queue[object]:
    return queue.Queue()


def test_deadlines_come_in_their_order_whatever_the_order_they_were_set_in(come):
    line, now = Deadlines(), time.monotonic()
    line.set(now + LATER_SECONDS, lambda: come.put("never"))
    for name, seconds in (("last", 0.3), ("first", 0.1), ("second", 0.2)):
        line.set(now + seconds, lambda name=name: come.put(name))
    assert [come.get(timeout=20) for _ in range(3)] == ["first", "second", "last"]
    assert time.monotonic() >= now + 0.3
    assert len(line) == 1
    assert come.empty()


def test_a_deadline_that_has_passed_comes_at_once_and_from_another_thread(come):
    Deadlines().set(time.monotonic() - 1, lambda: come.put(threading.current_thread()))
    assert come.get(timeout=20) not in {threading.current_thread(), threading.main_thread()}


def test_a_cancelled_deadline_never_comes(come):
    line, now = Deadlines(), time.monotonic()
    cancelled = line.set(now + 0.1, lambda: come.put("cancelled"))
    line.set(now + 0.2, lambda: come.put("later"))
    line.cancel(cancelled)
    line.cancel(cancelled)
    assert come.get(timeout=20) == "later"
    assert come.empty()


def test_who_cancels_waits_for_what_has_begun(come):
    line, begun = Deadlines(), threading.Event()

    def act() -> None:
        begun.set()
        time.sleep(0.2)
        come.put("acted")

    deadline = line.set(time.monotonic(), act)
    assert begun.wait(20)
    line.cancel(deadline)
    assert come.get_nowait() == "acted"


def test_cancelled_deadlines_do_not_pile_up():
    line = Deadlines()
    kept = line.set(time.monotonic() + LATER_SECONDS, int)
    for _ in range(10 * run_clock._SWEEP_FROM):
        line.cancel(line.set(time.monotonic() + 2 * LATER_SECONDS, int))
        assert len(line) <= 2 * run_clock._SWEEP_FROM
    assert kept.act is not None


async def test_the_pauses_of_a_run_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_clock, "PAUSE_SECONDS_MAX", 0.2)
    rang = asyncio.Event()
    clock = Clock(0.2, lambda: None, rang.set)
    try:
        for _ in range(60):  # far more than need be: each alone is within the bound
            with clock.pause():
                await asyncio.sleep(0.1)
            if rang.is_set():
                break
    finally:
        clock.stop()
    assert rang.is_set()
