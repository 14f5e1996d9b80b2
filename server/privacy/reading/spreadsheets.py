"""The rows of a spreadsheet of Excel, under the headings of their columns (ECMA-376, part 1, 18.3 and 18.4).

A security boundary: the files come from anywhere. Their XML is cut at the ends of its elements and not parsed, so no
entity is expanded, and time is linear whatever stands in it. What is no spreadsheet after all gives no rows.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from ....sandbox.job import Json

WORKBOOK = "xl/workbook.xml"
STRINGS = "xl/sharedStrings.xml"
SHEETS = "xl/worksheets/"
_TEXT = re.compile(r"<(?:\w+:)?t(?:\s[^<>]*)?>([^<]*)<")
_VALUE = re.compile(r"<(?:\w+:)?v(?:\s[^<>]*)?>([^<]*)<")
_CELL = re.compile(r"<(?:\w+:)?c\s([^<>]*)>")
_PLACE = re.compile(r'\br="([A-Z]{1,3})\d+"')
_KIND = re.compile(r'\bt="(\w+)"')
_ROWS = 2_000


def shared_strings(xml: str) -> list[str]:
    """Return the texts that cells name by their numbers."""
    return [_texts(each) for each in re.split(r"</(?:\w+:)?si>", xml)[:-1]]


def rows(xml: str, strings: Sequence[str]) -> Iterator[Json]:
    """Give the rows of a sheet, some at a time: each as an object by the texts of the first."""
    headings: dict[str, str] = {}
    some: list[dict[str, str]] = []
    for number, row in enumerate(re.split(r"</(?:\w+:)?row>", xml)[:-1]):
        cells = dict(_cells(row, strings))
        if number == 0:
            headings = cells
            yield list(cells.values())
            continue
        some.append({headings.get(column) or column: text for column, text in cells.items()})
        if len(some) == _ROWS:
            yield some
            some = []
    if some:
        yield some


def _cells(row: str, strings: Sequence[str]) -> Iterator[tuple[str, str]]:
    for cell in re.split(r"</(?:\w+:)?c>", row)[:-1]:
        starts = list(_CELL.finditer(cell))  # empty ones have no end of their own
        if not starts or (place := _PLACE.search(starts[-1][1])) is None:
            continue
        kind, inner = _KIND.search(starts[-1][1]), cell[starts[-1].end() :]
        value = _VALUE.search(inner)
        if value is None:
            text = _texts(inner)
        elif kind is not None and kind[1] == "s":
            named = value[1].strip()
            text = strings[int(named)] if named.isdecimal() and int(named) < len(strings) else ""
        else:
            text = html.unescape(value[1])
        if text:
            yield place[1], text


def _texts(xml: str) -> str:
    return html.unescape("".join(_TEXT.findall(xml)))
