"""What the gate prints."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.benchmarks.gate import judging, processor_time
from tests.benchmarks.gate.figures import Figure, Samples
from tests.benchmarks.gate.judging import Accepted, Failure, Reference, Value
from tests.benchmarks.gate.trees import Installed


def show_figures(
    samples: Samples, figures: Sequence[Figure], base: str, reference: Reference | None, failures: Sequence[Failure]
) -> None:
    """Print each figure of the base and of the tree, in its unit and as a ratio, and what is wrong with it."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} processors, load {load}. Processor time by "
        f"{processor_time.HOW}.\nBase {base[:8]}, reference {reference.commit[:8] if reference else 'none'}; in "
        f"parentheses ratios to a yardstick: a spawned `python -I -S -c pass`, a bare SDK server, plain CPython.\n"
    )
    print(
        f"{'':<42}{'base':>16}{'tree':>16} {'unit':<8}{'/base':>6}{'noise':>7}{'reference':>11}{'/reference':>11}{'noise':>7}"
    )
    for each in figures:
        raw = [samples.raw(each, subject) for subject in ("base", "tree")]
        ratios = [samples.ratio(each, subject) for subject in ("base", "tree")]
        than = reference.figures.get(each.name) if reference else None
        cells = [_cell(value, ratio if each.per else None) for value, ratio in zip(raw, ratios, strict=True)]
        in_all = ratios[1].per(than) if ratios[1] and than else None
        marks = [
            f"{'accepted' if failure.accepted else 'FAILS'} beside {failure.against[:8]}"
            for failure in failures
            if failure.figure == each.name
        ]
        print(
            f"{each.name:<42}{cells[0]:>16}{cells[1]:>16} {each.unit:<8}"
            f"{_change(samples.beside_base(each), 'new' if raw[1] else '-')}"
            f"{f'{than.value:.2f}' if than else '-':>11}{_change(in_all):>18}  {', '.join(marks)}".rstrip()
        )


def show_notes(samples: Samples, installed: tuple[Installed, Installed], unused: Sequence[Accepted]) -> None:
    """Print what could not be measured, what stands in the way of a fair comparison, and what can be removed."""
    print()
    if installed[0].lock != installed[1].lock:
        print("The base has another lock. It ran with the packages that are installed here.")
    for each in installed:
        if each.missing:
            print(f"The {each.name} requires packages that are not installed here: {', '.join(each.missing)}.")
    for (subject, name), error in samples.errors.items():
        print(f"{name}, {subject}: {' '.join(error.split())[:200]}")
    for entry in unused:
        print(f"accepted.toml: {entry.figure} is no failure beside {entry.against}. Remove the entry.")


def show_lines(lines: Mapping[str, Counter[str]]) -> None:
    """Print the lines added and removed by folder."""
    print(f"\n{'lines':<16}{'added':>8}{'removed':>9}{'net':>8}")
    for folder, counted in sorted(lines.items()):
        print(f"{folder:<16}{counted['added']:>8}{counted['removed']:>9}{counted['added'] - counted['removed']:>+8}")


def show_verdict(failures: Sequence[Failure], seconds: float) -> int:
    """Print what fails and what it took, and return the exit code."""
    times = os.times()
    own, children = times.user + times.system, times.children_user + times.children_system
    print(f"\n{seconds:.0f} s, {own + children:.0f} s of processor time")
    wrong = [each for each in failures if each.accepted is None]
    for each in wrong:
        print(f"FAILS: {each.figure}: {_how_much(each)} {each.against[:8]}")
    for each in failures:
        if each.accepted is not None:
            print(f"accepted: {each.figure}: {each.accepted.reason} Paid for by {each.accepted.pays}.")
    print(f"{len(wrong)} failed." if wrong else "Nothing fails.")
    return 1 if wrong else 0


def _cell(raw: Value | None, ratio: Value | None) -> str:
    if raw is None:
        return "-"
    value = f"{raw.value:.0f}" if raw.value >= 100 else f"{raw.value:.2f}"
    return f"{value} ({ratio.value:.2f})" if ratio else value


def _how_much(failure: Failure) -> str:
    if failure.times is None:
        return "it cannot be measured any more, as it can at"
    if failure.figure == judging.GROWTH:
        return f"{failure.times:.0f} more, of {judging.SOURCE_LINES_MAX} that may be, than"
    return f"{failure.times:.2f} times that of"


def _change(times: Value | None, otherwise: str = "-") -> str:
    """Return a ratio and its noise, or what stands there instead."""
    return f"{times.value:>6.2f}{times.noise * 100:>5.0f} %" if times else f"{otherwise:>6}{'':>7}"
