"""The tables of pandas, polars, Arrow and DuckDB as one kind of thing: columns, rows, and a file of them.

One that is too large to show becomes a file of the workspace, which code reads by its name. No library is imported
here: a value of theirs exists only where the code imported it.
"""

from __future__ import annotations

import base64
import importlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, Protocol, cast

from ..guest.guest import GUEST
from ..guest_api.keeping import keep
from ..job import Column, Json
from .reads.reported_reads import WORKSPACE

FOLDER: Final = "tables"
"""The folder of the workspace that these files are in."""
BYTES_MAX: Final = 512 * 1024 * 1024
"""Of a table that takes more memory no file is tried: what a run may send home at once is far smaller."""
_SLICE: Final = 3 * 1024 * 1024
"""Bytes in one call: as base64 below `frames.CALL_BYTES_MAX`."""

Write = Callable[[Any], object]
Form = tuple[str, Write | None, str]
"""The ending of a file, what writes a table to it, and the expression that reads it, with `{path}` in it."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of the workspace, and the expression that reads it in full Python."""

    name: str
    read_with: str


def kept_as(stem: str, *forms: Form, by_path: Callable[[str], object] | None = None) -> TableFile:
    """Write a table in the first of these forms that can hold it, and return where it is.

    With `by_path` it is written to a path in the scratch directory first. Raises what the last form raised, and what
    the host says, such as that the quota is used up.
    """
    for number, (ending, write, read_with) in enumerate(forms, 1):
        name = f"{FOLDER}/{stem}-{os.urandom(4).hex()}.{ending}"
        table_file = TableFile(name, read_with.format(path=repr(f"{WORKSPACE}/{name}")))
        if write is None or by_path is not None:
            _by_path(name, cast("Callable[[str], object]", by_path))
            return table_file
        sent = _Sent(name)
        try:
            write(sent)
            sent.finish()
        except Exception:
            if number == len(forms) or sent.is_refused:
                raise
        else:
            return table_file
    raise AssertionError("there is always a form")


def _by_path(name: str, write: Callable[[str], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table")
        write(path)
        keep(path, name)


class _Sent(io.RawIOBase):
    """A file that is only written, whose bytes go to the host as they come; it is there once it is finished."""

    mode = "wb"

    def __init__(self, name: str) -> None:
        self._name = name
        self._held = bytearray()
        self._written = 0
        self.is_refused = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any, /) -> int:
        given = data.encode() if isinstance(data, str) else memoryview(data).cast("B")
        self._held += given
        self._written += len(given)
        while len(self._held) > _SLICE:
            self._send(bytes(self._held[:_SLICE]), last=False)
            del self._held[:_SLICE]
        return len(given)

    def close(self) -> None:
        """Leave it open: a library that closes what it has written does not know whether that is all."""

    def finish(self) -> None:
        """Send what is left. Raises what the host says."""
        self._send(bytes(self._held), last=True)

    def _send(self, content: bytes, *, last: bool) -> None:
        arguments: Mapping[str, Json] = {
            "filename": self._name,
            "content": base64.b64encode(content).decode("ascii"),
            "last": int(last),
        }
        try:
            GUEST.call_host("keep", arguments)
        except Exception:
            self.is_refused = True
            raise


NULLS_COUNTED_MAX: Final = 200_000_000
"""Members of a table in which missing ones are counted."""
_NAME_CHARS_MAX: Final = 200

Rows = Sequence[Sequence[object]]


class Shown(Protocol):
    """A table as it can be shown; it has an index where that says more than the number of the row."""

    kind: str
    rows: int

    @property
    def columns(self) -> Sequence[Column]:
        """Its columns, those of the index first."""
        ...

    def part(self, start: int, stop: int, columns: int) -> Rows:
        """Return some rows, each with its first `columns` values; a missing value is None."""
        ...

    def size(self) -> int:
        """Return about how many bytes it takes."""
        ...

    def keep(self, stem: str) -> TableFile:
        """Write it to a file of the workspace. Raises what a library raises, and what the host says."""
        ...


def table_of(value: object) -> Shown | None:
    """Return a value as a table, or None where it is none. Raises what a library raises."""
    for library, made in _MADE_BY.items():
        module = sys.modules.get(library)
        if module is not None and (shown := made(module, value)) is not None:
            return shown
    return None


def measured(value: Any) -> tuple[int, str] | None:
    """Return about how many bytes a table or an array takes and its extent in words, or None for any other value.

    Raises what a library raises.
    """
    numpy, pandas, polars, arrow = map(sys.modules.get, ("numpy", "pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return int(value.memory_usage().sum()), f"{len(value):,} rows x {len(value.columns):,} columns"
    if pandas is not None and isinstance(value, pandas.Series | pandas.Index):
        return int(value.memory_usage()), f"{len(value):,} values"
    if polars is not None and isinstance(value, polars.DataFrame):
        return int(value.estimated_size()), f"{value.height:,} rows x {value.width:,} columns"
    if polars is not None and isinstance(value, polars.Series):
        return int(value.estimated_size()), f"{len(value):,} values"
    if arrow is not None and isinstance(value, arrow.Table | arrow.RecordBatch):
        return int(value.nbytes), f"{value.num_rows:,} rows x {value.num_columns:,} columns"
    if numpy is not None and isinstance(value, numpy.ndarray):
        return int(value.nbytes), f"{' x '.join(map(str, value.shape))} {value.dtype}"
    return None


def unique(names: Sequence[object]) -> list[str]:
    """Return names of columns as texts, each only once; the levels of one are joined by dots."""
    taken: set[str] = set()
    unique_names: list[str] = []
    for name in names:
        parts = [str(each) for each in name if str(each)] if isinstance(name, tuple) else [str(name)]
        text = said = ".".join(parts)[:_NAME_CHARS_MAX]
        number = 2
        while said in taken:
            ending = f"_{number}"
            said, number = f"{text[: _NAME_CHARS_MAX - len(ending)]}{ending}", number + 1
        taken.add(said)
        unique_names.append(said)
    return unique_names


def records(shown: Shown, start: int, stop: int, columns: int) -> list[dict[str, object]]:
    """Return some rows as objects."""
    names = [each.name for each in shown.columns[:columns]]
    return [dict(zip(names, row, strict=True)) for row in shown.part(start, stop, columns)]


def _pandas(pandas: ModuleType, value: Any) -> Shown | None:
    if isinstance(value, pandas.DataFrame):
        return _Pandas(pandas, value, "pandas.DataFrame")
    if isinstance(value, pandas.Series):
        name = "value" if value.name is None else value.name
        return _Pandas(pandas, value.to_frame(name), "pandas.Series")
    return None


class _Pandas:
    """A DataFrame; a Series is one of one column."""

    def __init__(self, pandas: ModuleType, frame: Any, kind: str) -> None:
        self._pandas = pandas
        self._frame = frame
        self.kind = kind
        self.rows = len(frame)
        self._levels = 0 if self._counts_rows() else frame.index.nlevels
        names = unique([*self._index_names(), *frame.columns])
        counted = self.rows * (len(frame.columns) + self._levels) <= NULLS_COUNTED_MAX
        self.columns: Sequence[Column] = [
            Column(
                name,
                str(each.dtype)[:_NAME_CHARS_MAX],
                int(each.isna().sum()) if counted else None,
                is_index=number < self._levels,
            )
            for number, (name, each) in enumerate(zip(names, self._columns(frame), strict=True))
        ]

    def part(self, start: int, stop: int, columns: int) -> Rows:
        taken = [self._plain(each) for each in self._columns(self._frame.iloc[start:stop], columns)]
        return list(zip(*taken, strict=True)) if taken else [()] * (min(stop, self.rows) - start)

    def size(self) -> int:
        return int(self._frame.memory_usage(index=True, deep=False).sum())

    def keep(self, stem: str) -> TableFile:
        frame, written = self._frame, self._frame
        levels = [None if name is None else str(name) for name in frame.index.names] if self._levels else []
        if frame.columns.nlevels > 1 or any(type(name) is not str for name in frame.columns):
            written = frame.copy(deep=False)
            written.columns = [each.name for each in self.columns[self._levels :]]
        dates = [each.name for each in self.columns[self._levels :] if each.dtype.startswith("datetime64")]

        def as_parquet(file: Any) -> None:
            written.to_parquet(file, index=bool(levels) or None)

        def as_csv(file: Any) -> None:
            written.to_csv(file, index=bool(levels))

        by_csv = ", index_col=0" if len(levels) == 1 else f", index_col={list(range(len(levels)))}" if levels else ""
        by_csv += f", parse_dates={dates}" if dates else ""
        return kept_as(
            stem,
            ("parquet", as_parquet, "pd.read_parquet({path})"),
            ("csv", as_csv, f"pd.read_csv({{path}}{by_csv})"),
        )

    def _counts_rows(self) -> bool:
        index = self._frame.index
        if list(index.names) != [None]:
            return False
        if isinstance(index, self._pandas.RangeIndex):
            return bool(index.start == 0 and index.step == 1)
        return bool(index.dtype.kind in "iu" and (index == range(self.rows)).all()) if self.rows else True

    def _index_names(self) -> Iterator[object]:
        names = list(self._frame.index.names)[: self._levels]
        taken = {str(column) for column in self._frame.columns}
        for number, name in enumerate(names):
            said = str(name) if name is not None else "index" if len(names) == 1 else f"index_{number}"
            while said in taken:
                said += "_"
            taken.add(said)
            yield said

    def _columns(self, frame: Any, most: int | None = None) -> Iterator[Any]:
        for level in range(self._levels)[:most]:
            yield frame.index.get_level_values(level)
        left = None if most is None else max(0, most - self._levels)
        for number in range(frame.shape[1])[:left]:
            yield frame.iloc[:, number]

    def _plain(self, column: Any) -> list[object]:
        missing = column.isna()
        if not missing.any():
            return list(column.tolist())
        return [None if is_missing else each for each, is_missing in zip(column.tolist(), missing, strict=True)]


def _polars(polars: ModuleType, value: Any) -> Shown | None:
    if isinstance(value, polars.DataFrame):
        return _Polars(value, "polars.DataFrame")
    if isinstance(value, polars.Series):
        return _Polars(value.to_frame(value.name or "value"), "polars.Series")
    return None


class _Polars:
    """A DataFrame of polars, which has no index."""

    def __init__(self, frame: Any, kind: str) -> None:
        self._frame = frame
        self.kind = kind
        self.rows = frame.height
        self.columns: Sequence[Column] = [
            Column(name, str(dtype)[:_NAME_CHARS_MAX], int(column.null_count()))
            for name, dtype, column in zip(unique(frame.columns), frame.dtypes, frame.get_columns(), strict=True)
        ]

    def part(self, start: int, stop: int, columns: int) -> Rows:
        return list(self._frame[:, :columns].slice(start, stop - start).rows())

    def size(self) -> int:
        return int(self._frame.estimated_size())

    def keep(self, stem: str) -> TableFile:
        return kept_as(stem, ("parquet", self._frame.write_parquet, "pl.read_parquet({path})"))


def _arrow(arrow: ModuleType, value: Any) -> Shown | None:
    if isinstance(value, arrow.RecordBatchReader):
        return None  # it can be read only once, by the code
    if isinstance(value, arrow.Table | arrow.RecordBatch):
        return _Arrow(arrow, value, f"pyarrow.{type(value).__name__}")
    if isinstance(value, arrow.Array | arrow.ChunkedArray):
        return _Arrow(arrow, arrow.table({"value": value}), f"pyarrow.{type(value).__name__}")
    return None


class _Arrow:
    """A table of Arrow."""

    def __init__(self, arrow: ModuleType, table: Any, kind: str) -> None:
        self._arrow = arrow
        self._table = table
        self.kind = kind
        self.rows = table.num_rows
        names = unique(table.schema.names)
        self.columns: Sequence[Column] = [
            Column(name, str(field.type)[:_NAME_CHARS_MAX], int(table.column(number).null_count))
            for number, (name, field) in enumerate(zip(names, table.schema, strict=True))
        ]

    def part(self, start: int, stop: int, columns: int) -> Rows:
        part = self._table.slice(start, stop - start)
        taken = [part.column(number).to_pylist() for number in range(min(columns, part.num_columns))]
        return list(zip(*taken, strict=True)) if taken else [()] * part.num_rows

    def size(self) -> int:
        return int(self._table.nbytes)

    def keep(self, stem: str) -> TableFile:
        parquet = importlib.import_module("pyarrow.parquet")

        table = self._table
        if not isinstance(table, self._arrow.Table):
            table = self._arrow.Table.from_batches([table])
        return kept_as(stem, ("parquet", lambda file: parquet.write_table(table, file), "pq.read_table({path})"))


def _duckdb(duckdb: ModuleType, value: Any) -> Shown | None:
    return _DuckDB(value) if isinstance(value, duckdb.DuckDBPyRelation) else None


class _DuckDB:
    """A relation of DuckDB: a query, which is asked for what is shown and never read as a whole."""

    kind = "duckdb.DuckDBPyRelation"

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        self.rows = int(relation.count("*").fetchall()[0][0])
        names = unique(relation.columns)
        self.columns: Sequence[Column] = [
            Column(name, str(dtype)[:_NAME_CHARS_MAX], None) for name, dtype in zip(names, relation.types, strict=True)
        ]

    def part(self, start: int, stop: int, columns: int) -> Rows:
        return [row[:columns] for row in self._relation.limit(stop - start, start).fetchall()]

    def size(self) -> int:
        return self.rows * len(self.columns) * 8

    def keep(self, stem: str) -> TableFile:
        return kept_as(stem, ("parquet", None, "duckdb.read_parquet({path})"), by_path=self._relation.write_parquet)


_MADE_BY: Final[Mapping[str, Callable[[ModuleType, Any], Shown | None]]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _arrow,
    "duckdb": _duckdb,
}
