"""Data for the tasks, the same each time: people, numbers, and the text forms of rows."""

from __future__ import annotations

import csv
import io
import sqlite3
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias, TypeVar

_FIRST_NAMES = """
    Miriam Tobias Ingrid Rafael Chiara Joanna Pascal Yvonne Dmitri Helena Marcus Bianca Stefan Leonie Arturo Fatima
    Gregor Noemi Viktor Carmen Anders Judith Emilio Teresa Hannes Sabine Oliver Ramona Felix Beatrix
"""
_LAST_NAMES = """
    Oyelaran Lindqvist Ferreira Kowalczyk Brandstetter Villanueva Okonkwo Petrovic Sandoval Haugland Castellano
    Weatherby Delacroix Nakamura Abernathy Vandermeer Szymanski Galindo Thorvaldsen Mukherjee Rasmussen Quintero
    Blackwood Marchetti Jankowski Holmgren Echeverria Fitzwilliam Radulescu Montague Bergstrom Papadakis Zielinski
    Carvalho Dunleavy Eriksen Gutierrez Hartmann Ivanova Jespersen Kellerman Lombardi Mortensen Navarro Oberlander
    Pellegrini Rosenthal Stavros Tremblay Underwood Valentini Westergaard Yamamoto Ziegler Ashworth Bellamy Corrigan
    Donnelly Ellsworth Fairbanks
"""

_FIRST, _LAST = _FIRST_NAMES.split(), _LAST_NAMES.split()
CITIES = ("Bristol", "Leeds", "York")
PRODUCTS = ("chair", "desk", "lamp")
T = TypeVar("T")
Row: TypeAlias = Mapping[str, Any]


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
        self.task = task

    def __getitem__(self, n: int) -> Person:
        at = self.task * self.EACH + n % self.EACH
        first, last = _FIRST[(at + at // len(_LAST)) % len(_FIRST)], _LAST[at % len(_LAST)]
        mail = f"{first}.{last}".lower()
        return Person(f"{first} {last}", f"{mail}@example{self.task % 7}.org", f"+44 20 7946 {at % 10_000:04}")

    def __iter__(self) -> Iterator[Person]:
        return (self[n] for n in range(self.EACH))


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


def orders(people: People, count: int = 40) -> list[Row]:
    """Return the rows of a table of sales, with a customer in each."""
    numbers = Numbers(people.task)
    return [
        {
            "id": n,
            "day": str(date(2025, 1, 1) + timedelta(days=n)),
            "name": people[n].name,
            "email": people[n].email,
            "city": numbers.one_of(CITIES),
            "product": numbers.one_of(PRODUCTS),
            "units": numbers.integer(1, 30),
            "amount": numbers.integer(4, 400) / 4,
        }
        for n in range(count)
    ]


def csv_of(rows: Sequence[Row], delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    """Return rows as CSV with a header; None is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(encoding)


def grid(rows: Sequence[Row], *columns: str) -> list[list[Any]]:
    """Return the header of rows and their cells, or of some columns."""
    names = columns or tuple(rows[0])
    return [list(names), *([row[name] for name in names] for row in rows)]


def zip_of(members: Mapping[str, bytes]) -> bytes:
    """Return a zip, the same each time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0)), content)
    return packed.getvalue()


def sqlite_of(tables: Mapping[str, Sequence[Row]]) -> bytes:
    """Return a SQLite database with such tables."""
    with closing(sqlite3.connect(":memory:")) as database:
        for name, rows in tables.items():
            database.execute(f"create table {name} ({', '.join(rows[0])})")
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f"insert into {name} values ({marks})", [tuple(row.values()) for row in rows])
        database.commit()
        return database.serialize()


def values_by(rows: Iterable[Row], by: str, of: str) -> dict[Any, list[Any]]:
    """Return the values of one field by another, ordered by the latter."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(row[by], []).append(row[of])
    return dict(sorted(found.items()))


def sums(rows: Iterable[Row], by: str, of: str) -> dict[Any, Any]:
    """Return the sum of one field by another, ordered by the latter."""
    return {key: sum(values) for key, values in values_by(rows, by, of).items()}
