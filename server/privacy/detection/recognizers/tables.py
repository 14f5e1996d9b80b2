"""Tables with a heading, and fields in XML and HTML.

CSV with any separator, TSV, Markdown, INSERT statements, and tables as programs print them: those of `psql` and
`mysql`, the boxes of polars and DuckDB, and the aligned columns of pandas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from ..findings import SURE_THING, THING, Finding, PiiType
from ..keys import is_label, is_sentence
from .keyed_values import field

_SEPARATORS = ("|", "\t", ";", ",")
_HEADING_CELL = re.compile(r"[^\W\d][\w .,()/#'’&°№-]{0,40}|[№〒][\w .]{0,24}")
_NO_HEADING = re.compile(r"[{}=\[\]<>]|://|, [a-z]+ [a-z]+ [a-z]+")
_RULE = re.compile(r"[\s|:+=-]{1,2000}")
_LONGEST_HEADING = _LONGEST_LINE = 2000
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
_BOX = str.maketrans(
    {**dict.fromkeys("│┆┃║", "|"), **dict.fromkeys("─━═┄╌", "-"), **dict.fromkeys("┌┐└┘├┤┬┴┼╞╪╡╭╮╰╯╔╗╚╝╠╣╦╩╬", "+")}
)
"""The lines of a box, as characters of which tables in ASCII are made."""
_GAP = re.compile(r" {2,}")
_WRAPPED = re.compile(r" {1,4}\\?\Z")
_LEFT_OUT = "..."
"""Stands in a heading for columns that are not shown."""
_SERIES = re.compile(r"Name: (.{1,60}), (?:Length: \d{1,12}, )?dtype: ")
_LABELLED = re.compile(r"\S.{0,200}? {4,}(?=\S)| {4,}(?=\S)")
_SERIES_LINES_MAX = 1000
_Span = tuple[int, int]


def columns(text: str, headings: Sequence[str], cells: Sequence[_Span]) -> Iterator[Finding]:
    """Yield the cells of one row that the headings above them make personal."""
    for heading, (start, end) in zip(headings, cells, strict=False):
        yield from field(text, (heading,), start, end)


def tables(text: str) -> Iterator[Finding]:
    """Yield the cells that their headings make personal."""
    if not text.isascii():
        text = text.translate(_BOX)
    rows = list(_lines(text))
    yield from _aligned(text, rows)
    yield from _series(text, rows)
    fields = {row: cells for row, *cells in _fields(text, rows)}
    for label, value in fields.values():
        yield from _field(text, label, value)
    index = 0
    while index < len(rows) - 1:
        found = None if rows[index] in fields else _heading(text, rows, index)
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


def _fields(text: str, rows: Sequence[_Span]) -> Iterator[tuple[_Span, _Span, _Span]]:
    """Yield the rows, with their label and value, of tables with a field in each row: `| City | Ulm |`."""
    block: list[tuple[_Span, _Span, _Span]] = []
    separator, labels = "", 0
    for start, end in (*rows, (len(text), len(text))):
        found, cells = _two_cells(text, start, end)
        if not found and block and _RULE.fullmatch(text, start, end):
            continue
        if block and found != separator:
            if labels >= _FEWEST_CELLS:
                yield from block
            block, labels = [], 0
        if found:
            separator = found
            label, value = cells
            block.append(((start, end), label, value))
            labels += is_label(text[slice(*label)])


def _two_cells(text: str, start: int, end: int) -> tuple[str, list[_Span]]:
    """Return what separates the two cells of a row, the first of which may be a label, and these; of others nothing."""
    if end - start > _LONGEST_LINE:
        return "", []
    for separator in _SEPARATORS:
        if 1 <= text.count(separator, start, end) <= (1 if separator != "|" else _MOST_BARS):
            cells = _filled(text, start, end, separator)
            if len(cells) != _FEWEST_CELLS or not _HEADING_CELL.fullmatch(text, *cells[0]):
                return "", []
            return ("", []) if separator in ",;" and _NO_HEADING.search(text, start, end) else (separator, cells)
    return "", []


def _filled(text: str, start: int, end: int, separator: str) -> list[_Span]:
    """Return the spans of the cells that are not empty, without the space around them."""
    cells = ((a, b, text[a:b].strip()) for a, b in _cells(text, start, end, separator))
    return [(at, at + len(said)) for a, b, said in cells if said for at in (text.index(said, a, b),)]


def _field(text: str, label: _Span, value: _Span) -> Iterator[Finding]:
    """Yield the value that its label makes personal, unless it is a heading or describes the field; and the label."""
    if is_label(text[slice(*label)]):
        yield Finding(*label, THING, SURE_THING)
    for found in field(text, (text[slice(*label)],), *value):
        said = text[found.start : found.end]
        is_heading = found.type is PiiType.PERSON and is_label(said)
        if not is_heading and not (found.type in _IN_WORDS and is_sentence(said)):
            yield found


_MOST_BARS = 3
_IN_WORDS = frozenset((PiiType.PERSON, PiiType.LOCATION, PiiType.ADDRESS))


def _aligned(text: str, rows: Sequence[_Span]) -> Iterator[Finding]:
    """Yield what headings say of columns that end where these end, as pandas prints a table; of its index, too."""
    headings: list[tuple[str, int]] = []
    index_name = ""
    for start, end in rows:
        raw = text[start:end]
        line = _WRAPPED.sub("", raw)
        if len(line) > _LONGEST_LINE:
            headings = []
        elif headings and _is_row(line, headings):
            yield from _row(text, start, line, headings, index_name)
        elif (
            headings
            and not index_name
            and len(raw) >= headings[-1][1]
            and line[:1].strip()
            and not _GAP.search(raw.strip())
        ):
            index_name = raw.strip()
        elif not headings or line.strip(". "):  # points stand for the rows between head and tail
            headings, index_name = _ended_columns(line), ""


def _is_row(line: str, headings: Sequence[tuple[str, int]]) -> bool:
    return len(line) == headings[-1][1] and all(
        line[right - 1] != " " and line[right : right + 1] in {"", " "} for _, right in headings
    )


def _row(text: str, start: int, line: str, headings: Sequence[tuple[str, int]], index_name: str) -> Iterator[Finding]:
    first = line[: headings[0][1]]
    gaps = list(_GAP.finditer(first))
    left = gaps[-1].end() if gaps else first.rfind(" ") + 1
    label = first[: gaps[-1].start() if gaps else left].strip()
    if label and index_name:
        at = start + line.find(label)
        yield from field(text, (index_name,), at, at + len(label))
    for heading, right in headings:
        # Of a table on its side each row has a heading.
        yield from field(text, (label if heading.isdecimal() else heading,), start + left, start + right)
        left = right


def _ended_columns(line: str) -> list[tuple[str, int]]:
    """Return the headings in a line, each with the place where it and its column end."""
    found: list[tuple[str, int]] = []
    at = 0
    for heading in _GAP.split(line.strip()):
        if _HEADING_CELL.fullmatch(heading) is None and not heading.isdecimal() and heading != _LEFT_OUT:
            return []
        at = line.find(heading, at) + len(heading)
        found.append((heading, at))
    return found if line.startswith(" ") or len(found) >= _FEWEST_CELLS else []


def _series(text: str, rows: Sequence[_Span]) -> Iterator[Finding]:
    """Yield what the name of a column says that pandas prints below it, and that of its index above it."""
    begin = 0  # behind the column before: so no line is looked at twice
    for number, (start, end) in enumerate(rows):
        named = _SERIES.match(text, start, end)
        if named is None:
            continue
        labels: list[_Span] = []
        first, begin = max(begin, number - _SERIES_LINES_MAX), number + 1
        for left, right in reversed(rows[first:number]):
            value = _LABELLED.match(text, left, right)
            if value is None and text[left:right].strip(". "):
                for label in labels:
                    yield from field(text, (text[left:right],), *label)
                break
            if value is not None:
                labels.append((left, value.end()))
                heading = text[left : value.end()].strip() if named[1].isdecimal() else named[1]
                yield from field(text, (heading,), value.end(), right)


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


_NAME = r"[A-Za-z_][\w:.-]{0,60}"
_ELEMENT = re.compile(rf"<({_NAME})(?:\s[^<>]{{0,400}})?>([^<>]{{1,600}})</(?=\1\s?>)")
_CDATA = re.compile(rf"<({_NAME})(?:\s[^<>]{{0,400}})?>\s{{0,20}}<!\[CDATA\[([^\]<]{{1,600}})\]\]>")
_ATTRIBUTE = re.compile(rf"(?<=\s)({_NAME})=(\"[^\"<>]{{1,600}}\"|'[^'<>]{{1,600}}')")
_TAG = re.compile(r"<[A-Za-z][^<>]{0,800}>")
_NAMED = re.compile(rf"\s(?:name|id|key|property|itemprop|field|for)=[\"']({_NAME})[\"']")
_VALUE = re.compile(r"\s(?:value|content)=(\"[^\"<>]{1,600}\"|'[^'<>]{1,600}')")
# <th>Phone</th><td>…</td>, <dt>Phone</dt><dd>…</dd>, <label>Phone</label><span>…</span>, <key>phone</key><string>…</string>
_HEADED = re.compile(
    r"<(?:th|dt|td|label|b|strong|key|span|div|h\d)(?:\s[^<>]{0,200})?>\s{0,20}((?:[^\W\d_]|[№〒])[^<>:]{0,48}):?\s{0,20}</\w{1,8}>:?\s{0,40}"
    r"(?:<(?:td|dd|span|string|div|p|integer|a|code)(?:\s[^<>]{0,200})?>){1,2}([^<>]{1,600})</"
)
_HEADED_BARE = re.compile(
    r"<(?:b|strong|th|em)>\s{0,8}([^\W\d_][^<>:]{0,48}):?\s{0,8}</\w{1,8}>:?[ ]{0,8}([^<>\n]{1,200})"
)
_ROW = re.compile(r"<tr\b[^<>]{0,200}>")
_CELL = re.compile(r"<(t[hd])\b[^<>]{0,200}>(?:<[a-z][^<>]{0,200}>){0,3}([^<>]{0,600})")


def markup(text: str) -> Iterator[Finding]:
    """Yield the values that the names of elements, attributes and headings make personal."""
    if "<" not in text or ">" not in text:
        return
    for pattern in (_ELEMENT, _CDATA):
        for match in pattern.finditer(text):
            yield from field(text, (match[1].rpartition(":")[2],), *match.span(2))
    for tag in _TAG.finditer(text):
        for match in _ATTRIBUTE.finditer(text, *tag.span()):
            yield from field(text, (match[1].rpartition(":")[2],), *match.span(2))
        name, value = _NAMED.search(tag[0]), _VALUE.search(tag[0])
        if name and value:
            yield from field(text, (name[1],), tag.start() + value.start(1), tag.start() + value.end(1))
        if name and not tag[0].endswith("/>"):
            end = text.find("<", tag.end(), tag.end() + 600)
            if end > tag.end():
                yield from field(text, (name[1],), tag.end(), end)
    for pattern in (_HEADED, _HEADED_BARE):
        for match in pattern.finditer(text):
            yield from field(text, (match[1],), *match.span(2))
    yield from _rows(text)


def _rows(text: str) -> Iterator[Finding]:
    starts = [row.end() for row in _ROW.finditer(text)]
    headings: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        cells = list(_CELL.finditer(text, start, min(end, start + 100_000)))
        if cells and all(cell[1] == "th" for cell in cells):
            headings = [cell[2] for cell in cells]
            for cell in cells:
                yield Finding(*cell.span(2), THING, SURE_THING)
        elif headings and len(cells) == len(headings):
            yield from columns(text, headings, [cell.span(2) for cell in cells])
