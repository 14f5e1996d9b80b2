"""What values of numpy, pandas, polars, Arrow and DuckDB are in plain Python, so that a report can show them.

No library is imported here: a value of theirs exists only where the code imported it. A small table is shown whole, a
larger one as its head and tail, and the whole of it becomes a file in the workspace.

| value | becomes |
| --- | --- |
| table of up to `CELLS_MAX` values | a list of its rows as objects, with the index unless that only counts them |
| Series of up to `CELLS_MAX` values, each label once | an object by label |
| larger table | `{rows, columns, file, read_with, head, tail}` |
| array of up to `CELLS_MAX` values, Index, polars Series | (nested) list |
| larger array | `{shape, dtype, min, max, mean, file, read_with, head, tail}` |
| figure of matplotlib | `{image}`: its number among the images of the report |
| missing value | null |
"""

from __future__ import annotations

import mmap
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

from ..job import Column, Table
from ..report.disclosure import repr_of, type_name
from ..wire.report_frame import COLUMNS_MAX, TABLES_MAX, TEXT_CHARS_MAX
from .figures import is_chart
from .tables import BYTES_MAX, Shown, TableFile, kept_as, records, table_of

CELLS_MAX: Final = 1_000
"""Values of a table or an array that is shown whole."""
EDGE_ROWS: Final = 5
"""Rows of the head and of the tail of a larger one."""
EDGE_COLUMNS: Final = 30
"""Columns of these."""
_DESCRIBED_DIMENSIONS: Final = 2
"""An array with fewer dimensions that is shown whole needs no description."""
_ROOM_LEAST_BYTES: Final = 64 * 1024 * 1024
"""What making a file takes beside a copy of the table."""
_NOT_IN_STEMS: Final = re.compile(r"\W+")
_STEM_CHARS_MAX: Final = 60


class PlainValues:
    """Turns values into plain ones, and remembers of each table what it was."""

    def __init__(self, show_figure: Callable[[object], int | None]) -> None:
        self._tables: list[Table] = []
        self._show_figure = show_figure

    def forget(self) -> None:
        """Begin anew."""
        self._tables.clear()

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that were shown, in order: the first `TABLES_MAX` of them."""
        return tuple(self._tables)

    def __call__(self, value: object, place: str) -> object:
        """Return the value at `place` in plain Python, or the value itself where there is none.

        Raises what a library raises.
        """
        numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
        if pandas is not None:
            if value is pandas.NaT or value is pandas.NA:
                return None
            if isinstance(value, pandas.Period | pandas.Interval):
                return str(value)
            if isinstance(value, pandas.MultiIndex):
                value = value.to_flat_index()
            if isinstance(value, pandas.Index | pandas.api.extensions.ExtensionArray):
                column = pandas.Series(value, index=range(len(value)))
                if len(column) <= CELLS_MAX:
                    return _values(column)
                value = column
        arrow = sys.modules.get("pyarrow")
        if arrow is not None and isinstance(value, arrow.Scalar):
            return value.as_py()
        figures, artists = sys.modules.get("matplotlib.figure"), sys.modules.get("matplotlib.artist")
        if figures is not None and isinstance(value, figures.Figure):
            number = self._show_figure(value)
            return repr_of(value) if number is None else {"image": number}
        if is_chart(value):
            self._show_figure(value)
            return f"<{type_name(type(value))}>"
        if artists is not None and isinstance(value, artists.Artist):
            return repr_of(value)
        shown = table_of(value)
        if shown is not None:
            return self._table(shown, value, place)
        return value if numpy is None else self._of_numpy(numpy, value, place)

    def _table(self, shown: Shown, value: object, place: str) -> object:
        whole = shown.rows * max(1, len(shown.columns)) <= CELLS_MAX
        plain: object
        kept: TableFile | str | None = None
        if whole:
            plain = _by_label(shown, value) or records(shown, 0, shown.rows, len(shown.columns))
        else:
            kept = self._kept(shown, place)
            own = [each for each in shown.columns if not each.is_index]
            plain = {
                "rows": shown.rows,
                "columns": len(own),
                **_where(kept),
                "head": records(shown, 0, EDGE_ROWS, EDGE_COLUMNS),
                "tail": records(shown, max(EDGE_ROWS, shown.rows - EDGE_ROWS), shown.rows, EDGE_COLUMNS),
            }
        self._describe(shown, place, shown.rows if whole else min(shown.rows, 2 * EDGE_ROWS), kept)
        return plain

    def _describe(self, shown: Shown, place: str, rows: int, kept: TableFile | str | None) -> None:
        own = sum(not each.is_index for each in shown.columns)
        self._add(
            Table(
                place,
                shown.kind,
                (shown.rows, own),
                tuple(shown.columns[:COLUMNS_MAX]),
                max(0, len(shown.columns) - COLUMNS_MAX),
                rows,
                **_file(kept),
            )
        )

    def _kept(self, shown: Shown, place: str) -> TableFile | str:
        """Write a table to a file of the workspace; return where, or why it is not there."""
        if len(self._tables) >= TABLES_MAX:
            return f"of one run {TABLES_MAX} tables become files"
        return _tried(shown, _stem(place))

    def _add(self, table: Table) -> None:
        if len(self._tables) < TABLES_MAX and len(table.place) <= TEXT_CHARS_MAX:
            self._tables.append(table)

    def _of_numpy(self, numpy: ModuleType, value: Any, place: str) -> object:
        if isinstance(value, numpy.datetime64 | numpy.timedelta64):
            return None if numpy.isnat(value) else str(value)
        if isinstance(value, numpy.generic):
            plain = value.item()
            return value if isinstance(plain, numpy.generic) else plain
        if not isinstance(value, numpy.ndarray) or value.dtype.kind not in "biufUSOMm":
            return value
        whole = value.size <= CELLS_MAX
        if whole and value.ndim < _DESCRIBED_DIMENSIONS:
            return _listed(numpy, value)
        array = _Array(numpy, value)
        kept = None if whole else self._kept(array, place)
        shown = array.rows if whole else min(array.rows, 2 * EDGE_ROWS)
        self._add(Table(place, array.kind, tuple(value.shape), tuple(array.columns), 0, shown, **_file(kept)))
        if whole:
            return _listed(numpy, value)
        edge = value[(slice(None), *[slice(0, EDGE_COLUMNS)] * (value.ndim - 1))]
        return {
            "shape": list(value.shape),
            "dtype": str(value.dtype),
            **array.extent(),
            **_where(kept),
            "head": _listed(numpy, edge[:EDGE_ROWS]),
            "tail": _listed(numpy, edge[max(EDGE_ROWS, len(edge) - EDGE_ROWS) :]),
        }


class _Array:
    """An array of numpy, with its rows along the first axis."""

    kind = "numpy.ndarray"

    def __init__(self, numpy: ModuleType, array: Any) -> None:
        self._numpy = numpy
        self._array = array
        self.rows = len(array)
        nulls = 0
        if array.dtype.kind in "fMm":
            nulls = int((numpy.isnan if array.dtype.kind == "f" else numpy.isnat)(array).sum())
        self.columns: Sequence[Column] = [Column("value", str(array.dtype), nulls)]

    def part(self, start: int, stop: int, columns: int) -> list[list[object]]:
        del columns
        return [[each] for each in _listed(self._numpy, self._array[start:stop])]

    def size(self) -> int:
        return int(self._array.nbytes)

    def extent(self) -> Mapping[str, object]:
        """Return the least, the greatest and the mean of its numbers; nothing where it has none."""
        if self._array.dtype.kind not in "iuf":
            return {}
        numbers = self._array[~self._numpy.isnan(self._array)] if self.columns[0].nulls else self._array
        if not numbers.size:
            return {}
        return {"min": numbers.min(), "max": numbers.max(), "mean": float(numbers.mean())}

    def keep(self, stem: str) -> TableFile:
        array = self._array
        return kept_as(
            stem,
            (
                "npy",
                lambda file: self._numpy.lib.format.write_array(file, array, allow_pickle=False),
                "np.load({path})",
            ),
        )


def _listed(numpy: ModuleType, array: Any) -> Any:
    """Return an array as nested lists, in which what is missing is None."""
    if array.dtype.kind in "Mm":
        return (
            numpy.where(numpy.isnat(array), None, numpy.datetime_as_string(array)).tolist()
            if (array.dtype.kind == "M")
            else numpy.where(numpy.isnat(array), None, array.astype(str)).tolist()
        )
    if array.dtype.kind == "f" and array.ndim and numpy.isnan(array).any():
        return numpy.where(numpy.isnan(array), None, array.astype(object)).tolist()
    return array.tolist()


def _by_label(shown: Shown, value: Any) -> dict[object, object] | list[object] | None:
    """Return a column by the labels of its index, or a list where its library has no index."""
    if shown.kind in {"polars.Series", "pyarrow.Array", "pyarrow.ChunkedArray"} or shown.kind.endswith("Array"):
        return [row[0] for row in shown.part(0, shown.rows, 1)]
    if shown.kind != "pandas.Series" or value.index.nlevels > 1 or not value.index.is_unique:
        return None
    return dict(zip(value.index.tolist(), _values(value), strict=True))


def _values(series: Any) -> list[object]:
    return [None if missing else each for each, missing in zip(series.tolist(), series.isna(), strict=True)]


def _stem(place: str) -> str:
    """Return the name of a file for what stands at a place: `top` for `result.top`."""
    words = [each for each in _NOT_IN_STEMS.split(place) if each]
    own = words[1:]
    stem = "_".join(own if own and not own[0].isdigit() else words)[:_STEM_CHARS_MAX]
    return stem or "table"


def _tried(shown: Shown, stem: str) -> TableFile | str:
    size = shown.size()
    if size > BYTES_MAX or not _has_room(size + _ROOM_LEAST_BYTES):
        return f"it takes about {size >> 20} MB: write it with the library's own function, in parts"
    try:
        return shown.keep(stem)
    except Exception as error:  # noqa: BLE001 - the result is shown without its file, and says so
        return f"{type_name(type(error))}: {str(error)[: TEXT_CHARS_MAX // 2]}"


def _has_room(size: int) -> bool:
    """Return whether so many bytes could be taken now. A library in native code may end the process where it cannot."""
    with suppress(OSError, ValueError, OverflowError), mmap.mmap(-1, size):
        return True
    return False


def _where(kept: TableFile | str | None) -> dict[str, object]:
    if isinstance(kept, TableFile):
        return {"file": kept.name, "read_with": kept.read_with}
    return {"file": None}


def _file(kept: TableFile | str | None) -> Any:
    return {"why_not_kept": kept} if isinstance(kept, str) else _where(kept)
