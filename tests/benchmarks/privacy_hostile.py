"""Repeat what expressions begin with, and pairs of it, and time each recognizer at two lengths: growth must be linear.

    python -m tests.benchmarks.privacy_hostile [PAIRS]

Then every expression on texts that are made of its own words, for a step that takes much longer than a plain search.
Prints those whose time grows much faster than the text, or whose step is long, and ends with 1 if there are any.
"""

from __future__ import annotations

import itertools
import random
import sys
import time

from sealab.server.privacy.detection.analyzer import RECOGNIZERS
from tests.server.privacy.expressions import MOST_COST, cost_of, hostile_units, patterns_of
from tests.server.privacy.hostile_pieces import PIECES

UNITS = 60
SHORT, LONG, SHORTEST_SECONDS, MOST_GROWTH = 8_000, 64_000, 0.5, 24


def seconds(find, piece: str, length: int) -> float:
    """Return the CPU time of one recognizer on a repeated piece."""
    text = piece * (length // len(piece) + 1)
    began = time.process_time()
    for _ in find(text[:length]):
        pass
    return time.process_time() - began


def main() -> int:
    """Try every piece and some pairs."""
    pairs = random.Random(7).sample(
        list(itertools.permutations(PIECES, 2)), int(sys.argv[1]) if len(sys.argv) > 1 else 100
    )
    slow = 0
    for piece in [*PIECES, *("".join(pair) for pair in pairs)]:
        for find, _ in RECOGNIZERS:
            long = seconds(find, piece, LONG)
            if long > SHORTEST_SECONDS:
                growth = long / max(seconds(find, piece, SHORT), 1e-4)
                if growth > MOST_GROWTH:
                    slow += 1
                    print(
                        f"{find.__name__}: {long:.1f} s for {LONG} characters of {piece!r}, {growth:.0f} times {SHORT}",
                        flush=True,
                    )
    print(f"{len(PIECES) + len(pairs)} texts, {slow} slow")
    held = 0
    dice = random.Random(7)
    for find, _ in RECOGNIZERS:
        for unit in [unit for pattern in patterns_of(find) for unit in hostile_units(pattern, dice, UNITS)]:
            cost, pattern = cost_of(find, unit)
            if cost > MOST_COST:
                held += 1
                print(
                    f"{find.__name__}: {cost:.0f} plain searches in one step, on {unit!r}: {pattern[:60]}", flush=True
                )
    print(f"{held} texts on which one step takes long")
    return bool(slow or held)


if __name__ == "__main__":
    sys.exit(main())
