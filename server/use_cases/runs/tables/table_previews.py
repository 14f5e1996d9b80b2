"""What is in a file of the workspace that holds a table or an array: read by a run in full Python, never by the server.

Files of these formats are binary and hostile as any other; the sandbox reads them, with the libraries that it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from .....sandbox.job import Isolation, Json
from ....base.errors import RequestRefused
from ..execute import execute
from ..request import CodeRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....governance.caller import Caller
    from ..executor import Executor

FORMATS: Final = (".parquet", ".npy", ".feather", ".arrow", ".xlsx")
ROWS: Final = 20
"""Rows that are shown where no limit is asked for."""
ROWS_MAX: Final = 1000
"""Rows that are shown at most, whatever is asked for: what follows is another slice."""

_READ: Final = """
import importlib.util, os

path, columns_most, cell_most = "/workspace/" + filename, 30, 200
cut = []

def has(name):
    return importlib.util.find_spec(name) is not None

def described(pairs):
    pairs = list(pairs)
    if len(pairs) > 200:
        cut.append(f"{len(pairs) - 200} columns are not named")
    return [{"name": str(name)[:cell_most], "dtype": str(kind)[:60]} for name, kind in pairs[:200]]

def short(value):
    if isinstance(value, str | bytes) and len(value) > cell_most:
        cut.append(f"texts are cut after {cell_most} characters")
        return str(value[:cell_most]) + "…"
    return value

def fitted(rows):
    taken, room = [], chars_most
    for row in rows:
        row = {name: short(value) for name, value in row.items()} if isinstance(row, dict) else row
        room -= len(repr(row))
        if room < 0 and taken:
            break
        taken.append(row)
    return taken

def of_rows(total, columns, rows):
    columns = list(columns)
    if len(columns) > columns_most:
        cut.append(f"of {len(columns)} columns the rows show the first {columns_most}")
    named = described(columns)
    return shown({"rows": total, "columns": named}, total, rows)

def shown(about, total, rows):
    rows = fitted(rows)
    about |= {"offset": offset, "slice": rows} if offset else {"head": rows}
    if cut:
        about["left_out"] = "; ".join(dict.fromkeys(cut))
    return {"shown": about, "more": offset + len(rows) < total, "next": offset + len(rows), "is_cut": bool(cut)}

def of_pandas(table):
    part = table.iloc[offset : offset + row_count, :columns_most]
    part.columns = [str(name) for name in part.columns]
    # By objects: as records, a column that holds both whole numbers and none would be one of fractions.
    return of_rows(len(table), table.dtypes.items(), part.astype(object).where(part.notna(), None).to_dict("records"))

def of_arrow(schema, total, table):
    part = table.select(list(range(min(columns_most, table.num_columns))))
    return of_rows(total, [(each.name, each.type) for each in schema], part.to_pylist())

ending = os.path.splitext(path)[1].lower()
file = open(path, "rb")
if ending == ".npy":
    import numpy
    array = numpy.load(path, mmap_mode="r", allow_pickle=False)
    about = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if not array.ndim:
        result = shown(about, 1, [array.tolist()])
    else:
        if any(size > columns_most for size in array.shape[1:]):
            cut.append(f"of each dimension but the first only {columns_most} are shown")
        edge = array[(slice(offset, offset + row_count), *[slice(0, columns_most)] * (array.ndim - 1))]
        result = shown(about, array.shape[0], edge.tolist())
elif ending == ".xlsx":
    import pandas
    book = pandas.ExcelFile(file)
    result = of_pandas(book.parse(book.sheet_names[0]))
    if len(book.sheet_names) > 1:
        result["shown"] = {"sheets": book.sheet_names, "sheet": book.sheet_names[0], **result["shown"]}
elif ending == ".parquet" and has("pyarrow"):
    import pyarrow, pyarrow.parquet
    whole = pyarrow.parquet.ParquetFile(file)
    sizes = [whole.metadata.row_group(each).num_rows for each in range(whole.num_row_groups)]
    group, skipped = 0, 0
    while group < len(sizes) and skipped + sizes[group] <= offset:
        skipped, group = skipped + sizes[group], group + 1
    batches, missing, skipped = [], row_count, offset - skipped
    for batch in whole.iter_batches(batch_size=max(row_count, 1), row_groups=list(range(group, len(sizes)))):
        part = batch.slice(skipped, missing)
        skipped = max(skipped - batch.num_rows, 0)
        missing -= part.num_rows
        batches.append(part)
        if not missing:
            break
    table = pyarrow.Table.from_batches([each for each in batches if each.num_rows], whole.schema_arrow)
    result = of_arrow(whole.schema_arrow, whole.metadata.num_rows, table)
elif ending == ".parquet" and has("polars"):
    import polars
    lazy = polars.scan_parquet(path)
    schema = lazy.collect_schema()
    part = lazy.select(list(schema)[:columns_most]).slice(offset, row_count).collect()
    result = of_rows(lazy.select(polars.len()).collect().item(), schema.items(), part.to_dicts())
elif ending == ".parquet":
    raise ImportError("neither pyarrow nor polars is installed there")
else:
    import pyarrow.feather
    table = pyarrow.feather.read_table(file)
    result = of_arrow(table.schema, table.num_rows, table.slice(offset, row_count))
"""


@dataclass(frozen=True, slots=True)
class Preview:
    """What is shown of a table: `shown` for the reader; the row `following`, where rows follow; whether more is cut."""

    shown: Json
    following: int | None
    is_cut: bool


def is_table(filename: str) -> bool:
    """Return whether a file is by its name of a format that holds tables or arrays."""
    return filename.lower().endswith(FORMATS)


def isolation_for(executor: Executor) -> Isolation | None:
    """Return where such a file can be read; None where the operator allows no full Python."""
    return next((each for each in (Isolation.PROCESS, Isolation.CONTAINER) if each in executor.pools.offered), None)


async def previewed(
    executor: Executor, caller: Caller, filename: str, isolation: Isolation, *, offset: int, limit: int | None
) -> Preview:
    """Return the columns of a table with their types, how many rows it has, and `limit` of them from `offset` on.

    Where no limit is given, it is `ROWS`; and it is as many rows as fit the operator's OUTPUT_MAX_CHARS, at most
    `ROWS_MAX`. It is a run of the caller, with all that holds for one. Raises `RequestRefused` where the file cannot be
    read so, and what `execute` raises.
    """
    if offset < 0 or (limit is not None and limit < 0):
        raise RequestRefused("offset and limit count rows of a table, from 0 on. Give none below 0.")
    request = CodeRequest(
        code=_READ,
        context_vars={
            "filename": filename,
            "offset": offset,
            "row_count": min(ROWS if limit is None else limit, ROWS_MAX),
            "chars_most": executor.settings.output_max_chars // 2,
        },
        isolation=isolation.value,
        caller=caller,
    )
    report = (await execute(executor, request)).report
    failed = report["error"]
    if failed is not None:
        raise RequestRefused(
            f"{filename!r} cannot be read as a table: {failed['type']}: {failed['message'].rstrip('.')}. Read its "
            'bytes with encoding="base64".'
        )
    result = cast("Mapping[str, Json]", report["result"])
    is_cut = bool(result["is_cut"]) or "truncated" in report
    return Preview(result["shown"], cast("int", result["next"]) if result["more"] else None, is_cut)
