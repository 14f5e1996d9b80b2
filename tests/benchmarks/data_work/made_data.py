"""Data for the tasks, the same each time: people, numbers, and the text forms of rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_FIRST = [
    "Miriam",
    "Tobias",
    "Ingrid",
    "Rafael",
    "Chiara",
    "Joanna",
    "Pascal",
    "Yvonne",
    "Dmitri",
    "Helena",
    "Marcus",
    "Bianca",
    "Stefan",
    "Leonie",
    "Arturo",
    "Fatima",
    "Gregor",
    "Noemi",
    "Viktor",
    "Carmen",
    "Anders",
    "Judith",
    "Emilio",
    "Teresa",
    "Hannes",
    "Sabine",
    "Oliver",
    "Ramona",
    "Felix",
    "Beatrix",
]
_LAST = [
    "Oyelaran",
    "Lindqvist",
    "Ferreira",
    "Kowalczyk",
    "Brandstetter",
    "Villanueva",
    "Okonkwo",
    "Petrovic",
    "Sandoval",
    "Haugland",
    "Castellano",
    "Weatherby",
    "Delacroix",
    "Nakamura",
    "Abernathy",
    "Vandermeer",
    "Szymanski",
    "Galindo",
    "Thorvaldsen",
    "Mukherjee",
    "Rasmussen",
    "Quintero",
    "Blackwood",
    "Marchetti",
    "Jankowski",
    "Holmgren",
    "Echeverria",
    "Fitzwilliam",
    "Radulescu",
    "Montague",
    "Bergstrom",
    "Papadakis",
    "Zielinski",
    "Carvalho",
    "Dunleavy",
    "Eriksen",
    "Gutierrez",
    "Hartmann",
    "Ivanova",
    "Jespersen",
    "Kellerman",
    "Lombardi",
    "Mortensen",
    "Navarro",
    "Oberlander",
    "Pellegrini",
    "Rosenthal",
    "Stavros",
    "Tremblay",
    "Underwood",
    "Valentini",
    "Westergaard",
    "Yamamoto",
    "Ziegler",
    "Ashworth",
    "Bellamy",
    "Corrigan",
    "Donnelly",
    "Ellsworth",
    "Fairbanks",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Person:
    """Somebody who does not exist."""

    name: str
    email: str
    phone: str


class People:
    """People of one task alone: the same name stands in no other task, so that nothing was learned of it before."""

    EACH = 12

    def __init__(self, task: int) -> None:
        self._task = task

    def __getitem__(self, n: int) -> Person:
        if not 0 <= n < self.EACH:
            raise IndexError(n)
        at = self._task * self.EACH + n
        first, last = _FIRST[(at + at // len(_LAST)) % len(_FIRST)], _LAST[at % len(_LAST)]
        mail = f"{first}.{last}".lower()
        return Person(f"{first} {last}", f"{mail}@example{self._task % 7}.org", f"+44 20 7946 {at % 10_000:04}")

    def __iter__(self) -> Iterator[Person]:
        return (self[n] for n in range(self.EACH))

    def of(self, n: int) -> Person:
        """Return somebody by any number."""
        return self[n % self.EACH]


class Numbers:
    """Random numbers by a generator of our own (Numerical Recipes, chapter 7: `ranqd1`), the same in every Python."""

    def __init__(self, seed: int) -> None:
        self._state = seed & 0xFFFFFFFF
        for _ in range(3):
            self._next()

    def _next(self) -> int:
        self._state = (1664525 * self._state + 1013904223) & 0xFFFFFFFF
        return self._state >> 8

    def integer(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both included."""
        return low + self._next() % (high - low + 1)

    def real(self, low: float, high: float, digits: int = 2) -> float:
        """Return a number between two, rounded."""
        return round(low + (high - low) * self._next() / (1 << 24), digits)

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of some things."""
        return choices[self.integer(0, len(choices) - 1)]


def csv_of(rows: Sequence[Mapping[str, Any]], delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    """Return rows as CSV with a header; None is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(encoding)


def jsonl_of(rows: Iterable[Any]) -> bytes:
    """Return values as JSON, one a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def json_of(value: Any) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def sums(rows: Iterable[Mapping[str, Any]], by: str, of: str) -> dict[Any, Any]:
    """Return the sum of one field by another, ordered by the latter."""
    found: dict[Any, Any] = {}
    for row in rows:
        found[row[by]] = found.get(row[by], 0) + row[of]
    return dict(sorted(found.items()))


def median(values: Iterable[float]) -> float:
    """Return the middle of some values, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def mean(values: Iterable[float]) -> float:
    """Return the mean."""
    all_values = list(values)
    return sum(all_values) / len(all_values)


def deviation(values: Iterable[float]) -> float:
    """Return the standard deviation of a sample."""
    all_values = list(values)
    middle = mean(all_values)
    return float((sum((value - middle) ** 2 for value in all_values) / (len(all_values) - 1)) ** 0.5)


def quantile(values: Iterable[float], at: float) -> float:
    """Return a quantile, linear between the two nearest values."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * at
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
