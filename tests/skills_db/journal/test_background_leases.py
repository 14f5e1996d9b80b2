"""What one process has of a background run that no other has at the same time, in a file."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sealab.skills_db.journal.background_store import BackgroundStore

from ..conftest import Place

KEY = bytes(range(32))
SCOPE = "http credentials alice"
LONG = 600.0


@pytest.fixture
def stores(file_place: Place) -> Iterator[tuple[BackgroundStore, BackgroundStore]]:
    """The queue as two processes have it, with a run in it."""
    with file_place.open() as database:
        one, two = (BackgroundStore(database, KEY, process=name) for name in ("one", "two"))
        assert one.put("a1", SCOPE, {"code": "1"}, expires=time.time() + LONG, most=1)
        yield one, two


def test_a_run_that_a_process_has_is_taken_and_ended_by_no_other(
    stores: tuple[BackgroundStore, BackgroundStore],
) -> None:
    one, two = stores
    taken = one.claim(LONG, most=1)
    assert taken is not None
    assert two.claim(LONG, most=1) is None
    assert not two.finish("a1", taken.owner, {"report": "of the other"})
    assert one.finish("a1", taken.owner, {"report": "first"})
    assert not one.finish("a1", taken.owner, {"report": "second"})
    assert one.state("a1").report == {"report": "first"}


def test_an_answer_is_of_one_question_and_taken_once(stores: tuple[BackgroundStore, BackgroundStore]) -> None:
    one, _ = stores
    taken = one.claim(LONG, most=1)
    assert taken is not None
    assert one.park("a1", taken.owner, {"question": "May it?"})
    for number in (0, 2):
        assert not one.answer("a1", number, {"choice": "this call"})
    assert one.answer("a1", 1, {"choice": "this call"})
    assert not one.answer("a1", 1, {"choice": None})
    assert one.claim(LONG, most=1) is not None
    assert one.take_answer("a1", taken.owner) == {"number": 1, "choice": "this call"}
    assert one.take_answer("a1", taken.owner) is None
