"""Reports to the host the files that polars, DuckDB and Arrow open in native code, where no audit hook sees them.

The files are found in the arguments of each function that opens some: paths, lists and patterns of paths, and names
within SQL. Where the arguments do not say which file it is, all files of the workspace are reported: for SQL that
computes a name, and for file systems of Arrow, which open any file later.

SQL is not parsed: whatever stands between quotes of any kind, and every word with a dot, may be the name of a file
(DuckDB reads `from people.csv` as well as `from 'people.csv'`). A text that computes a name may read any file.

SQLite says which databases a connection attaches before it opens the file, to the authorizer of the connection
(sqlite.org, sqlite3_set_authorizer); the audit hook sees what is connected to.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, cast

from ...guest.guest import GUEST
from .reported_reads import WORKSPACE, as_own, database_paths, is_own, report_everything, report_path

if TYPE_CHECKING:
    import sqlite3

_FILES_MAX: Final = 10_000
_PATTERN: Final = re.compile(r"[*?\[]")
_SCHEME: Final = re.compile(r"\A(?:file://|file:)")
_SQL_LEAST: Final = 2
"""So many words has a text at least that may be SQL."""

_DUCKDB: Final = "duckdb"
"""Among the variables of the first frame that is not of its own modules DuckDB looks for tables: never of ours."""
_PYARROW_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "pyarrow": ("memory_map", "input_stream"),
    "pyarrow.ipc": ("RecordBatchFileReader", "RecordBatchStreamReader"),
    "pyarrow.parquet": (
        *("read_table", "read_pandas", "read_metadata", "read_schema", "ParquetFile", "ParquetDataset"),
    ),
    "pyarrow.feather": ("read_table", "read_feather"),
    "pyarrow.csv": ("read_csv", "open_csv"),
    "pyarrow.json": ("read_json", "open_json"),
    "pyarrow.orc": ("read_table", "ORCFile"),
    "pyarrow.dataset": ("dataset", "parquet_dataset"),
}


_LOADED: Final[list[tuple[Callable[[Any], None], Any]]] = []
"""Modules that are loaded and not changed yet, each with what changes it."""


def changes() -> dict[str, Callable[[Any], None]]:
    """Return what is done to each module once it is loaded, by its name."""
    arrow = {name: _telling(*calls) for name, calls in _PYARROW_CALLS.items()}
    changing: dict[str, Callable[[Any], None]] = {
        **arrow,
        "pyarrow": _change_pyarrow,
        "pyarrow.fs": _change_pyarrow_fs,
        "polars": _change_polars,
        "duckdb": _change_duckdb,
        "sqlite3": _change_sqlite,
        "sqlite3.dbapi2": _change_sqlite,
    }
    return {name: _once_needed(change) for name, change in changing.items()}


def begin() -> None:
    """Change what is loaded, if the run is to tell what it reads; the libraries are as they came if no run is."""
    while GUEST.tells_reads and _LOADED:
        change, module = _LOADED.pop()
        try:
            change(module)
        except Exception as error:  # noqa: BLE001 - a library of another version works as it is
            warnings.warn(
                f"What {module.__name__} reads by itself is not looked through for personal data, since this version "
                f"of it is not known ({error}). Install the version that `sealab data setup` brings.",
                stacklevel=2,
            )


def _once_needed(change: Callable[[Any], None]) -> Callable[[Any], None]:
    def loaded(module: Any) -> None:
        _LOADED.append((change, module))
        begin()

    return loaded


def _change_pyarrow(module: Any) -> None:
    _telling(*_PYARROW_CALLS["pyarrow"])(module)
    for name in ("OSFile", "CompressedInputStream"):
        setattr(module, name, _standing_for(getattr(module, name), _tell_named))


def _change_pyarrow_fs(module: Any) -> None:
    _telling("copy_files")(module)
    module.LocalFileSystem = _standing_for(module.LocalFileSystem, _tell_unless_of_arrow)
    begin = module.FileSystem.from_uri

    def from_uri(uri: Any) -> Any:
        _tell_unless_of_arrow((), {})
        return begin(uri)

    module.FileSystem = _StandIn("FileSystem", (module.FileSystem,), {"from_uri": staticmethod(from_uri)})


def _change_polars(module: Any) -> None:
    _telling(*(name for name in vars(module) if name.startswith(("read_", "scan_")) or name == "sql"))(module)
    _telling("execute")(module.SQLContext)


def _change_duckdb(module: Any) -> None:
    for owner in (module, module.DuckDBPyConnection, module.DuckDBPyRelation):
        # Nearly each of its functions takes SQL, or what becomes a part of it.
        public = [(name, each) for name, each in vars(owner).items() if not name.startswith("_")]
        calls = [name for name, each in public if callable(each) and not isinstance(each, type)]
        _telling(*calls, within=_DUCKDB)(owner)


def _telling(*names: str, within: str = __name__) -> Callable[[Any], None]:
    """Return a function that makes these functions and classes of an owner report the files among their arguments.

    `within` is the name of the module that they seem to come from.
    """

    def change(owner: Any) -> None:
        for name in names:
            call = getattr(owner, name, None)
            if isinstance(call, type):
                call.__init__ = _reporting(call.__init__)  # type: ignore[misc]  # of a class of a library
            elif call is not None:
                setattr(owner, name, _reporting(call, within))

    return change


def _reporting(call: Callable[..., Any], within: str = __name__) -> Callable[..., Any]:
    def reporting_call(*arguments: Any, **options: Any) -> Any:
        _tell_named(arguments, options)
        return call(*arguments, **options)

    seen = FunctionType(reporting_call.__code__, {**globals(), "__name__": within}, closure=reporting_call.__closure__)
    return wraps(call)(seen)


def _tell_named(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Report to the host the files that the arguments of a call name."""
    if not GUEST.tells_reads or is_own():
        return
    with as_own():
        named = _Named()
        paths = list(dict.fromkeys(named.paths((arguments, options))))
    for path in paths:
        report_path(path)
    if named.computes:
        report_everything()


def _tell_unless_of_arrow(_arguments: tuple[Any, ...], _options: Mapping[str, Any]) -> None:
    """Report all files to the host, unless Arrow itself asks for a file system: for a path that it was given."""
    of = str(sys._getframe(2).f_globals.get("__name__", ""))
    if GUEST.tells_reads and not is_own() and of.partition(".")[0] != "pyarrow":
        report_everything()


class _StandIn(type):
    """The class of a class that stands for one of C, which cannot be changed: instances of that one are its own."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _standing_for(original: type, tell: Callable[[tuple[Any, ...], Mapping[str, Any]], None]) -> type:
    """Return a class that is as another, and tells of files before an instance of it is made."""

    def new(cls: type, *arguments: Any, **options: Any) -> Any:
        tell(arguments, options)
        return cast("Any", original).__new__(cls, *arguments, **options)

    return _StandIn(original.__name__, (original,), {"__new__": new, "__doc__": original.__doc__})


class _Named:
    """Finds the files of the workspace that the arguments of one call name; there may be a million of them."""

    def __init__(self) -> None:
        self._here: set[str] | None = None
        self.computes = False
        """Whether SQL among them may read files that it does not name."""

    def paths(self, given: object) -> Iterator[str]:
        """Give the files."""
        if isinstance(given, str | bytes | os.PathLike):
            try:
                text = os.fsdecode(given)
            except (TypeError, UnicodeError):
                return
            yield from self._named(_SCHEME.sub("", text))
            if len(text.split(maxsplit=_SQL_LEAST)) >= _SQL_LEAST:
                self.computes = self.computes or computes_names(text)
                for name in dict.fromkeys(names_in(text)):
                    yield from self._named(_SCHEME.sub("", name))
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


_QUOTED: Final = re.compile(r"'((?:[^']|'')+)'|\"((?:[^\"]|\"\")+)\"")
_SEAM: Final = re.compile(r"['\"]|\$\w*\$")
"""Where a text within quotes begins or ends; whether it does is not asked, since comments have apostrophes."""
_DOTTED: Final = re.compile(r"\w+(?:\.\w+)+")

_LITERAL: Final = r"(?:'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$)"
_PLAIN: Final = re.compile(
    rf"\s*(?:{_LITERAL}|\[\s*(?:'(?:[^']|'')*'\s*,?\s*)*\]|\?\d*|[$:]\w+)\s*[,)]", re.DOTALL | re.IGNORECASE
)
"""What is no expression where the name of a file stands: a literal, a list of them, or a parameter."""
_READING: Final = re.compile(r"\b(?:read_\w+|\w+_scan|sniff_\w+|parquet_\w+|glob)\s*\(", re.IGNORECASE)
_COMPUTING: Final = re.compile(
    r"\bquery(?:_table)?\s*\(|\bgetvariable\s*\(|\bfile_search_path\b|\bexecute\s+\w+\s*\(|\be'[^']*\\", re.IGNORECASE
)
"""SQL that is put together within SQL, values that SQL has set, names with escapes, and folders that are searched."""


def names_in(text: str) -> Iterator[str]:
    """Give all that may be the name of a file, or a pattern of such names."""
    for quoted in _QUOTED.findall(text):
        yield "".join(quoted).replace("''", "'").replace('""', '"')
    yield from _SEAM.split(text)
    yield from _DOTTED.findall(text)


def computes_names(text: str) -> bool:
    """Return whether it may read files whose names do not stand in it, nor are given with it."""
    if _COMPUTING.search(text):
        return True
    return any(not _PLAIN.match(text, call.end()) for call in _READING.finditer(text))


_OK: Final = 0
_DENY: Final = 1
_ATTACH: Final = 24
"""Of sqlite3.h; the module is loaded, and changed, when code imports it."""


def _change_sqlite(module: Any) -> None:
    """Give each connection that `sqlite3` makes an authorizer; code may set one of its own in its place."""
    if not hasattr(module.connect, "__wrapped__"):  # of `sqlite3.dbapi2` it may have come changed
        module.connect = _with_authorizer(module.connect)


def _with_authorizer(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    @wraps(connect)
    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        if GUEST.tells_reads and not is_own():
            connection.set_authorizer(_judge)
        return connection

    return connected


def _judge(action: int, name: str | None, *_more: str | None) -> int:
    """Report to the host what a database holds before SQLite attaches it; if that fails, it is not attached."""
    if action != _ATTACH or not GUEST.tells_reads:
        return _OK
    try:
        if name is None:  # it is no literal, and SQLite does not say what it is
            report_everything()
        else:
            for path in database_paths(name):
                if report_path(path):
                    break
    except Exception as error:  # noqa: BLE001 - SQLite takes any for a no, and says nothing of it
        warnings.warn(f"The database is not attached: {error}", stacklevel=2)
        return _DENY
    return _OK
