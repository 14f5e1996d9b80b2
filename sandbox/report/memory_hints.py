"""What would need less memory: said of the line where the memory ended, and of what the code holds."""

from __future__ import annotations

import re
import resource
import sys
from typing import Final

from ..guest.guest import GUEST

_SCANS: Final = "polars.scan_{kind} and duckdb.sql(\"select … from '{{file}}'\") read in parts by themselves"

_BY_LINE: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        (
            r"\bread_csv\s*\(",
            "Read only the columns that are needed (usecols=[…]) with small types (dtype={…}), or in parts "
            "(chunksize=100_000); " + _SCANS.format(kind="csv") + ".",
        ),
        (
            r"\bread_parquet\s*\(|\bread_table\s*\(|\bread_feather\s*\(",
            "Read only the columns that are needed (columns=[…]); " + _SCANS.format(kind="parquet") + ".",
        ),
        (r"\bread_json\s*\(", "Read JSON lines in parts: read_json(…, lines=True, chunksize=100_000)."),
        (r"\bread_excel\s*\(", "Read only the columns and rows that are needed: usecols=…, nrows=…."),
        (
            r"\bmerge\s*\(|\bjoin\s*\(",
            "A join has a row for each pair of equal keys: check that they are unique (validate='m:1').",
        ),
        (
            r"\b(?:pivot(?:_table)?|unstack|crosstab|get_dummies)\s*\(",
            "This makes a column of each value: group the rare values first, or keep the long form.",
        ),
        (r"\bgroupby\s*\(", "Select the columns that are needed before groupby, with observed=True for categories."),
        (r"\bconcat\s*\(|\bappend\s*\(|\bvstack\s*\(", "Aggregate each part before the parts are put together."),
        (
            r"\bnp\.\w+\s*\(|\bnumpy\.\w+\s*\(",
            "Take a smaller dtype (float32, int32), or work through the rows in blocks.",
        ),
        (r"\.collect\s*\(", 'Write .collect(engine="streaming"), or select less before it.'),
        (r"\.(?:read|readlines|read_text|read_bytes)\s*\(", "Loop over the open file, line by line or block by block."),
        (r"\.copy\s*\(|\.astype\s*\(", "Change one column after another, and `del` what is done with."),
        (r"\blist\s*\(|\[.+\bfor\b.+\bin\b", "Loop over a generator instead of making the whole list."),
    )
)
_CODE: Final = "    "
"""How a line of code begins in a traceback."""
_MIB: Final = 1024 * 1024


def advice_for(traceback: str) -> str | None:
    """Return what needs less memory than the innermost line of a traceback of which that is known; None without one."""
    lines = [line for line in traceback.split("\n") if line.startswith(_CODE)]
    return next(
        (advice for line in reversed(lines) for pattern, advice in _BY_LINE if pattern.search(line)),
        None,
    )


def peak_mb() -> int:
    """Return the most memory that this process had in use, in MB (getrusage(2), ru_maxrss)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // _MIB if sys.platform == "darwin" else peak // 1024


def is_of_memory(error: BaseException) -> bool:
    """Return whether an exception says that memory is used up: DuckDB has a class of its own for that."""
    if isinstance(error, MemoryError) or not GUEST.full_python:
        return isinstance(error, MemoryError)
    kind = type(error)
    return kind.__name__ == "OutOfMemoryException" and str(kind.__module__).lstrip("_").startswith("duckdb")
