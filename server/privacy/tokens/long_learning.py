"""Learns what is personal in a long text: in a table or in lines of JSON by columns, in a log by its lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ...host_work import checkpoint
from .grids import Column, Grid

if TYPE_CHECKING:
    from ....skills_db.vault import Value
    from ..detection.findings import Detection, Finding, Found
    from .learned_values import LearnedValues


_WORDS_WEIGH = 20


class Learn(Protocol):
    """What learns a text that it was given."""

    def __call__(self, known: LearnedValues, run: int, *, words: int) -> Learned:
        """Have its values known, as of that run, and give back so many as words."""
        ...


@dataclass(slots=True)
class Learned:
    """What a text had: the hashes of its values, and values that are to be known as words."""

    hashes: list[NDArray[np.uint64]] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    words: list[Value] = field(default_factory=list)
    """Some of the values that are known by their hashes."""
    rest: list[str] = field(default_factory=list)
    """Rows of a table that are to be learned as any text."""

    @property
    def weight(self) -> int:
        """How many values these are."""
        return sum(map(len, self.hashes)) + _WORDS_WEIGH * (len(self.values) + len(self.words) + len(self.rest))


def learn_grid(grid: Grid, detector: Detection, known: LearnedValues, run: int, *, words: int) -> Learned:
    """Have the values in the columns of a grid known, and give back so many as words.

    Raises `DetectionFailed` and `HostWorkRefused`.
    """
    from ....skills_db.vault import Value

    learned = Learned()
    for column in grid.columns:
        checkpoint()
        found = found_in(grid, column, detector)
        for kind, texts in found.whole.items():
            hashes, left = known.add(kind, texts, run)
            learned.hashes += hashes
            learned.values += (Value(kind, text) for text in left)
            learned.words += (Value(kind, text) for text in texts[: words - len(learned.words)])
        for text, findings in found.within.items():
            learned.values += (Value(str(each.type), text[each.start : each.end]) for each in findings)
    headings = detector.find_column((), grid.headings)
    learned.values += (Value(kind, text) for kind, texts in headings.whole.items() for text in texts)
    for text, findings in headings.within.items():
        learned.values += (Value(str(each.type), text[each.start : each.end]) for each in findings)
    learned.rest += (grid.heading_line + grid.odd_text(row) for row in grid.odd)
    return learned


def learn_text(
    text: str, find: Callable[[], Sequence[Finding]], known: LearnedValues, run: int, *, words: int
) -> Learned:
    """Have known what is found in a text, and give back so much as words.

    Raises `DetectionFailed` and `HostWorkRefused`.
    """
    from ....skills_db.vault import Value

    learned = Learned()
    kinds: dict[str, dict[str, None]] = {}
    for each in find():
        kinds.setdefault(str(each.type), {})[text[each.start : each.end]] = None
    for kind, texts in kinds.items():
        hashes, left = known.add(kind, list(texts), run)
        learned.hashes += hashes
        learned.values += (Value(kind, each) for each in left)
        learned.words += (Value(kind, each) for each in list(texts)[: words - len(learned.words)])
    return learned


def found_in(grid: Grid, column: Column, detector: Detection) -> Found:
    """Return what is personal in the different cells of a column."""
    texts = list(dict.fromkeys(map(column.says, dict.fromkeys(grid.sources(column)))))
    return detector.find_column(column.path, texts, grid.headings)
