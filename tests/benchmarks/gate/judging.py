"""What a comparison says: pure functions from samples to verdicts.

Two things that are compared take turns, and what counts is the median of the ratios of the turns. Two processors can be
two threads of one core: processor time is then a third or more longer while the other one is busy, for seconds at a
time. A least or a median of each would compare different moments; the two of a turn are of one. The noise is how wide the
confidence interval of that median is, from the ratios of this run. A figure fails that is more than `WORSE_MAX` and the
noise worse than the base, or than the reference.

The reference is a commit whose figures were measured once, by `--reference`, and stand in `reference.toml` as ratios to
yardsticks: a ratio holds on other machines too, and to install and run a third tree would take half as long again. It
keeps many steps, each below the limit, from adding up.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WORSE_MAX = 0.08
CHANCE_MAX = 0.02
SOURCE_LINES_MAX = 1_000
GROWTH = "source lines"
FOLDER = Path(__file__).parents[1]
REFERENCE, ACCEPTED = FOLDER / "reference.toml", FOLDER / "accepted.toml"


@dataclass(frozen=True, slots=True)
class Value:
    """A ratio, or a figure in its unit, and its noise as a part of it."""

    value: float
    noise: float = 0.0

    def per(self, other: Value) -> Value:
        """Return the ratio to another one, which is as noisy as both."""
        return Value(self.value / other.value, self.noise + other.noise)


def middle(samples: Sequence[float]) -> Value | None:
    """Return the median of samples, if there are any, and as its noise half the width of its confidence interval.

    The interval is that of the sign test, for any distribution: the median lies between the k-th least and the k-th
    largest unless fewer than k of the samples lie on one side of it, which chance does for the largest such k in one
    of `1 / CHANCE_MAX` cases at most. Of five samples or fewer it is their range.
    """
    if not samples:
        return None
    ordered, count = sorted(samples), len(samples)
    k, chance = 1, (count + 1) / 2**count
    while chance <= CHANCE_MAX:
        k += 1
        chance += math.comb(count, k) / 2**count
    median = statistics.median(ordered)
    return Value(median, (ordered[-k] - ordered[k - 1]) / 2 / median)


def times(one: Mapping[int, float], other: Mapping[int, float]) -> Value | None:
    """Return how many times the other something is, from samples of both by turns."""
    return middle([one[turn] / other[turn] for turn in one if turn in other])


@dataclass(frozen=True, slots=True)
class Reference:
    """The commit with which everything is compared in all, and its figures."""

    commit: str
    figures: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A failure that stands: a figure may be `most` times that of the commit `against`, for a reason, if something pays.

    Of `source lines` it is how many more there may be. Without `most` the figure may be missing.
    """

    figure: str
    against: str
    reason: str
    pays: str
    most: float | None = None


def read_reference(path: Path = REFERENCE) -> Reference | None:
    """Return the reference, if one was written."""
    if not path.exists():
        return None
    table = tomllib.loads(path.read_text())
    return Reference(table["commit"], {name: Value(*each) for name, each in table["figures"].items()})


def written(reference: Reference) -> str:
    """Return a reference as its file has it: each figure with its noise."""
    lines = [
        "# Written by `python -m tests.benchmarks.gate --reference COMMIT`: ratios, and their noise as a part of them.",
        f'commit = "{reference.commit}"',
        "",
        "[figures]",
    ]
    lines += [f'"{name}" = [{each.value:.6g}, {each.noise:.3f}]' for name, each in reference.figures.items()]
    return "\n".join(lines) + "\n"


def read_accepted(path: Path = ACCEPTED) -> list[Accepted]:
    """Return what was accepted. Raises `ValueError` for a line without a reason or without what pays for it."""
    entries = tomllib.loads(path.read_text()).get("accepted", []) if path.exists() else []
    found = [Accepted(**entry) for entry in entries]
    for each in found:
        if not each.reason.strip() or not each.pays.strip():
            raise ValueError(f"{each.figure} in {path.name} has no reason, or nothing that pays for it. Say both.")
    return found


@dataclass(frozen=True, slots=True)
class Failure:
    """A figure that is worse than it may be: `times` that of the commit `against`; None where it is missing now.

    Of `source lines` it is how many more there are.
    """

    figure: str
    against: str
    times: float | None
    accepted: Accepted | None = None


def failures(changes: Mapping[str, Value | None], against: str, worse_max: float = WORSE_MAX) -> list[Failure]:
    """Return the figures that are worse than they may be, from how many times those of the commit `against` they are.

    A figure that could not be measured any more is None. One that the commit does not have is new, and not among them.
    """
    return [
        Failure(name, against, change and change.value)
        for name, change in changes.items()
        if change is None or change.value > 1 + worse_max + change.noise
    ]


def grown(lines: int, against: str) -> list[Failure]:
    """Return a failure where the source has grown by more lines than may be."""
    return [Failure(GROWTH, against, float(lines))] if lines > SOURCE_LINES_MAX else []


def judged(found: Sequence[Failure], accepted: Sequence[Accepted]) -> tuple[list[Failure], list[Accepted]]:
    """Return the failures, each with what accepts it if anything does, and the entries that accept none."""
    used = []
    result = []
    for each in found:
        by = next((entry for entry in accepted if _accepts(entry, each)), None)
        used.append(by)
        result.append(Failure(each.figure, each.against, each.times, by))
    return result, [entry for entry in accepted if entry not in used]


def _accepts(entry: Accepted, failure: Failure) -> bool:
    if entry.figure != failure.figure or not failure.against.startswith(entry.against):
        return False
    return entry.most is failure.times if None in {entry.most, failure.times} else failure.times <= entry.most
