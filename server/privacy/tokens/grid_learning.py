"""Learns what is personal in a long table, or in lines of JSON, column by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...host_work import checkpoint
from .grids import Column, Grid

if TYPE_CHECKING:
    from ....skills_db.vault import Value
    from ..detection.columns import ColumnFinder, Found
    from .learned_values import LearnedValues


@dataclass(slots=True)
class Learned:
    """What a text had: the hashes of its values, and values that are to be known as words."""

    hashes: list[NDArray[np.uint64]] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """How many values these are."""
        return sum(map(len, self.hashes)) + len(self.values)


def learn_grid(grid: Grid, finder: ColumnFinder, known: LearnedValues, run: int) -> Learned:
    """Have the values in the columns of a grid known. Raises `DetectionFailed` and `HostWorkRefused`."""
    from ....skills_db.vault import Value

    learned = Learned()
    for column in grid.columns:
        checkpoint()
        found = found_in(grid, column, finder)
        for kind, texts in found.whole.items():
            hashes, left = known.add(kind, texts, run)
            learned.hashes += hashes
            learned.values += (Value(kind, text) for text in left)
        for text, findings in found.within.items():
            learned.values += (Value(str(each.type), text[each.start : each.end]) for each in findings)
    for found in [finder.find((), grid.headings)]:
        learned.values += (Value(kind, text) for kind, texts in found.whole.items() for text in texts)
    return learned


def found_in(grid: Grid, column: Column, finder: ColumnFinder) -> Found:
    """Return what is personal in the different cells of a column."""
    texts = list(dict.fromkeys(map(column.says, dict.fromkeys(grid.sources(column)))))
    return finder.find(column.path, texts, grid.headings)
