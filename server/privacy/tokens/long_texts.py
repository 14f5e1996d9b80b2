"""Learns what is personal in a long text: in a table or in lines of JSON by columns, in others as in any text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....skills_db.vault_entries import Value
from ...base.host_work import checkpoint
from ..detection.findings import Detection, KeyedText, TableFindings
from .grids import grid_of
from .learned_values import LearnedValues
from .notations import written_leaves

_WORDS_WEIGH = 20


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

    @property
    def plain_values(self) -> Iterable[str]:
        """The values that are known by their words."""
        return (value.plain for value in (*self.values, *self.words))


def learn_long(text: str, detector: Detection, known: LearnedValues, run: int, *, words: int) -> Learned | None:
    """Learn the values of a text by their hashes, as of that run, and give back so many as words.

    None for JSON that is no lines of it. Raises `DetectionFailed` and `HostWorkRefused`.
    """
    learned = Learned()

    def take(found: TableFindings) -> None:
        for kind, texts in found.whole.items():
            hashes, left = known.add(kind, texts, run)
            learned.hashes += hashes
            learned.values += (Value(kind, each) for each in left)
            learned.words += (Value(kind, each) for each in texts[: max(0, words - len(learned.words))])
        for each, findings in found.within.items():
            learned.values += (Value(str(one.type), each[one.start : one.end]) for one in findings)

    grid = grid_of(text)
    if grid is None:
        if written_leaves(text) is not None:
            return None
        kinds: dict[str, dict[str, None]] = {}
        for each in detector.find_leaves([KeyedText((), text)])[0]:
            kinds.setdefault(str(each.type), {})[text[each.start : each.end]] = None
        take(TableFindings({kind: list(texts) for kind, texts in kinds.items()}))
        return learned
    for column in grid.columns:
        checkpoint()
        texts = list(dict.fromkeys(map(column.says, dict.fromkeys(grid.sources(column)))))
        take(detector.find_column(column.path, texts, grid.headings))
    take(detector.find_column((), grid.headings))
    learned.rest += (grid.heading_line + grid.odd_text(row) for row in grid.odd)
    return learned
