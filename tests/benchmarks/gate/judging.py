"""What a comparison says: pure functions from samples to verdicts.

A figure is the least of its rounds for processor time, which other processes can only add to, and the median for wall
time; as a ratio, it is that of its yardstick in the same run. The noise is how far the rounds lie from that, in the
same run. A figure fails that is more than `WORSE_MAX` beyond the noise worse than the base, or than the reference.

The reference is a commit whose figures were measured once, by `--reference`, and stand in `reference.toml` as ratios: a
ratio holds on other machines, and installing and running a third tree would take half as long again. It keeps many
small steps, each below the limit, from adding up. What a comparison with it finds stays until it is mended, or until a
line of `accepted.toml` names it.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

WORSE_MAX = 0.08
SOURCE_LINES_MAX = 1_000
GROWTH = "source lines"
FOLDER = Path(__file__).parents[1]
REFERENCE, ACCEPTED = FOLDER / "reference.toml", FOLDER / "accepted.toml"


class Best(Enum):
    """Which of the rounds a figure is."""

    LEAST = "least"
    MEDIAN = "median"
    ONLY = "only"
    """It has no noise: a size, or a count of tokens."""


@dataclass(frozen=True, slots=True)
class Value:
    """A figure, and its noise as a part of it."""

    value: float
    noise: float = 0.0

    def per(self, other: Value) -> Value:
        """Return the ratio to another one; both are noisy."""
        return Value(self.value / other.value, self.noise + other.noise)


def value_of(samples: Sequence[float], best: Best) -> Value | None:
    """Return the figure that rounds give, if there were any.

    The noise of a least is the distance to the second least and, by how much it is likely to fall with more rounds, a
    part of that to the median. That of a median is the median distance from it, by the root of the number of rounds.
    """
    if not samples:
        return None
    middle = statistics.median(samples)
    if best is Best.ONLY:
        return Value(middle)
    ordered = sorted(samples)
    if best is Best.LEAST:
        away = max(ordered[min(1, len(ordered) - 1)] - ordered[0], (middle - ordered[0]) / 2)
        return Value(ordered[0], away / ordered[0])
    away = statistics.median(abs(each - middle) for each in samples)
    return Value(middle, 2 * away / len(samples) ** 0.5 / middle)


@dataclass(frozen=True, slots=True)
class Reference:
    """The commit with which everything is compared in all, and its figures."""

    commit: str
    figures: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A failure that stands: `figure` may be `most` times that of the commit `against`, for a reason, and who pays."""

    figure: str
    against: str
    most: float
    reason: str
    pays: str


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
    """A figure that is worse than it may be: `times` as much as the commit `against` has; None where it is missing."""

    figure: str
    against: str
    times: float | None
    accepted: Accepted | None = None


def worse(value: Value, than: Value) -> bool:
    """Return whether a figure is worse by more than may be."""
    return value.value > than.value * (1 + WORSE_MAX + max(value.noise, than.noise))


def failures(tree: Mapping[str, Value | None], base: Mapping[str, Value | None], against: str) -> list[Failure]:
    """Return the figures of `tree` that are worse than those of the commit `against`, or are there no more.

    A figure that `base` does not have is new, and cannot be worse.
    """
    found = []
    for name, than in base.items():
        value = tree.get(name)
        if than is None:
            continue
        if value is None:
            found.append(Failure(name, against, None))
        elif worse(value, than):
            found.append(Failure(name, against, value.value / than.value))
    return found


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
    of_it = entry.figure == failure.figure and failure.against.startswith(entry.against)
    return of_it and failure.times is not None and failure.times <= entry.most
