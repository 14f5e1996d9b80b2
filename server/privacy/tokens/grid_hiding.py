"""Puts tokens into a long table, or into lines of JSON, column by column."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...host_work import checked, checkpoint
from ..token_texts import Span
from .answer_parts import Sheet, WrittenSheet, text_sheet
from .grids import Column, Grid
from .notations import Leaf, LeafKind, TableNotation, WrittenLeaf, cell_pattern, cell_said
from .parts import Text

if TYPE_CHECKING:
    from ..detection.findings import Detection
    from .known_values import KnownValues
    from .learned_values import LearnedValues


@dataclass(slots=True)
class _Cells:
    """The different cells of one column, as they are written: those that are hidden whole, and the others."""

    column: Column
    whole: dict[str, str] = field(default_factory=dict)
    """Source to text."""
    others: dict[str, tuple[str, list[Span]]] = field(default_factory=dict)
    """Source to text, and what was found in it."""


class GridHiding:
    """A grid while tokens are put into it: first `values` is asked for, then they are put `in`."""

    def __init__(self, grid: Grid, detector: Detection) -> None:
        """Look through the columns. Raises `DetectionFailed` and `HostWorkRefused`."""
        self.grid = grid
        self.texts: dict[str, str] = {}
        """The values that are whole texts, and their types."""
        self.numbers: dict[str, str] = {}
        """The values that are whole numbers of JSON."""
        self._cells = [self._looked_at(column, detector) for column in grid.columns]

    def rest(self, known: KnownValues, learned: LearnedValues) -> tuple[WrittenSheet, list[list[Span]]] | None:
        """Return the cells that are not hidden whole but hold something known or found, as a sheet, and what that is.

        By then all values of the grid are known.
        """
        sources: list[str] = []
        leaves: list[WrittenLeaf] = []
        spans: list[list[Span]] = []
        at = 0
        for cells in self._cells:
            checkpoint()
            _add_known(cells, known, learned)
            for source, (text, found) in cells.others.items():
                if found or "[" in text:
                    leaves.append(WrittenLeaf(Leaf(cells.column.path, text, cells.column.kind), at, at + len(source)))
                    sources.append(source)
                    spans.append(found)
                    at += len(source)
        if not leaves:
            return None
        return WrittenSheet("".join(sources), leaves, self.grid.notation), spans

    def has_personal_keys(self, detector: Detection, known: KnownValues, learned: LearnedValues) -> bool:
        """Return whether keys of lines of JSON are to be hidden too, which is not done column by column."""
        if isinstance(self.grid.notation, TableNotation):
            return False
        found = detector.find_column((), self.grid.headings)
        keys = "\n".join(self.grid.headings)
        return bool(found.whole or found.within) or any(True for _span in _known_in(keys, known, learned))

    def odd_sheets(self) -> list[Sheet]:
        """Return the line of headings, and the rows that are no part of a column, as sheets."""
        return [text_sheet(Text(self.grid.heading_line)), *(_odd_sheet(self.grid, row) for row in self.grid.odd)]

    def put_in(self, tokens: dict[str, str], numbers: dict[str, str], rest: WrittenSheet | None) -> None:
        """Write the tokens into the grid: of whole texts, of whole numbers, and those within `rest`."""
        pieces = iter(rest.pieces() if rest is not None else ())
        for cells in self._cells:
            checkpoint()
            new: dict[str, str] = {}
            for source, text in cells.whole.items():
                if cells.column.kind is LeafKind.NUMBER:
                    new[source] = f'"{numbers[text]}"'
                else:
                    new[source] = f'"{tokens[text]}"' if source[0] == '"' else tokens[text]
            for source, (text, found) in cells.others.items():
                if found or "[" in text:
                    new[source] = next(pieces)
            if new:
                self.grid.put(cells.column, [new.get(source, source) for source in self.grid.sources(cells.column)])

    def _looked_at(self, column: Column, detector: Detection) -> _Cells:
        checkpoint()
        cells = _Cells(column)
        said = {source: column.says(source) for source in dict.fromkeys(self.grid.sources(column))}
        found = detector.find_column(column.path, list(dict.fromkeys(said.values())), self.grid.headings)
        kinds = {text: kind for kind, texts in found.whole.items() for text in texts}
        values = self.numbers if column.kind is LeafKind.NUMBER else self.texts
        for source, text in checked(said.items()):
            kind = kinds.get(text)
            if kind is not None and "[" not in text and "\\" not in source:
                cells.whole[source] = text
                values.setdefault(text, kind)
            elif text:
                spans = [Span(each.start, each.end, str(each.type)) for each in found.within.get(text, ())]
                cells.others[source] = text, [*spans, *([Span(0, len(text), kind)] if kind is not None else [])]
        return cells


def _odd_sheet(grid: Grid, row: tuple[int, int]) -> Sheet:
    """Return a row that is no part of a column as a sheet."""
    text = grid.odd_text(row)
    if not isinstance(grid.notation, TableNotation):
        return text_sheet(Text(text))
    leaves: list[WrittenLeaf] = []
    for number, match in enumerate(cell_pattern(grid.notation.separator).finditer(text)):
        heading = grid.headings[number] if number < len(grid.headings) else ""
        leaves.append(WrittenLeaf(Leaf(("0", heading), cell_said(match[1])), *match.span(1)))
    return WrittenSheet(text, leaves, grid.notation)


def _add_known(cells: _Cells, known: KnownValues, learned: LearnedValues) -> None:
    """Add to what was found in the cells of a column what is known in them."""
    found = list(cells.others.values())
    starts: list[int] = []
    at = 0
    for text, _spans in found:
        starts.append(at)
        at += len(text) + 1
    joined = "\n".join(text for text, _spans in found)
    for span in _known_in(joined, known, learned):
        number = bisect_right(starts, span.start) - 1
        text, spans = found[number]
        low, high = span.start - starts[number], span.end - starts[number]
        if high <= len(text):
            spans.append(Span(low, high, span.type))


def _known_in(text: str, known: KnownValues, learned: LearnedValues) -> Iterable[Span]:
    yield from learned.find(text)
    if len(known):
        yield from known.find(text)


def grouped(values: dict[str, str]) -> dict[str, list[str]]:
    """Return values by their types."""
    kinds: dict[str, list[str]] = {}
    for text, kind in values.items():
        kinds.setdefault(kind, []).append(text)
    return kinds


def kinds_of(shown: Iterable[str]) -> Sequence[str]:
    """Return the types of tokens as they are shown."""
    return [token[1:].rpartition("_")[0] for token in shown]
