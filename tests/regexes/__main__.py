"""Refuse a regular expression of the server's process that is not linear in search.

    python -m tests.regexes

An exception stands in `bounded.toml`, with the bound of its input and why that holds.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .ambiguity import Judgement, judge
from .sources import Expression, expressions

FILE = Path(__file__).parent / "bounded.toml"
CHARS_MAX = 4096
"""The square of this many steps takes a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """An exception: `pattern` as it is evaluated, or the source of one that is made at run time."""

    module: str
    pattern: str
    chars: int
    reason: str


def bounded() -> list[Bounded]:
    """Return the exceptions."""
    return [Bounded(**each) for each in tomllib.loads(FILE.read_text()).get("expression", [])]


def worst(expression: Expression) -> Judgement:
    """Return the worst of what the uses of an expression take."""
    if expression.pattern is None:
        return Judgement(why_not="made at run time")
    judged = [judge(expression.pattern, expression.flags, use) for use in sorted(expression.uses, key=lambda use: use.value)]
    return max(judged, key=lambda each: (bool(each.why_not), each.is_exponential, each.steps))


def told(expression: Expression) -> str:
    """Return a pattern as an exception names it."""
    pattern = expression.source if expression.pattern is None else expression.pattern
    return pattern if isinstance(pattern, str) else pattern.decode("latin-1")


def refused(found: list[Expression], exceptions: list[Bounded]) -> Iterator[str]:
    """Yield what is wrong: expressions that are not linear and no exceptions, and exceptions that are none."""
    known = {(each.module, each.pattern): each for each in exceptions}
    used = set()
    for expression in found:
        judgement = worst(expression)
        if judgement.is_linear:
            continue
        key = expression.module, told(expression)
        used.add(key)
        where = f"{expression.module}:{expression.line}: {key[1]!r}"
        if key not in known:
            yield f"{where} is {judgement}. Write it so that it is linear, or bound its input and say so in {FILE.name}."
        elif judgement.is_exponential:
            yield f"{where} is {judgement}. No bound is small enough for that: write it so that it is linear."
    for key in known.keys() - used:
        yield f"{FILE.name}: {key[0]} has no expression {key[1]!r} that needs a bound. Take that out."
    for each in exceptions:
        if not (0 < each.chars <= CHARS_MAX and each.reason):
            yield f"{FILE.name}: {each.module}: {each.pattern!r} needs a reason, and a bound of at most {CHARS_MAX} characters."


def main() -> int:
    """Judge them all."""
    found = expressions()
    wrong = list(refused(found, bounded()))
    for each in wrong:
        print(each)
    print(f"{len(found)} regular expressions in the server's process, {len(bounded())} with a bound, {len(wrong)} refused")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
