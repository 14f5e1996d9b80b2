"""Texts that are hostile to the expressions of a recognizer, and a budget that only a careless one uses up.

While an expression looks at a text no other thread of a server runs, so none may take more than linear time.
"""

from __future__ import annotations

import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from re import _constants as kinds
from re import _parser as parser
from typing import Any

from sealab.server.privacy.detection.findings import Finding

Find = Callable[[str], Iterator[Finding]]
SHORT_CHARS = 12_000
"""More than any expression repeats, but for those that say so."""
LONG_CHARS = 500_000
LONG_SECONDS = 8
"""What no recognizer needs for so many characters, by ten times, and one that takes quadratic time does, by five."""
_CATEGORY = {kinds.CATEGORY_DIGIT: "1", kinds.CATEGORY_SPACE: " ", kinds.CATEGORY_NOT_WORD: "-"}
AROUND = ("", "-", " ", "\n", ".", "=", "/", ",", '"', "\t\t\t\t\t\t\t\t")
_MOST_OF_ONE = 40
_FINDINGS_MAX = 20_000


def patterns_of(find: Callable[..., object]) -> list[re.Pattern[str]]:
    """Return the expressions of the module that a recognizer stands in."""
    values = vars(sys.modules[find.__module__]).values()
    return [pattern for value in values for pattern in _patterns_in(value)]


def hostile_units(pattern: re.Pattern[str], dice: random.Random, most: int) -> list[str]:
    """Return what an expression says letter for letter, and beginnings of what it matches, so many at most of each.

    Each stands behind everything of `AROUND`: a run of hyphens or tabs is where many starts meet.
    """
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    said = sorted({each for each in _literals(tree) if each})
    made = sorted({each[:200] for _ in range(4) for each in _beginnings(tree, dice) if each})
    bases = [*dice.sample(said, min(most, len(said))), *dice.sample(made, min(most, len(made)))]
    return [before + each for each in bases for before in AROUND]


def repeated(unit: str, chars: int) -> str:
    return (unit * (chars // len(unit) + 1))[:chars]


def found_by(find: Find, text: str) -> list[Finding]:
    """Return what a recognizer finds, up to a number."""
    return list(islice(find(text), _FINDINGS_MAX))


def dearest(find: Find, units: list[str], count: int) -> list[str]:
    """Return those units that cost a recognizer most, repeated in a short text: they are worth a long one."""

    def seconds(unit: str) -> float:
        began = time.thread_time()
        found_by(find, repeated(unit, SHORT_CHARS))
        return time.thread_time() - began

    return sorted(units, key=seconds)[-count:]


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Raise TimeoutError where the block computes for longer, which does not depend on what else the machine does."""

    def over(*_given: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _patterns_in(each)


def _literals(node: Any) -> Iterator[str]:
    """Yield the runs of letters in a parsed expression."""
    run = ""
    for kind, value in node:
        if kind is kinds.LITERAL:
            run += chr(value)
            continue
        yield run
        run = ""
        if kind is kinds.BRANCH:
            for each in value[1]:
                yield from _literals(each)
        elif kind in (kinds.SUBPATTERN, kinds.ATOMIC_GROUP):
            yield from _literals(value[3] if kind is kinds.SUBPATTERN else value)
        elif kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
            yield from _literals(value[2])
    yield run


def _beginnings(node: Any, dice: random.Random) -> list[str]:
    """Return the beginnings of one text that a parsed expression matches, as far as one can tell by its form."""
    made, said = [""], ""
    for kind, value in node:
        if kind in (kinds.SUBPATTERN, kinds.ATOMIC_GROUP, kinds.BRANCH):
            inner = value[3] if kind is kinds.SUBPATTERN else value
            inner = dice.choice(value[1]) if kind is kinds.BRANCH else inner
            parts = _beginnings(inner, dice)
            made += [said + each for each in parts]
            said += parts[-1]
        elif kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
            least, most, inner = value
            for _ in range(min(max(least, dice.choice((0, 1, 1, 3))), most, _MOST_OF_ONE)):
                said += _beginnings(inner, dice)[-1]
        else:
            said += _one(kind, value, dice)
        made.append(said)
    return made


def _one(kind: Any, value: Any, dice: random.Random) -> str:
    if kind is kinds.LITERAL:
        return chr(value)
    if kind is kinds.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if kind is kinds.ANY:
        return "a"
    if kind is not kinds.IN:
        return ""  # assertions match no character
    if value[0][0] is kinds.NEGATE:
        excluded = {each for kind, each in value if kind is kinds.LITERAL}
        categories = {each for kind, each in value if kind is kinds.CATEGORY}
        return next(c for c in "aA1é-. " if ord(c) not in excluded and not _is_in(c, categories))
    kind, chosen = dice.choice(value)
    if kind is kinds.CATEGORY:
        return _CATEGORY.get(chosen, "a")
    return chr(chosen[0] if kind is kinds.RANGE else chosen)


def _is_in(character: str, categories: set[Any]) -> bool:
    return (
        (kinds.CATEGORY_DIGIT in categories and character.isdigit())
        or (kinds.CATEGORY_SPACE in categories and character.isspace())
        or (kinds.CATEGORY_WORD in categories and character.isalnum())
        or (kinds.CATEGORY_NOT_WORD in categories and not character.isalnum())
    )
