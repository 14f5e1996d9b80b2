"""Has the host know of files that polars, DuckDB and Arrow open in native code, where no audit hook sees them.

Whatever of their functions opens files is told of them by its arguments: paths, lists and patterns of paths, and names
in quotes within SQL. A path that such a function makes up by itself is not seen.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, Final

from ...guest.guest import GUEST
from .told_reads import WORKSPACE, as_own, is_own, tell_path

_FILES_MAX: Final = 10_000
_PATTERN: Final = re.compile(r"[*?\[]")
_QUOTED: Final = re.compile(r"'((?:[^']|'')+)'|\"((?:[^\"]|\"\")+)\"")
_SCHEME: Final = re.compile(r"\A(?:file://|file:)")
_SQL_LEAST: Final = 2
"""So many words has a text at least that may be SQL."""

_DUCKDB_CALLS: Final = (
    *("connect", "sql", "query", "execute", "executemany", "from_query", "query_df", "read_csv", "read_json"),
    *("read_parquet", "from_csv_auto", "from_parquet", "table_function", "table", "values"),
)
_PYARROW_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "pyarrow": ("memory_map", "input_stream"),
    "pyarrow.parquet": ("read_table", "read_pandas", "ParquetFile", "ParquetDataset"),
    "pyarrow.feather": ("read_table", "read_feather"),
    "pyarrow.csv": ("read_csv", "open_csv"),
    "pyarrow.json": ("read_json", "open_json"),
    "pyarrow.orc": ("read_table", "ORCFile"),
    "pyarrow.dataset": ("dataset", "parquet_dataset"),
}


def changes() -> dict[str, Callable[[Any], None]]:
    """Return what is done to each module once it is loaded, by its name."""
    arrow = {name: _telling(*calls) for name, calls in _PYARROW_CALLS.items()}
    return {**arrow, "polars": _change_polars, "duckdb": _change_duckdb}


def _change_polars(module: Any) -> None:
    _telling(*(name for name in vars(module) if name.startswith(("read_", "scan_")) or name == "sql"))(module)
    _telling("execute")(module.SQLContext)


def _change_duckdb(module: Any) -> None:
    for owner in (module, module.DuckDBPyConnection, module.DuckDBPyRelation):
        _telling(*_DUCKDB_CALLS)(owner)


def _telling(*names: str) -> Callable[[Any], None]:
    """Return what has these functions and classes of an owner tell of the files among their arguments."""

    def change(owner: Any) -> None:
        for name in names:
            call = getattr(owner, name, None)
            if isinstance(call, type):
                call.__init__ = _told(call.__init__)  # type: ignore[misc]  # of a class of a library
            elif call is not None:
                setattr(owner, name, _told(call))

    return change


def _told(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def told(*arguments: Any, **options: Any) -> Any:
        if GUEST.tells_reads and not is_own():
            with as_own():
                named = list(dict.fromkeys(_Named().paths((arguments, options))))
            for path in named:
                tell_path(path)
        return call(*arguments, **options)

    return told


class _Named:
    """Finds the files of the workspace that the arguments of one call name; there may be a million of them."""

    def __init__(self) -> None:
        self._here: set[str] | None = None

    def paths(self, given: object) -> Iterator[str]:
        """Give the files."""
        if isinstance(given, str | bytes | os.PathLike):
            try:
                text = os.fsdecode(given)
            except (TypeError, UnicodeError):
                return
            yield from self._named(_SCHEME.sub("", text))
            if len(text.split(maxsplit=_SQL_LEAST)) >= _SQL_LEAST:
                for quoted in _QUOTED.findall(text):
                    yield from self._named(_SCHEME.sub("", "".join(quoted).replace("''", "'")))
        elif isinstance(given, list | tuple | set | frozenset):
            for each in given:
                yield from self.paths(each)
        elif isinstance(given, Mapping):
            for each in given.values():
                yield from self.paths(each)

    def _named(self, path: str) -> Iterator[str]:
        if not path or "\0" in path or "\n" in path or not self._may_be(path):
            return
        if os.path.isdir(path):
            yield from _within(path)
        elif os.path.lexists(path):
            yield from _if_of_workspace(path)
        elif _PATTERN.search(path):
            for number, each in enumerate(glob.iglob(path, recursive=True)):
                if number >= _FILES_MAX:
                    raise PermissionError(f"{path!r} names more than {_FILES_MAX} files. Name fewer at once.")
                yield from _within(each) if os.path.isdir(each) else _if_of_workspace(each)

    def _may_be(self, path: str) -> bool:
        """Return whether the current folder has what a path begins with; an absolute one may be anywhere."""
        first = path.partition("/")[0]
        if first in {"", ".", "..", "~"}:
            return True
        if self._here is None:
            self._here = set(os.listdir())
        return first in self._here or (_PATTERN.search(first) is not None and bool(fnmatch.filter(self._here, first)))


def _within(folder: str) -> Iterator[str]:
    """Give the files of a folder, which is read as one table."""
    if not _is_of_workspace(folder):
        return
    count = 0
    for below, _folders, names in os.walk(folder):
        for name in names:
            count += 1
            if count > _FILES_MAX:
                raise PermissionError(f"{folder!r} has more than {_FILES_MAX} files. Name fewer at once.")
            yield from _if_of_workspace(os.path.join(below, name))


def _if_of_workspace(path: str) -> Iterator[str]:
    if _is_of_workspace(path):
        yield os.path.realpath(path)


def _is_of_workspace(path: str) -> bool:
    real = os.path.realpath(path)
    return real == WORKSPACE or real.startswith(f"{WORKSPACE}/")
