"""The tier of a test follows from what it costs, and a new one that costs too much fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import costs
from .suites import TURNS, chosen, dealt, suites

pytest_plugins = ["pytester"]

TESTS = """
import time
from hypothesis import given, settings, strategies as st

def computes(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_quick(): pass
def test_dear(): computes(0.3)

first = []
def test_pays_once():
    if not first:
        first.append(computes(0.3))

drawn = []
@settings(max_examples=40, database=None, deadline=None)
@given(st.integers())
def test_draws(number): drawn.append(number)
def test_drew(): print("drawn:", len(drawn))
"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setattr(costs, "QUICK_SECONDS", 0.1)
    monkeypatch.setattr(costs, "NEW_SECONDS_MAX", 0.1)
    monkeypatch.setattr(costs, "LISTED_SECONDS", 0.05)
    monkeypatch.setattr(costs, "FILE", pytester.path / "costs.tsv")
    pytester.makepyfile(test_it=TESTS)
    return pytester


def test_a_dear_test_that_is_not_listed_fails_and_one_that_paid_for_others_does_not(tests: pytest.Pytester) -> None:
    ran = tests.runpytest_inprocess("-p", "tests.costs", "--tier=quick", "--judge-costs", "-s")
    ran.assert_outcomes(passed=5, errors=1)
    ran.stdout.fnmatch_lines(["*ERROR*test_dear*", "It takes * processor seconds. Make it cheaper, or *"])


def test_a_listed_test_is_of_the_long_tier_and_so_are_those_that_draw_many_examples(tests: pytest.Pytester) -> None:
    (tests.path / "costs.tsv").write_text("3.0\ttest_it.py::test_dear\n")
    quick = tests.runpytest_inprocess("-p", "tests.costs", "--tier=quick", "-s")
    quick.assert_outcomes(passed=4, deselected=1)
    assert "drawn: 15" in quick.stdout.str()
    long = tests.runpytest_inprocess("-p", "tests.costs", "--tier=long", "-v")
    long.assert_outcomes(passed=2, deselected=3)
    long.stdout.fnmatch_lines(["*::test_dear PASSED*", "*::test_draws PASSED*"])


def test_recorded_costs_become_the_file(tests: pytest.Pytester) -> None:
    rows = tests.path / "rows"
    tests.runpytest_inprocess("-p", "tests.costs", f"--record-costs={rows}").assert_outcomes(passed=5)
    costs.main([str(rows)])
    assert "test_it.py::test_dear" in {name for name, seconds in costs.read().items() if seconds > 0.05}


def test_shards_hold_every_file_once_and_about_as_much(pytester: pytest.Pytester) -> None:
    known = {f"{name}.py::test_{number}": float(number) for name in "abcdef" for number in range(1, 5)}
    files = {f"test_{name}": "\n".join(f"def test_{number}(): pass" for number in range(1, 5)) for name in "abcdef"}
    pytester.makepyfile(**files)
    items = pytester.getitems("def test_one(): pass") + [
        item for name in files for item in pytester.getitems(files[name])
    ]
    shards = costs._shards(items, known, 3)
    assert set.union(*shards) == {item.path for item in items}
    assert sum(map(len, shards)) == len({item.path for item in items})


def test_each_long_suite_comes_up_in_ten_turns_and_turns_take_about_as_long() -> None:
    turns = [chosen(number) for number in range(7, 7 + TURNS)]
    assert sorted(suite.target for turn in turns for suite in turn) == sorted(suite.target for suite in suites())
    minutes = [sum(suite.minutes for suite in turn) for turn in dealt()]
    assert max(minutes) < 1.5 * min(minutes)


def test_what_is_listed_is_there() -> None:
    root = Path(__file__).parent.parent
    listed = {name.removeprefix("fixture ").partition("::")[0] for name in costs.read()}
    assert [path for path in listed if path and not (root / path).exists()] == []
