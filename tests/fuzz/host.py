"""Feed each parser of the server's process hostile texts of growing size: what it takes must grow no faster than they.

    python -m tests.fuzz.host [RANDOM] [SEED]

Tries each piece of `host_parsers`, and RANDOM (default 40) mixtures of pieces for each parser. Prints what grows clearly
faster than the text, what takes long however it grows, and what ends with another error than a refusal; ends with 1 if
there is any.
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

from .host_parsers import (
    COMMON,
    PARSERS,
    REFUSALS,
    Parser,
    bomb,
    client_files,
    definitions_file,
    front_matter,
    skill_md,
    text_of,
    texts,
)

SIZES = (1_000, 8_000, 64_000)
LONG_SECONDS = 0.06
"""What takes less is not judged: the noise is as large."""
MOST_GROWTH = 24
"""For eight times the text; quadratic is 64."""
TOO_LONG_SECONDS = 4.0


class TooLong(Exception):
    """A parser that was stopped."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: object) -> None:
        raise TooLong

    before, began = signal.signal(signal.SIGALRM, stop), time.monotonic()
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # the time-out of a test goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001))


def seconds(read: Callable[[str], object], text: str) -> tuple[float, str]:
    """Return the CPU time of one reading, and the error it ended with if that is no refusal."""
    error = ""
    began = time.process_time()
    try:
        with stopped_after(10 * TOO_LONG_SECONDS):
            read(text)
    except REFUSALS:
        pass
    except TooLong:
        error = f"stopped after {10 * TOO_LONG_SECONDS:g} s"
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"[:200]
    return time.process_time() - began, error


def find_in(parser: Parser, made: tuple[str, str, str], sizes: tuple[int, ...] = SIZES) -> str | None:
    """Return what is wrong with a parser on a repeated piece, or None."""
    before = 0.0
    for size in sizes:
        text = text_of(made, size)
        took, error = seconds(parser.read, text)
        if error:
            return f"{error}, at {len(text)} characters"
        if took > TOO_LONG_SECONDS:
            return f"{took:.1f} s for {len(text)} characters"
        if size != sizes[0] and took > LONG_SECONDS:
            least = took
            for _ in range(2):  # noise only ever adds
                least = min(least, seconds(parser.read, text)[0])
            growth = least / max(before, 1e-4)
            if least > LONG_SECONDS and growth > MOST_GROWTH:
                return f"{least:.2f} s for {len(text)} characters, {growth:.0f} times as for {sizes[sizes.index(size) - 1]}"
        before = max(took, 0.001)
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
    for read in (front_matter, skill_md, definitions_file, client_files):
        took, error = seconds(read, bomb())
        tried += 1
        if error or took > TOO_LONG_SECONDS:
            finds += 1
            print(f"{read.__name__}: aliases of aliases: {error or took}")
    for parser in PARSERS:
        dice = random.Random(f"{seed} {parser.name}")
        seconds(parser.read, "a")  # what it imports
        began = time.process_time()
        for made in [*texts(parser), *(mixture(dice, parser) for _ in range(mixtures * parser.common))]:
            tried += 1
            wrong = find_in(parser, made)
            if wrong is not None:
                finds += 1
                shown = tuple(part if len(part) <= 40 else f"{part[:40]}…" for part in made)
                print(f"{parser.name}: {wrong}: {shown!r}", flush=True)
        print(f"  {parser.name}: {time.process_time() - began:.1f} s", file=sys.stderr, flush=True)
    print(f"{len(PARSERS)} parsers, {tried} texts of up to {SIZES[-1]} characters (seed {seed}), {finds} finds")
    return bool(finds)


if __name__ == "__main__":
    sys.exit(main())
