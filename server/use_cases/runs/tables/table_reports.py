"""How a report describes the tables and arrays that a run shows: what they are, and where the whole of one lies."""

from __future__ import annotations

from typing import Final, NotRequired, cast

from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from .....sandbox.job import Column, Table

_COLUMNS_IN_TEXT: Final = 30
_MATRIX: Final = 2


class ColumnReport(TypedDict):
    """A column of a table: its type as its library names it, and how many of its values are missing, if any are."""

    name: str
    dtype: str
    nulls: NotRequired[int]


class TableReport(TypedDict):
    """A table or an array that stands at `name` of the report, such as `result` or `result.top`.

    `shape` counts its rows, and its columns without those of the `index`. `shown` of its rows stand in the report:
    where that is not all, `file` is where the whole lies in the workspace and `read_with` reads it, or `not_kept` says
    why it does not.
    """

    name: str
    kind: str
    shape: list[int]
    shown: int
    columns: list[ColumnReport]
    index: NotRequired[list[str]]
    columns_left_out: NotRequired[int]
    file: NotRequired[str]
    read_with: NotRequired[str]
    not_kept: NotRequired[str]


def table_report(table: Table) -> TableReport:
    """Return what a report says of a table."""
    report = TableReport(
        name=table.place,
        kind=table.kind,
        shape=list(table.shape),
        shown=table.shown,
        columns=[_column(each) for each in table.columns],
    )
    more = {
        "index": [each.name for each in table.columns if each.is_index],
        "columns_left_out": table.columns_left_out,
        "file": table.file,
        "read_with": table.read_with,
        "not_kept": table.why_not_kept,
    }
    report |= cast("TableReport", {key: value for key, value in more.items() if value})
    return report


def table_line(table: TableReport) -> str:
    """Describe a table in one line: kind and shape, columns with their types and missing values, and its file."""
    shape = " x ".join(map(str, table["shape"]))
    if len(table["shape"]) == _MATRIX:
        rows, columns = table["shape"]
        shape = f"{rows} row{'' if rows == 1 else 's'} x {columns} column{'' if columns == 1 else 's'}"
    index = set(table.get("index", ()))
    named = [_said(each, is_index=each["name"] in index) for each in table["columns"][:_COLUMNS_IN_TEXT]]
    more = len(table["columns"]) - len(named) + table.get("columns_left_out", 0)
    columns_said = ", ".join([*named, *([f"{more} more"] if more else [])])
    return f"{table['name']}: {table['kind']}, {shape}: {columns_said}{_whole(table)}"


def _whole(table: TableReport) -> str:
    if "file" in table:
        return f"; all of it is in {table['file']}: {table.get('read_with', '')}"
    return f"; the whole is not kept: {table['not_kept']}" if "not_kept" in table else ""


def _column(column: Column) -> ColumnReport:
    report = ColumnReport(name=column.name, dtype=column.dtype)
    if column.nulls:
        report["nulls"] = column.nulls
    return report


def _said(column: ColumnReport, *, is_index: bool) -> str:
    marks = [*(["index"] if is_index else []), *([f"{column['nulls']} null"] if "nulls" in column else [])]
    marked = f" ({', '.join(marks)})" if marks else ""
    return f"{column['name']} {column['dtype']}{marked}"
