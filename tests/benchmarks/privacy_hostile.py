"""Repeat what expressions begin with, and pairs of it, and time each recognizer at two lengths: growth must be linear.

    python -m tests.benchmarks.privacy_hostile [PAIRS]

Prints those whose time grows much faster than the text, and ends with 1 if there are any.
"""

from __future__ import annotations

import itertools
import random
import sys
import time

from sealab.server.privacy.detection.analyzer import RECOGNIZERS
from tests.server.privacy.hostile_pieces import PIECES

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
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
