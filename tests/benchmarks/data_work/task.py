"""What a task of `make bench-data` is: files, a program as models write it for code interpreters, and what must come of it.

What must come of it is worked out by plain Python or by hand from the same rows that the files are made of, never by the
libraries that the program uses. It is compared by value: numbers with a tolerance, tables by labels and cells, files by
what they hold, pictures by their size and their captions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .made_data import People

ANYTHING: Final = object()
"""A result that is not compared."""


@dataclass(frozen=True)
class Sheets:
    """An input or a written file that only a library makes or reads: the rows of each sheet, the first row its header.

    `kind` is parquet, feather or xlsx; only xlsx has more than one sheet.
    """

    kind: str
    sheets: Mapping[str, Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Frame:
    """A table that a program shows: its columns, its rows without the labels, and the labels where they count.

    Of one too large to show whole, `rows` are the first ones, and `count` is how many there are.
    """

    columns: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    labels: Sequence[Any] | None = None
    count: int | None = None


@dataclass(frozen=True)
class Labelled:
    """A series that a program shows: values by label, in order."""

    values: Mapping[Any, Any]


@dataclass(frozen=True)
class Text:
    """A written text file: its rows (`csv`), its value (`json`), or its values line by line (`jsonl`)."""

    form: str
    holds: Any
    delimiter: str = ","
    encoding: str = "utf-8"
    packed: str = ""


@dataclass(frozen=True)
class Archive:
    """A written zip: its members."""

    members: Mapping[str, Text]


@dataclass(frozen=True)
class Database:
    """A written SQLite or DuckDB database: the rows of a query."""

    query: str
    rows: Sequence[Sequence[Any]]
    engine: str = "sqlite"


@dataclass(frozen=True)
class Picture:
    """A written picture: png, svg or pdf, and for png its size in pixels."""

    kind: str = "png"
    size: tuple[int, int] | None = None


Written = Text | Archive | Database | Picture | Sheets


@dataclass(frozen=True)
class Drawn:
    """What one pair of axes that is shown has: its title, the labels of its axes, and the heights of its bars in order."""

    title: str = ""
    x: str = ""
    y: str = ""
    bars: Sequence[float] = ()


@dataclass(frozen=True)
class Case:
    """The files and the program of a task, and what must come of it.

    `printed` are numbers and words that stand in the output in this order; `images` is how many figures are shown;
    `drawn` are the axes that sealab's captions of these must tell of.
    """

    files: Mapping[str, bytes | Sheets]
    program: str
    result: Any = ANYTHING
    printed: Sequence[Any] = ()
    written: Mapping[str, Written] = field(default_factory=dict)
    images: int = 0
    drawn: Sequence[Drawn] = ()


@dataclass(frozen=True)
class Task:
    """A task: its group, and its case, which holds the data of people of its own."""

    number: int
    name: str
    group: str
    case: Case
    people: People


Build = Callable[[People], Case]


class Group:
    """The tasks of one group: each is a function with what was asked as its docstring, in the order of definition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.builds: list[Build] = []

    def __call__(self, build: Build) -> Build:
        """Add the task that a function builds, under the function's name."""
        self.builds.append(build)
        return build
