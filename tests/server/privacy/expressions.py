"""The expressions of a recognizer as it uses them: what each step of one costs, and texts that are hostile to it.

A step is one call into an expression: while it lasts, no other thread runs. What it costs is told in the time that a
plain search takes for as many characters, so that it is the same on a slow machine.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from re import _constants as kinds
from re import _parser as parser
from types import ModuleType
from typing import Any

CHARS = 12_000
"""More than any expression repeats, but for those that say so."""
MOST_COST = 300
"""So many plain searches take a tenth of a second on a block, which is what others may wait."""
_PLAIN = re.compile("[b-y]z")
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


def cost_of(find: Callable[[str], Any], unit: str) -> tuple[float, str]:
    """Return what the dearest step costs that a recognizer takes on a repeated text, and its expression."""
    text = (unit * (CHARS // len(unit) + 1))[:CHARS]
    cost, pattern = _cost(find, text)
    for _ in range(3 if cost > MOST_COST else 0):  # noise only ever adds
        cost = min(cost, _cost(find, text)[0])
    return cost, pattern


def _cost(find: Callable[[str], Any], text: str) -> tuple[float, str]:
    dearest = Dearest()
    with _timed(sys.modules[find.__module__], dearest):
        for _ in islice(find(text), _FINDINGS_MAX):
            pass
    return dearest.seconds / plain_seconds(), dearest.pattern


@cache
def plain_seconds() -> float:
    """Return the CPU seconds of a plain search through `CHARS` characters."""
    text, best = "a" * CHARS, 1.0
    for _ in range(300):  # a moment at which all is slow must not set the measure
        began = time.thread_time()
        _PLAIN.search(text)
        best = min(best, time.thread_time() - began)
    return best


class Dearest:
    """The step that took longest."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.pattern = ""

    def note(self, seconds: float, pattern: str) -> None:
        if seconds > self.seconds:
            self.seconds, self.pattern = seconds, pattern


class _Timed:
    """An expression in whose place this stands, and which notes what each step takes."""

    def __init__(self, pattern: re.Pattern[str], dearest: Dearest) -> None:
        self._pattern = pattern
        self._dearest = dearest

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._pattern, name)
        if not callable(value):
            return value

        def call(*given: Any, **named: Any) -> Any:
            return self._step(lambda: value(*given, **named))

        return call

    def finditer(self, *given: Any) -> Iterator[re.Match[str]]:
        matches = self._pattern.finditer(*given)
        while (match := self._step(lambda: next(matches, None))) is not None:
            yield match

    def _step(self, step: Callable[[], Any]) -> Any:
        began = time.thread_time()
        try:
            return step()
        finally:
            self._dearest.note(time.thread_time() - began, self._pattern.pattern)


@contextmanager
def _timed(module: ModuleType, dearest: Dearest) -> Iterator[None]:
    """Have all expressions of a module timed, for a while."""
    before: list[tuple[ModuleType, str, object]] = []
    try:
        for place, name, _ in _places(module):
            if not before or before[-1][:2] != (place, name):
                before.append((place, name, vars(place)[name]))
                setattr(place, name, _replaced(vars(place)[name], dearest))
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def _replaced(value: Any, dearest: Dearest) -> Any:
    if isinstance(value, re.Pattern):
        return _Timed(value, dearest) if isinstance(value.pattern, str) else value
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_replaced(each, dearest) for each in value)
    return value


def _places(module: ModuleType) -> list[tuple[ModuleType, str, re.Pattern[str]]]:
    """Return where the expressions stand that a module uses: its own, and those of the modules of its functions."""
    found: list[tuple[ModuleType, str, re.Pattern[str]]] = []
    waiting, seen = [module], {module.__name__}
    while waiting:
        place = waiting.pop()
        for name, value in vars(place).items():
            found += [(place, name, each) for each in _patterns_in(value)]
            home = getattr(value, "__module__", None) or ""
            if ".privacy." in home and home not in seen and home in sys.modules:
                seen.add(home)
                waiting.append(sys.modules[home])
    return found


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
