"""`make gate`: whether a change makes anything worse. The tree beside its base, in turns, and a verdict.

    python -m tests.benchmarks.gate [--base COMMIT] [--only TEXT]… [--rounds N] [--reference COMMIT]

Ends with 1 where a figure fails that `accepted.toml` does not name. `--only` measures the figures with such a text in
their name. `--reference COMMIT` measures that commit and writes `reference.toml`, unless it is older than the reference
that stands there, or worse. What looks worse is measured in more rounds, so that a busy moment is not taken for a defect;
and what looks worse than the figures of the reference, which are of another day, is measured beside the reference itself.
On a busy machine there are fewer rounds, and more noise.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.benchmarks.gate import judging, table, trees
from tests.benchmarks.gate.figures import (
    FIGURES,
    INSTALL,
    UP_FRONT,
    WHEEL,
    YARDSTICK,
    Figure,
    Samples,
    batches,
    settle,
    subjects,
)
from tests.benchmarks.gate.judging import Accepted, Failure, Reference, Value
from tests.benchmarks.gate.trees import Installed

ROUNDS, MORE_ROUNDS, ROUNDS_MIN = 12, 12, 4
SECONDS_MAX, MORE_SECONDS, BESIDE_REFERENCE_SECONDS = 220.0, 60.0, 60.0


def main() -> int:
    began = time.monotonic()
    parser = argparse.ArgumentParser(description="Compare the tree with its base, and say what is worse.")
    parser.add_argument(
        "--base", default=os.environ.get("GATE_BASE"), help="a commit; else the newest of main before it"
    )
    parser.add_argument("--only", action="append", default=[], help="the figures with this text in their name")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--reference", help="a commit whose figures are to be the reference")
    chosen = parser.parse_args()
    if chosen.reference and chosen.only:
        parser.error("A reference has all figures: leave --only out.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the servers end, as they do at an interrupt
    accepted, reference = judging.read_accepted(), judging.read_reference()
    named = chosen.reference or chosen.base or trees.default_base()
    base = trees.commit_of(named)
    if base is None:
        raise trees.NoBaseError(f"There is no commit {named} here. Fetch it, or say another GATE_BASE.")
    ends = float("inf") if chosen.reference else began + SECONDS_MAX
    figures = [each for each in FIGURES if not chosen.only or any(text in each.name for text in chosen.only)]

    def worse(samples: Samples) -> list[Failure]:
        return [] if chosen.reference else failed(samples, figures, base, reference)

    with tempfile.TemporaryDirectory(prefix="gate-") as name:
        folder = Path(name)
        tree = trees.working_tree(folder)
        say(f"the base {base[:8]} and the tree are built and installed")
        installed = trees.install("base", base, folder / "base"), trees.install("tree", tree, folder / "tree")
        samples = measured(installed, folder, figures, chosen.rounds, ends, worse)
        if chosen.reference:
            return moved(reference, Reference(base, samples.ratios(figures, "base")))
        found = worse(samples)
        if reference is not None:
            found = beside_reference(found, accepted, reference, installed[1], folder / "again")
    lines = trees.changed_lines(base, tree)
    found += judging.grown(lines["source"]["added"] - lines["source"]["removed"], base)
    failures, unused = judging.judged(found, accepted)
    table.show_figures(samples, figures, base, reference, failures)
    table.show_notes(samples, installed, [] if chosen.only else unused)
    table.show_lines(lines)
    return table.show_verdict(failures, time.monotonic() - began)


def measured(  # noqa: PLR0917 - one caller
    installed: tuple[Installed, Installed],
    folder: Path,
    figures: Sequence[Figure],
    rounds: int,
    ends: float,
    worse: Callable[[Samples], list[Failure]],
) -> Samples:
    """Measure in rounds, fewer where `ends` comes first; then once more what is worse so far, until `ends`."""
    samples = Samples()
    for each in installed:
        samples.add(each.name, {WHEEL: each.wheel_bytes / 1e6, INSTALL: each.install_bytes / 1e6})
    needed = with_yardsticks({each.name for each in figures})
    with subjects(*installed, folder) as (base, tree, plain):
        todo = [each for each in batches(base, tree, plain) if needed & {*each.figures, *each.yardsticks}]
        say("the servers start")
        for batch in todo:
            if not batch.long:
                Samples().run(batch, 0)
        settle([*base.servers, *tree.servers])
        if needed & set(base.SIZES):
            for subject, each in (("base", base), ("tree", tree), (YARDSTICK, plain)):
                samples.add(subject, each.sizes())
        for number in range(rounds + MORE_ROUNDS):
            wanted = needed if number < rounds else with_yardsticks({each.figure for each in worse(samples)})
            again = [each for each in todo if wanted & {*each.figures, *each.yardsticks}]
            if not again:
                break
            for batch in again:
                if number >= ROUNDS_MIN and time.monotonic() > ends - (MORE_SECONDS if number < rounds else 0):
                    break
                if number % 2 == 0 or not batch.long:
                    samples.run(batch, number)
            say(f"round {number + 1}: {len(again)} of {len(todo)}")
    return samples


def beside_reference(
    found: list[Failure], accepted: Sequence[Accepted], reference: Reference, tree: Installed, folder: Path
) -> list[Failure]:
    """Return the failures, those that nothing accepts beside the reference as they are when it is measured in turns."""
    doubted = [
        each
        for each in judging.judged(found, accepted)[0]
        if each.accepted is None and each.against == reference.commit and each.times is not None
    ]
    names = {each.figure for each in doubted} - {UP_FRONT, WHEEL, INSTALL}
    if not names:
        return found
    say(f"beside the reference itself: {', '.join(sorted(names))}")
    figures = [each for each in FIGURES if each.name in names]

    def worse(samples: Samples) -> list[Failure]:
        return failed(samples, figures, reference.commit, None)

    both = trees.install("base", reference.commit, folder / "base"), tree
    samples = measured(both, folder, figures, ROUNDS, time.monotonic() + BESIDE_REFERENCE_SECONDS, worse)
    return [each for each in found if each.against != reference.commit or each.figure not in names] + worse(samples)


def with_yardsticks(names: set[str]) -> set[str]:
    """Return figures by name, and the yardsticks that they are ratios of."""
    return names | {each.per for each in FIGURES if each.name in names and each.per is not None}


def failed(samples: Samples, figures: Sequence[Figure], base: str, reference: Reference | None) -> list[Failure]:
    """Return what is worse than the base, and than the reference."""
    beside = {each.name: samples.beside_base(each) for each in figures if samples.of("base", each.name)}
    found = judging.failures(beside, base)
    if reference is not None and reference.commit != base:
        found += judging.failures(changes(samples.ratios(figures, "tree"), figures, reference), reference.commit)
    return found


def changes(ratios: Mapping[str, Value], figures: Sequence[Figure], than: Reference) -> dict[str, Value | None]:
    """Return how many times those of a reference figures are; None for what there is no more."""
    names = [each.name for each in figures if each.name in than.figures]
    return {name: ratios[name].per(than.figures[name]) if name in ratios else None for name in names}


def moved(old: Reference | None, new: Reference) -> int:
    """Write the reference, unless it would not be a better one; return the exit code."""
    if old is not None and old.commit != new.commit:
        if trees.git("merge-base", old.commit, new.commit) != old.commit:
            print(f"{new.commit[:8]} does not descend from {old.commit[:8]}. The reference moves only forward.")
            return 1
        found, _unused = judging.judged(
            judging.failures(changes(new.figures, FIGURES, old), old.commit, worse_max=0), judging.read_accepted()
        )
        worse = [each.figure for each in found if each.accepted is None]
        if worse:
            print(f"{new.commit[:8]} is worse than {old.commit[:8]}, which stays the reference: {', '.join(worse)}")
            return 1
    judging.REFERENCE.write_text(judging.written(new))
    print(f"{judging.REFERENCE.name} has {len(new.figures)} figures of {new.commit[:8]}")
    return 0


def say(what: str) -> None:
    """Print on the standard error how far it is."""
    print(f"gate: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (trees.NoBaseError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
