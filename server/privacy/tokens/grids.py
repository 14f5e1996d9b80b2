"""Long tables and lines of JSON as columns: what is of one kind is looked at, and replaced, together.

A grid is the text in fragments, cells and what stands between them; joined they are the text again. Each column knows
at which places its cells are. Rows that have other cells than the rest are no part of any column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from ...base.host_work import checkpoint
from .notations import (
    JsonNotation,
    LeafKind,
    Notation,
    Scanner,
    TableNotation,
    cell_pattern,
    cell_said,
    is_json,
    json_said,
    separator_of,
)

LEAST_CHARS = 20_000
"""A shorter text is looked at as any other."""
_LEAST_ROWS = 20
_HEADING = re.compile(r"[^\W\d][\w .,()/#'\u2019&°№-]{0,40}|[№〒][\w .]{0,24}")
_HEADING_LINE_MAX = 4_000
_JSON_LEAF = re.compile(r'((?<!\\)"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')
_SHAPES_MAX = 200
"""Forms of lines that are remembered; of more, the lines are looked at one by one."""
_ROWS_PER_CHECK = 2_000


@dataclass(slots=True)
class GridColumn:
    """The cells below one heading, or one key: where they are, and how what they say is read from their source."""

    path: tuple[str, ...]
    places: slice | list[int]
    says: Callable[[str], str]
    kind: LeafKind = LeafKind.STRING


@dataclass(slots=True)
class Grid:
    """A text in fragments. `headings` are its headings or keys; `odd` are the rows that are no part of a column."""

    fragments: list[str]
    columns: list[GridColumn]
    headings: tuple[str, ...]
    odd: list[tuple[int, int]]
    notation: Notation
    heading_line: str = ""

    def sources(self, column: GridColumn) -> list[str]:
        """Return the cells of a column as they are written."""
        if isinstance(column.places, slice):
            return self.fragments[column.places]
        return [self.fragments[place] for place in column.places]

    def put(self, column: GridColumn, sources: Sequence[str]) -> None:
        """Write other cells into a column."""
        if isinstance(column.places, slice):
            self.fragments[column.places] = sources
            return
        for place, source in zip(column.places, sources, strict=True):
            self.fragments[place] = source

    def odd_text(self, row: tuple[int, int]) -> str:
        """Return a row that is no part of a column."""
        return "".join(self.fragments[slice(*row)])

    def put_odd(self, row: tuple[int, int], text: str) -> None:
        """Write another text in place of such a row."""
        start, end = row
        self.fragments[start:end] = [text, *[""] * (end - start - 1)]

    def text(self) -> str:
        """Return the text as it is now."""
        return "".join(self.fragments)


def grid_of(text: str) -> Grid | None:
    """Return a long text as a grid where it is a table with headings or lines of JSON, else None."""
    if len(text) < LEAST_CHARS:
        return None
    return _json_lines(text) if text.lstrip()[:1] in {"{", "["} else _table(text)


def following_grid(grid: Grid, text: str) -> Grid | None:
    """Return the next rows or lines of what a grid began as one, or None for lines that are not of JSON."""
    if isinstance(grid.notation, TableNotation):
        return table_grid(text, grid.notation.separator, grid.headings)
    return _json_lines(text)


def whole_rows(text: str) -> int:
    """Return how much of a text is rows or lines to their ends; a line break in quotes ends none."""
    end = text.rfind("\n") + 1
    while end and text.count('"', 0, end) % 2:
        end = text.rfind("\n", 0, end - 1) + 1
    return end


def table_grid(text: str, separator: str, headings: Sequence[str]) -> Grid:
    """Return rows of a table, whose headings are known, as a grid."""
    found = cell_pattern(separator).findall(text)
    if found and found[-1] == ("", ""):
        found.pop()
    fragments = list(chain.from_iterable(found))
    width = len(headings)
    ends = [mark != separator for mark in fragments[1::2]]
    odd: list[tuple[int, int]] = []
    rows, uneven = divmod(len(ends), width)
    if uneven or sum(ends) != rows or not all(ends[width - 1 :: width]):
        return _uneven_table(fragments, ends, separator, headings)
    columns = [
        GridColumn(("0", heading), slice(2 * number, None, 2 * width), cell_said)
        for number, heading in enumerate(headings)
    ]
    return Grid(fragments, columns, tuple(headings), odd, TableNotation(separator))


def _uneven_table(fragments: list[str], ends: Sequence[bool], separator: str, headings: Sequence[str]) -> Grid:
    width = len(headings)
    places: list[list[int]] = [[] for _ in headings]
    odd: list[tuple[int, int]] = []
    start = 0
    for cell, is_last in enumerate(ends):
        if not is_last and cell + 1 < len(ends):
            continue
        if cell + 1 - start == width:
            for column, place in zip(places, range(2 * start, 2 * cell + 2, 2), strict=True):
                column.append(place)
        elif any(fragments[2 * start : 2 * cell + 2 : 2]):
            odd.append((2 * start, 2 * cell + 2))
        start = cell + 1
    columns = [GridColumn(("0", heading), each, cell_said) for heading, each in zip(headings, places, strict=True)]
    return Grid(fragments, columns, tuple(headings), odd, TableNotation(separator))


def _table(text: str) -> Grid | None:
    """Return a table with headings in its first line, where nearly all of its rows are as wide as that."""
    line, newline, rest = text.partition("\n")
    if not newline or len(line) > _HEADING_LINE_MAX or '"' in line:
        return None
    bare = line.removesuffix("\r")
    separator = separator_of(bare)
    headings = [heading.strip() for heading in bare.lstrip("\ufeff").split(separator)]
    if len(headings) < 2 or len(set(headings)) < len(headings):  # noqa: PLR2004 - a column alone is no table
        return None
    if not all(map(_HEADING.fullmatch, headings)):
        return None
    grid = table_grid(rest, separator, headings)
    rows = len(grid.sources(grid.columns[0]))
    if rows < _LEAST_ROWS or len(grid.odd) * _LEAST_ROWS > rows:
        return None
    grid.heading_line = line + newline
    return grid


def _json_lines(text: str) -> Grid | None:
    lines = text.splitlines(keepends=True) if "\r" in text else text.split("\n")
    end = "" if "\r" in text else "\n"
    if len(lines) < _LEAST_ROWS or not is_json(lines[1]):
        return None
    shapes: dict[tuple[str, ...], _Shape | None] = {}
    keyed: dict[tuple[tuple[str, ...], tuple[str, ...]], list[GridColumn]] = {}
    fragments: list[str] = []
    odd: list[tuple[int, int]] = []
    headings: dict[str, None] = {}
    for number, line in enumerate(lines):
        if number % _ROWS_PER_CHECK == 0:
            checkpoint()
        at = len(fragments)
        parts = _JSON_LEAF.split(line)
        fragments += parts
        fragments.append(end)
        between = tuple(parts[::2])
        shape = shapes.get(between)
        if shape is None:
            if not line.strip():
                continue
            shape = _shape_of(line, parts) if is_json(line) and len(shapes) < _SHAPES_MAX else None
            if shape is None:
                odd.append((at, len(fragments)))
                continue
            shapes[between] = shape
        keys = shape.keys(parts)
        columns = keyed.get((between, keys))
        if columns is None:
            if len(keyed) >= _SHAPES_MAX or (columns := _columns_of(line, shape)) is None:
                odd.append((at, len(fragments)))
                continue
            keyed[between, keys] = columns
            headings |= dict.fromkeys(map(json_said, keys))
        for column, place in zip(columns, shape.values, strict=True):
            column.places.append(at + place)  # type: ignore[union-attr]  # those of lines are lists
    if fragments:
        fragments.pop()  # what follows the last line is its own
    if len(odd) * 2 > len(lines):
        return None
    return Grid(fragments, list(chain(*keyed.values())), tuple(headings), odd, JsonNotation())


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which of a line's fragments are keys, and which are values."""

    keys: Callable[[list[str]], tuple[str, ...]]
    values: tuple[int, ...]


def _shape_of(line: str, parts: Sequence[str]) -> _Shape | None:
    """Return the shape of a line of JSON, or None where the fragments are not its leaves."""
    written = Scanner().leaves(line)
    places = range(1, len(parts), 2)
    if len(written) != len(places):
        return None
    keys = tuple(place for place, each in zip(places, written, strict=True) if each.leaf.kind is LeafKind.KEY)
    values = tuple(place for place, each in zip(places, written, strict=True) if each.leaf.kind is not LeafKind.KEY)
    if any(line[each.start : each.end] != parts[place] for place, each in zip(places, written, strict=True)):
        return None
    return _Shape(_getter(keys), values)


def _getter(places: tuple[int, ...]) -> Callable[[list[str]], tuple[str, ...]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda parts: tuple(parts[place] for place in places)


def _columns_of(line: str, shape: _Shape) -> list[GridColumn] | None:
    leaves = [each.leaf for each in Scanner().leaves(line) if each.leaf.kind is not LeafKind.KEY]
    if len(leaves) != len(shape.values):
        return None
    return [GridColumn(leaf.path, [], _says[leaf.kind], leaf.kind) for leaf in leaves]


def _number(source: str) -> str:
    return source


_says = {LeafKind.STRING: json_said, LeafKind.NUMBER: _number}
