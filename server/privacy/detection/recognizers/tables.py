"""Tables with a heading: CSV with any separator, TSV, Markdown, what `psql` and `mysql` print, INSERT statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from ..findings import Finding
from .keyed_values import field

_SEPARATORS = ("|", "\t", ";", ",")
_HEADING_CELL = re.compile(r"[^\W\d][\w .,()/#'’&°№-]{0,40}|[№〒][\w .]{0,24}")
_NO_HEADING = re.compile(r"[{}=\[\]<>]|://|, [a-z]+ [a-z]+ [a-z]+")
_RULE = re.compile(r"[\s|:+=-]{1,2000}")
_LONGEST_HEADING = 2000
_FEWEST_CELLS = 2
_INSERT = re.compile(
    r"(?i)\b(?:insert|replace)\s{1,20}(?:ignore\s{1,20})?into\s{1,20}[\w.\"`\[\]]{1,120}\s{0,20}\(([^()]{1,2000})\)\s{0,20}values\b"
)
_COPY = re.compile(
    r"(?i)\bcopy\s{1,20}[\w.\"]{1,120}\s{0,20}\(([^()]{1,2000})\)\s{1,20}from\s{1,20}stdin[^\n]{0,200}\n"
)
_SQL_VALUE = re.compile(
    r"[ \t\r\n]{0,40}(?:[NEB]?('(?:[^'\\]|''|\\.){0,4000}')|([^\s,()'][^,()']{0,400}))\s{0,40}(?=[,)])"
)
_Span = tuple[int, int]


def columns(text: str, headings: Sequence[str], cells: Sequence[_Span]) -> Iterator[Finding]:
    """Yield the cells of one row that the headings above them make personal."""
    for heading, (start, end) in zip(headings, cells, strict=False):
        yield from field(text, (heading,), start, end)


def tables(text: str) -> Iterator[Finding]:
    """Yield the cells that their headings make personal."""
    rows = list(_lines(text))
    index = 0
    while index < len(rows) - 1:
        found = _heading(text, rows, index)
        if found is None:
            index += 1
            continue
        separator, headings = found
        index += 1
        while index < len(rows):
            start, end = rows[index]
            line = text[start:end]
            if _RULE.fullmatch(line):
                index += 1
                continue
            cells = list(islice(_cells(text, start, end, separator), len(headings) + 1))
            if not line.strip() or len(cells) < len(headings):
                break
            yield from columns(text, headings, cells)
            index += 1


def _lines(text: str) -> Iterator[_Span]:
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _heading(text: str, rows: Sequence[_Span], index: int) -> tuple[str, list[str]] | None:
    start, end = rows[index]
    if end - start > _LONGEST_HEADING:
        return None
    line = text[start:end]
    following = text[slice(*rows[index + 1])]
    for separator in _SEPARATORS:
        if line.count(separator) < _FEWEST_CELLS - 1 or following.count(separator) < line.count(separator) * (
            separator != "|"
        ):
            continue
        if separator in ",;" and _NO_HEADING.search(line):
            continue
        if separator == "|" and following.count("|") != line.count("|") and not _RULE.fullmatch(following):
            continue
        cells = [text[a:b].strip().strip("\"'`*") for a, b in _cells(text, start, end, separator)]
        named = [cell for cell in cells if cell]
        wanted = max(_FEWEST_CELLS, len(named) - 1)
        if sum(_HEADING_CELL.fullmatch(cell) is not None for cell in named) >= wanted and len(set(named)) == len(named):
            return separator, cells
    return None


def _cells(text: str, start: int, end: int, separator: str) -> Iterator[_Span]:
    """Yield the spans between separators; in quotes a separator is text (RFC 4180)."""
    cell = at = start
    while at < end:
        character = text[at]
        if character == '"' and separator in ",;\t" and not text[cell:at].strip():
            closing = text.find('"', at + 1, end)
            while closing >= 0 and text.startswith('"', closing + 1):
                closing = text.find('"', closing + 2, end)
            at = closing + 1 if closing >= 0 else at + 1
            continue
        if character == separator:
            yield cell, at
            cell = at + 1
            at = cell
            continue
        following = text.find(separator, at, end)
        at = following if following >= 0 else end
    yield cell, end


def sql_rows(text: str) -> Iterator[Finding]:
    """Yield the values of INSERT and COPY statements that the columns they go to make personal."""
    done = 0
    for insert in _INSERT.finditer(text):
        if insert.start() < done:
            continue
        headings = [name.strip(' "`\n\t[]') for name in insert[1].split(",")]
        at = insert.end()
        while row := _ROW_OPENS.match(text, at):
            at = row.end()
            cells: list[_Span] = []
            while value := _SQL_VALUE.match(text, at):
                cells.append(value.span(1) if value[1] is not None else value.span(2))
                at = value.end()
                if text[at] == ")":
                    break
                at += 1
            yield from columns(text, headings, cells)
            close = text.find(")", at, at + 4000)
            if close < 0:
                break
            at = close + 1
        done = at
    for copy in _COPY.finditer(text):
        if copy.start() < done:
            continue
        headings = [name.strip(' "') for name in copy[1].split(",")]
        for start, end in _lines_from(text, copy.end()):
            cells = list(islice(_cells(text, start, end, "\t"), len(headings) + 1))
            if text.startswith("\\.", start) or len(cells) != len(headings):
                break
            yield from columns(text, headings, cells)
            done = end


_ROW_OPENS = re.compile(r"[\s,]{0,400}\(")


def _lines_from(text: str, start: int) -> Iterator[_Span]:
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1
