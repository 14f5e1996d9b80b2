"""The cells of separated values (RFC 4180): each is looked at under its heading, and the table stays one.

As with JSON, everything between the cells stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .structured import Leaf, WrittenLeaf

SEPARATORS = ",;\t|"


class TableScanner:
    """Finds the cells of a table, in pieces if need be. The first row gives the headings."""

    def __init__(self, separator: str | None = None, headings: Sequence[str] = ()) -> None:
        """Begin a table, or go on with one whose separator and headings are known."""
        self._separator = separator
        self._headings = list(headings)
        self._row = 1 if headings else 0
        self._column = 0

    def feed(self, text: str, *, final: bool) -> tuple[list[WrittenLeaf], int]:
        """Return the cells of the next piece, and how much of it they take; `final` says that nothing follows."""
        if self._separator is None:
            if not final and "\n" not in text:
                return [], 0
            self._separator = separator_of(text.partition("\n")[0])
        cell = cell_pattern(self._separator)
        found: list[WrittenLeaf] = []
        at = 0
        while at < len(text) and (match := cell.match(text, at)):
            if not final and match.end() + 1 >= len(text):
                break  # the cell, or the end of the line, may go on
            start, end = match.span(1)
            found.append(WrittenLeaf(Leaf(self._path(), said(match[1])), start, end))
            if self._row == 0:
                self._headings.append(said(match[1]).strip())
            if match[2] == self._separator:
                self._column += 1
            else:
                self._row += 1
                self._column = 0
            at = match.end()
        return found, len(text) if final else at

    @property
    def notation(self) -> TableNotation:
        """How the table writes its cells, as far as it has been seen."""
        return TableNotation(self._separator or SEPARATORS[0])

    def _path(self) -> tuple[str, ...]:
        if self._row == 0 or self._column >= len(self._headings):
            return ()
        return (str(self._row - 1), self._headings[self._column])


class TableNotation:
    """How separated values write their cells."""

    def __init__(self, separator: str) -> None:
        self.separator = separator

    def offsets(self, source: str) -> Sequence[int]:
        """Return where each character of a cell begins in its source, and where the last ends."""
        return cell_offsets(source)

    def escaped(self, source: str, text: str) -> str:
        """Return a text as it stands within the source of a cell."""
        return text.replace('"', '""') if _is_quoted(source) else text

    def tidied(self, source: str) -> str:
        """Return the source of a cell, in quotes if what was put into it would part it."""
        if _is_quoted(source) or not any(mark in source for mark in (self.separator, '"', "\n", "\r")):
            return source
        return '"' + source.replace('"', '""') + '"'


def cell_offsets(source: str) -> list[int]:
    """Return where each character of a cell begins in its source, and where the last ends."""
    if not _is_quoted(source):
        return list(range(len(source) + 1))
    return [*(match.start() for match in _QUOTED_CHARACTER.finditer(source, 1, len(source) - 1)), len(source) - 1]


_QUOTED_CHARACTER = re.compile(r'""|[^"]', re.DOTALL)


def cell_pattern(separator: str) -> re.Pattern[str]:
    """Return an expression for one cell and the mark after it."""
    mark = re.escape(separator)
    return re.compile(rf'("(?:[^"]|"")*"(?=[{mark}\r\n]|\Z)|[^{mark}\r\n]*)({mark}|\r\n|\r|\n|\Z)')


def separator_of(first_line: str) -> str:
    """Return which separator the headings use the most."""
    bare = re.sub(r'"[^"]*"', "", first_line)
    return max(SEPARATORS, key=bare.count)


def _is_quoted(source: str) -> bool:
    return len(source) > 1 and source[0] == source[-1] == '"'


def said(source: str) -> str:
    """Return what a cell says."""
    return source[1:-1].replace('""', '"') if _is_quoted(source) else source
