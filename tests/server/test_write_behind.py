"""Items are written behind the calls that they tell of: all of them, in order, or with a word in the log."""

from __future__ import annotations

import logging
import threading

import pytest

from sealab.server.base import write_behind
from sealab.server.base.write_behind import WriteBehind
from sealab.skills_db.errors import DatabaseUnreachable


class Store:
    """Takes items while it can be reached."""

    def __init__(self) -> None:
        self.written: list[list[int]] = []
        self.fails: Exception | None = None

    def write(self, items: list[int]) -> None:
        if self.fails is not None:
            raise self.fails
        self.written.append(items)


def test_what_waits_is_written_together_and_in_order() -> None:
    store = Store()
    items: WriteBehind[int] = WriteBehind("records", store.write)
    items.add(1)
    items.add(2, 3)
    assert (items.waiting(), store.written) == ([1, 2, 3], [])
    items.flush()
    items.flush()
    assert (items.waiting(), store.written) == ([], [[1, 2, 3]])


def test_what_an_unreachable_database_did_not_take_is_written_later_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store()
    store.fails = DatabaseUnreachable("it is away")
    items: WriteBehind[int] = WriteBehind("records", store.write)
    for number in range(3):
        items.add(number)
        items.flush()
    assert [record.getMessage() for record in caplog.records] == ["1 records wait to be written: it is away"]
    store.fails = None
    items.add(3)
    items.flush()
    assert store.written == [[0, 1, 2, 3]]


def test_what_fails_otherwise_is_given_up_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.fails = OSError("the disk is full")
    items: WriteBehind[int] = WriteBehind("records", store.write)
    items.add(1, 2)
    items.flush()
    assert (items.waiting(), caplog.messages) == ([], ["2 records could not be written: the disk is full"])


def test_beyond_the_bound_the_oldest_are_dropped_after_merging_and_that_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(write_behind, "WAITING_MAX", 3)
    items = WriteBehind("records", Store().write)
    with caplog.at_level(logging.WARNING):
        items.add(*range(6))
        assert caplog.messages == []
        items.add(6)
    assert (items.waiting(), caplog.messages) == ([4, 5, 6], ["4 records were dropped: too many wait to be written"])
    merged = WriteBehind("records", Store().write, merge=lambda each: [sum(each)])
    for number in range(100):
        merged.add(number)
    assert sum(merged.waiting()) == sum(range(100))


def test_the_thread_writes_when_it_is_quiet_or_the_first_has_waited_for_long_or_there_is_much() -> None:
    written = threading.Event()

    def writes(**when: float) -> WriteBehind[int]:
        written.clear()
        items: WriteBehind[int] = WriteBehind("records", lambda _: written.set(), **when)  # type: ignore[arg-type]
        items.add(1)
        return items

    waits = writes(quiet_seconds=3600, wait_seconds_max=3600, much=2)
    assert not written.wait(0.2)
    waits.add(2)
    assert written.wait(30)
    waits.close()
    for when in ({"quiet_seconds": 0.02}, {"wait_seconds_max": 0.02}):
        items = writes(**when)
        assert written.wait(30)
        items.close()


def test_what_comes_while_others_are_written_is_lost_by_none() -> None:
    seen: list[int] = []
    items: WriteBehind[int] = WriteBehind("records", seen.extend, wait_seconds_max=0.001)
    threads = [threading.Thread(target=lambda n=n: [items.add(n * 1000 + i) for i in range(500)]) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    items.close()
    assert sorted(seen) == sorted(n * 1000 + i for n in range(4) for i in range(500))
