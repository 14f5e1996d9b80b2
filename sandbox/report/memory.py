"""What holds a run's memory: its variables, their kinds and about how many bytes they take, and what would need less.

Security boundary: the values are hostile. Of built-in types only exact ones are measured, through C functions; what a
library's value takes is asked of the library, in full Python alone.
"""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Mapping
from itertools import islice
from types import BuiltinFunctionType, CoroutineType, FunctionType, MethodType, ModuleType
from typing import Final, cast

from ..guest.facade import Facade
from ..guest.guest import GUEST
from ..guest.real_classes import derives
from ..guest.spelling import demangle
from ..job import SessionVariable
from ..wire.report_frame import HELD_MAX, NAME_CHARS_MAX
from .disclosure import type_name

NAMES_MAX: Final = 2_000
"""Variables that are looked at."""
SAMPLE: Final = 50
"""Items of a list or dict that are measured, to say what all of them take."""
LEVELS: Final = 3

_NO_DATA: Final = (ModuleType, FunctionType, BuiltinFunctionType, MethodType, CoroutineType, type, Facade)
_LISTS: Final = (list, tuple, set, frozenset)


def held_in(variables: Mapping[str, object], given: Mapping[str, object]) -> tuple[SessionVariable, ...]:
    """Return the variables that hold data, the largest first, at most `HELD_MAX`.

    `given` are those that every run begins with.
    """
    found: list[SessionVariable] = []
    for name, value in islice(list(variables.items()), NAMES_MAX):
        if type(name) is not str or name.startswith("_") or (name in given and given[name] is value):
            continue
        if not any(derives(type(value), each) for each in _NO_DATA):
            found.append(held(demangle(name), value))
    return tuple(sorted(found, key=lambda each: -each.bytes)[:HELD_MAX])


def held(name: str, value: object) -> SessionVariable:
    """Return what a variable holds; raises nothing."""
    kind = type_name(type(value))[:NAME_CHARS_MAX]
    if GUEST.measure is not None:
        try:
            measured = GUEST.measure(value)
        except Exception:  # noqa: BLE001 - a library may raise anything
            measured = None
        if measured is not None:
            return SessionVariable(name[:NAME_CHARS_MAX], kind, max(0, measured[0]), measured[1][:NAME_CHARS_MAX])
    count = _count(value)
    return SessionVariable(
        name[:NAME_CHARS_MAX], kind, _bytes(value, LEVELS), "" if count is None else f"{count} items"
    )


def in_words(variables: tuple[SessionVariable, ...], least_bytes: int, most: int) -> str:
    """Describe the largest variables, at most `most` of them, each of `least_bytes` or more."""
    descriptions = []
    for each in variables[:most]:
        if each.bytes >= least_bytes:
            extent = f"{each.kind}, {each.extent}" if each.extent else each.kind
            descriptions.append(f"{each.name} ({extent}, {each.bytes >> 20} MB)")
    return ", ".join(descriptions)


def _count(value: object) -> int | None:
    kind = type(value)
    if kind is dict or any(kind is each for each in _LISTS):
        return len(cast("list[object]", value))
    return None


def _bytes(value: object, levels: int) -> int:
    """Return about what a value takes; of a container a few items are measured, and others taken to be like them."""
    kind = type(value)
    if kind is dict:
        pairs = cast("dict[object, object]", value)
        sample = list(islice(pairs.items(), SAMPLE))
        inner = sum(_bytes(key, levels - 1) + _bytes(each, levels - 1) for key, each in sample) if levels else 0
        return sys.getsizeof(value) + inner * len(pairs) // max(1, len(sample))
    if any(kind is each for each in _LISTS):
        items = cast("list[object]", value)
        few = list(islice(items, SAMPLE))
        inner = sum(_bytes(each, levels - 1) for each in few) if levels else 0
        return sys.getsizeof(value) + inner * len(items) // max(1, len(few))
    return sys.getsizeof(value) if kind in {str, bytes, bytearray, int, float} else object.__sizeof__(value)


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
