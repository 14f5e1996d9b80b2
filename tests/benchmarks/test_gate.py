from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.gate import judging
from tests.benchmarks.gate.judging import Accepted, Failure, Reference, Value
from tests.benchmarks.gate.programs import PROGRAMS

NOISY = {0: 90.0, 1: 100.0, 2: 110.0, 3: 100.0, 4: 120.0}


def scaled(samples: dict[int, float], by: float) -> dict[int, float]:
    return {turn: sample * by for turn, sample in samples.items()}


def test_a_figure_fails_beyond_the_limit_and_not_below_it() -> None:
    for by, fails in ((1.05, False), (1.07, False), (1.09, True), (1.15, True)):
        change = judging.times(scaled(NOISY, by), NOISY)
        assert bool(judging.failures({"a call": change}, "base")) == fails, by


def test_what_disturbs_both_of_a_turn_is_no_noise() -> None:
    change = judging.times(scaled(NOISY, 1.5), NOISY)
    assert change == Value(pytest.approx(1.5), pytest.approx(0.0))


def test_noise_of_the_same_run_widens_the_limit() -> None:
    one = {0: 100.0, 1: 130.0, 2: 115.0, 3: 140.0, 4: 90.0}
    change = judging.times(one, dict.fromkeys(one, 100.0))
    assert change is not None
    assert change.value == pytest.approx(1.15)
    assert change.noise > 0.1
    assert not judging.failures({"a call": change}, "base")


def test_turns_that_only_one_of_them_has_do_not_count() -> None:
    assert judging.times({0: 100.0, 1: 900.0}, {0: 50.0, 2: 1.0}) == Value(2.0)
    assert judging.times({0: 100.0}, {1: 50.0}) is None


def test_a_figure_that_is_gone_fails() -> None:
    assert judging.failures({"a program": None}, "base") == [Failure("a program", "base", None)]


def test_the_source_may_grow_by_a_thousand_lines() -> None:
    assert not judging.grown(1_000, "base")
    assert judging.grown(1_001, "base") == [Failure(judging.GROWTH, "base", 1_001)]


def test_an_entry_accepts_its_figure_against_its_commit_up_to_what_it_says() -> None:
    entry = Accepted("wheel", "1234567", "It has a model.", "recall of names", most=1.5)
    missing = Accepted("program: x", "1234567", "It is refused.", "no escape")
    found = [
        Failure("wheel", "1234567890", 1.4),
        Failure("wheel", "1234567890", 1.6),
        Failure("wheel", "abcdef", 1.4),
        Failure("wheel", "1234567890", None),
        Failure("program: x", "1234567890", None),
        Failure("program: x", "1234567890", 1.4),
    ]
    judged, unused = judging.judged(found, [entry, missing])
    assert [each.accepted for each in judged] == [entry, None, None, None, missing, None]
    assert not unused


def test_an_entry_that_accepts_nothing_can_be_removed() -> None:
    entry = Accepted("wheel", "1234567", "It has a model.", "recall of names", most=1.5)
    assert judging.judged([], [entry]) == ([], [entry])


def test_an_entry_has_a_reason_and_what_pays_for_it(tmp_path: Path) -> None:
    file = tmp_path / "accepted.toml"
    file.write_text('[[accepted]]\nfigure = "wheel"\nagainst = "1234567"\nmost = 1.5\nreason = "a model"\npays = " "\n')
    with pytest.raises(ValueError, match="wheel"):
        judging.read_accepted(file)
    assert judging.read_accepted(tmp_path / "none.toml") == []


def test_a_reference_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "reference.toml"
    reference = Reference("1234567890", {"a call": Value(4.875, 0.03), "wheel": Value(2.5, 0.0)})
    file.write_text(judging.written(reference))
    assert judging.read_reference(file) == reference


def test_the_files_of_the_gate_can_be_read() -> None:
    assert judging.read_reference() is not None
    judging.read_accepted()


def test_there_are_twenty_programs() -> None:
    assert len(PROGRAMS) == 20


def test_the_noise_is_the_confidence_interval_of_the_median() -> None:
    for count, ends in ((5, (0, 4)), (12, (2, 9))):
        samples = [100.0 + number for number in range(count)]
        value = judging.middle(samples)
        assert value is not None
        assert value.noise * value.value == pytest.approx((samples[ends[1]] - samples[ends[0]]) / 2)
