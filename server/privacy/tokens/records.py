"""Which values stand together in one record, such as a row or an object of JSON, and so tell of one person."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ...base.host_work import checked
from ..token_texts import TOKEN
from .notations import Leaf, LeafKind
from .sheets import Sheet

Path: TypeAlias = tuple[str, ...]
VALUES_MAX = 64
"""Values of one record that are linked."""
_FIELD_CHARS_MAX = 200
"""A text that is longer than this, or has several lines, tells of more than one record."""
_BETWEEN = re.compile(r"[^\n]{0,60}?[,;\t|=:<({\"'][^\n]{0,60}?")
"""What stands between two values of one row in a text: a mark that parts them, and not much more."""


def records_in(sheets: Sequence[Sheet]) -> list[tuple[str, ...]]:
    """Return the tokens that stand together, of sheets whose values have their tokens."""
    found: dict[tuple[str, ...], None] = {}
    for sheet in sheets:
        for tokens in (*_of_objects(sheet), *_of_lines(sheet)):
            some = tuple(sorted(dict.fromkeys(tokens)))[:VALUES_MAX]
            if len(some) > 1:
                found[some] = None
    return list(found)


def records_of_lines(text: str) -> list[tuple[str, ...]]:
    """Return the tokens that stand together in a line of a table, or of lines of JSON, that has its tokens."""
    found: dict[tuple[str, ...], None] = {}
    for line in checked(text.split("\n")):
        some = tuple(sorted({match[0] for match in TOKEN.finditer(line)}))[:VALUES_MAX] if "[" in line else ()
        if len(some) > 1:
            found[some] = None
    return list(found)


def _of_objects(sheet: Sheet) -> Iterator[list[str]]:
    fields = [
        (position, leaf)
        for position, leaf in enumerate(sheet.leaves)
        if sheet.spans[position] and leaf.path and leaf.kind is not LeafKind.KEY and _is_field(leaf)
    ]
    holders = {_holder(leaf.path) for _, leaf in fields}
    records: dict[Path, list[str]] = defaultdict(list)
    for position, leaf in checked(fields):
        record = _holder(leaf.path)
        while record and not record[-1].isdecimal() and record[:-1] in holders:
            record = record[:-1]  # an object within that of a person, such as an address
        records[record] += (sheet.token_of(position, span) for span in sheet.spans[position])
    yield from records.values()


def _holder(path: Path) -> Path:
    """Return the path of the object, or of the row, that holds a leaf, be it in a list of the object."""
    return path[:-2] if len(path) > 1 and path[-1].isdecimal() and not path[-2].isdecimal() else path[:-1]


def _is_field(leaf: Leaf) -> bool:
    return len(leaf.text) <= _FIELD_CHARS_MAX and "\n" not in leaf.text


def _of_lines(sheet: Sheet) -> Iterator[list[str]]:
    for position, leaf in checked(enumerate(sheet.leaves)):
        spans = sheet.spans[position]
        if len(spans) < 2 or (leaf.path and _is_field(leaf)):  # noqa: PLR2004 - a record has two values
            continue
        row: list[str] = []
        end = -1
        for span in spans:
            if row and not _BETWEEN.fullmatch(leaf.text, end, span.start):
                yield row
                row = []
            row.append(sheet.token_of(position, span))
            end = span.end
        yield row
