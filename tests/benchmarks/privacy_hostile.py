"""Repeat what expressions begin with, and pairs of it, and time each recognizer at two lengths: growth must be linear.

    python -m tests.benchmarks.privacy_hostile [PAIRS]

So it does with texts that are made of an expression's own words. Prints those whose time grows much faster than the
text, and ends with 1 if there are any.
"""

from __future__ import annotations

import itertools
import random
import sys
import time

from sealab.server.privacy.detection.detect import RECOGNIZERS
from tests.server.privacy.expressions import hostile_units, patterns_of
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
    """Try every piece, some pairs, and what each recognizer's own expressions are made of."""
    dice = random.Random(7)
    pairs = dice.sample(list(itertools.permutations(PIECES, 2)), int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    shared = [*PIECES, *("".join(pair) for pair in pairs)]
    texts = slow = 0
    for find, *_ in RECOGNIZERS:
        own = [unit for pattern in patterns_of(find) for unit in hostile_units(pattern, dice, UNITS)]
        for piece in (*shared, *own):
            texts += 1
            long = seconds(find, piece, LONG)
            if long > SHORTEST_SECONDS:
                growth = long / max(seconds(find, piece, SHORT), 1e-4)
                if growth > MOST_GROWTH:
                    slow += 1
                    said = f"{long:.1f} s for {LONG} characters of {piece!r}, {growth:.0f} times {SHORT}"
                    print(f"{find.__name__}: {said}", flush=True)
    print(f"{texts} texts, {slow} slow")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
