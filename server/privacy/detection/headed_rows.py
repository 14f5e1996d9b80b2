"""Rows of values whose keys stand apart: `{"columns": ["name", "mail"], "rows": [["Jane", "…"], …]}`.

So databases and spreadsheets answer: the heading of a column may be a text, an object with a name, or the first row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .scripts import readable

_COLUMNS = frozenset(("columns", "column_names", "columnnames", "headers", "header", "fields", "cols", "schema"))
_ROWS = frozenset(("rows", "values", "data", "records", "results", "items"))
_NAMES = frozenset(("name", "label", "title", "field", "columnname", "column_name"))
_HEADING = re.compile(r"[^\W\d][\w .()/#'-]{0,40}")
_FEWEST_COLUMNS = 2
_Path = tuple[str, ...]


def headed(leaves: Sequence[tuple[_Path, str]]) -> list[_Path]:
    """Return the path of each leaf, with the heading of its column in place of its number where it stands in a row."""
    named: dict[_Path, dict[str, str]] = {}
    first_rows: dict[_Path, dict[str, str]] = {}
    for path, text in leaves:
        if len(path) >= _FEWEST_COLUMNS and path[-1].isdecimal() and path[-2].lower() in _COLUMNS:
            named.setdefault(path[:-2], {})[path[-1]] = text
        elif path[-3:-2] and path[-3].lower() in _COLUMNS and path[-2].isdecimal() and path[-1].lower() in _NAMES:
            named.setdefault(path[:-3], {})[path[-2]] = text
        elif path[-2:-1] == ("0",) and path[-1].isdecimal():
            first_rows.setdefault(path[:-2], {})[path[-1]] = text
    tables = {
        path: row
        for path, row in first_rows.items()
        if len(row) >= _FEWEST_COLUMNS and all(_HEADING.fullmatch(readable(name)) for name in row.values())
    }
    if not named and not tables:
        return [path for path, _ in leaves]
    return [_with_heading(path, named, tables) for path, _ in leaves]


def _with_heading(path: _Path, named: dict[_Path, dict[str, str]], tables: dict[_Path, dict[str, str]]) -> _Path:
    if len(path) < _FEWEST_COLUMNS or not (path[-1].isdecimal() and path[-2].isdecimal()):
        return path
    rows = path[:-2]
    headings = named.get(rows[:-1]) if rows and rows[-1].lower() in _ROWS else None
    if headings is None and path[-2] != "0":
        headings = tables.get(rows)
    heading = headings.get(path[-1]) if headings else None
    return (*rows, heading) if heading else path
