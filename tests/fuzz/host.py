"""Feed each parser of the server's process hostile texts that are so long that only a linear one comes to their end.

    python -m tests.fuzz.host [RANDOM] [SEED]

Tries each piece of `host_parsers`, and RANDOM (default 40) mixtures of pieces for each parser. Prints what does not come
to its end in `STOPPED_SECONDS` and what ends with another error than a refusal; ends with 1 if there is any.
"""

from __future__ import annotations

import gc
import logging
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .host_parsers import COMMON, PARSERS, READERS_OF_YAML, REFUSALS, Parser, bomb, text_of, texts

CHARS = 480_000
"""A step for each pair of characters takes minutes, if only three nanoseconds each; below what most parsers refuse."""
STOPPED_SECONDS = 40.0


class TooLong(Exception):
    """A parser that was stopped."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in what takes longer."""

    def stop(_signal: int, _frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def error_of(read: Callable[[str], object], text: str) -> str | None:
    """Return the error with which a parser ends, if that is no refusal."""
    try:
        read(text)
    except REFUSALS:
        return None
    except TooLong:
        return f"does not come to the end of {len(text)} characters"
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"[:200]
    return None


def mixture(dice: random.Random, parser: Parser) -> tuple[str, str, str]:
    """Return some pieces together, within what a parser stops at."""
    pieces = [piece for _, piece, _ in parser.pieces] + list(COMMON)
    start, end = "", ""
    if parser.pieces and dice.random() < 0.7:
        start, _, end = dice.choice(parser.pieces)
    return (
        start + "".join(dice.choices(pieces, k=dice.randrange(3))),
        "".join(dice.choices(pieces, k=dice.randrange(1, 4))),
        end,
    )


def main() -> int:
    """Try them all."""
    mixtures = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    gc.freeze()
    finds, tried = 0, 0
    for parser in (*(Parser(f"aliases of aliases in {read.__name__}", read) for read in READERS_OF_YAML), *PARSERS):
        dice = random.Random(f"{seed} {parser.name}")
        began = time.process_time()
        given = [*texts(parser), *(mixture(dice, parser) for _ in range(mixtures * parser.common))]
        for made in given if parser in PARSERS else [(bomb(), "", "")]:
            tried += 1
            with stopped_after(STOPPED_SECONDS):
                wrong = error_of(parser.read, text_of(made, CHARS) if made[1] else made[0])
            if wrong is not None:
                finds += 1
                shown = tuple(part if len(part) <= 40 else f"{part[:40]}…" for part in made)
                print(f"{parser.name}: {wrong}: {shown!r}", flush=True)
        print(f"  {parser.name}: {time.process_time() - began:.1f} s", file=sys.stderr, flush=True)
    print(f"{len(PARSERS)} parsers, {tried} texts of up to {CHARS} characters (seed {seed}), {finds} finds")
    return bool(finds)


if __name__ == "__main__":
    sys.exit(main())
