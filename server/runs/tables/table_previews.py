"""What is in a file of the workspace that holds a table or an array: read by a run in full Python, never by the server.

Files of these formats are binary and hostile as any other; the sandbox reads them, with the libraries that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....sandbox.job import Isolation, Json
from ...errors import RequestRefused
from ..execute import CodeRequest, execute

if TYPE_CHECKING:
    from ...caller import Caller
    from ..executor import Executor

FORMATS: Final = (".parquet", ".npy", ".feather", ".arrow", ".xlsx")
ROWS: Final = 20
"""Rows that are shown."""

_READ: Final = """
import importlib.util, os

path, rows, most = "/workspace/" + filename, row_count, 30

def has(name):
    return importlib.util.find_spec(name) is not None

def of_pandas(table, total):
    table = table.iloc[:rows]
    columns = [{"name": str(name), "dtype": str(kind)} for name, kind in table.dtypes.items()]
    head = table.iloc[:, :most].reset_index(drop=True)
    return {"rows": total, "columns": columns[:200], "head": head}

ending = os.path.splitext(path)[1].lower()
file = open(path, "rb")
if ending == ".npy":
    import numpy
    array = numpy.load(path, mmap_mode="r", allow_pickle=False)
    edge = array[(slice(0, rows), *[slice(0, most)] * (array.ndim - 1))] if array.ndim else array
    result = {"shape": list(array.shape), "dtype": str(array.dtype), "head": edge.tolist()}
elif ending == ".xlsx":
    import pandas
    result = of_pandas(pandas.read_excel(file), None)
elif ending == ".parquet" and has("pyarrow"):
    import pyarrow.parquet
    whole = pyarrow.parquet.ParquetFile(file)
    first = next(whole.iter_batches(batch_size=rows), None)
    names = whole.schema_arrow
    head = [] if first is None else first.select(list(range(min(most, first.num_columns)))).to_pylist()
    columns = [{"name": each.name, "dtype": str(each.type)} for each in names]
    result = {"rows": whole.metadata.num_rows, "columns": columns[:200], "head": head}
elif ending == ".parquet" and has("polars"):
    import polars
    lazy = polars.scan_parquet(path)
    schema = lazy.collect_schema()
    columns = [{"name": name, "dtype": str(kind)} for name, kind in schema.items()]
    head = lazy.select(list(schema)[:most]).head(rows).collect()
    result = {"rows": lazy.select(polars.len()).collect().item(), "columns": columns[:200], "head": head}
elif ending == ".parquet":
    raise ImportError("neither pyarrow nor polars is installed there")
else:
    import pyarrow.feather
    table = pyarrow.feather.read_table(file)
    columns = [{"name": each.name, "dtype": str(each.type)} for each in table.schema]
    head = table.slice(0, rows).select(list(range(min(most, table.num_columns)))).to_pylist()
    result = {"rows": table.num_rows, "columns": columns[:200], "head": head}
"""


def is_table(filename: str) -> bool:
    """Return whether a file is by its name of a format that holds tables or arrays."""
    return filename.lower().endswith(FORMATS)


def isolation_for(executor: Executor) -> Isolation | None:
    """Return where such a file can be read; None where the operator allows no full Python."""
    return next((each for each in (Isolation.PROCESS, Isolation.CONTAINER) if each in executor.pools.offered), None)


async def previewed(executor: Executor, caller: Caller, filename: str, isolation: Isolation) -> Json:
    """Return the columns of a table with their types, how many rows it has, and the first of them.

    It is a run of the caller, with all that holds for one. Raises `RequestRefused` where the file cannot be read so,
    and what `execute` raises.
    """
    request = CodeRequest(
        code=_READ,
        context_vars={"filename": filename, "row_count": ROWS},
        isolation=isolation.value,
        caller=caller,
    )
    report = (await execute(executor, request)).report
    failed = report["error"]
    if failed is not None:
        raise RequestRefused(
            f"{filename!r} cannot be read as a table: {failed['type']}: {failed['message']}. Read its bytes with "
            'encoding="base64".'
        )
    return report["result"]  # type: ignore[return-value]  # it came as JSON
