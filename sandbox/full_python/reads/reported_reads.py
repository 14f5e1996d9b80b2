"""Reports to the host which files of the workspace the code is about to open, where the host needs their content.

An audit hook sees what Python opens; `native_reads` sees what libraries open in native code. The host looks through
text and archives itself; the tables of Arrow, parquet and DuckDB are read here and sent to the host row by row.
"""

from __future__ import annotations

import datetime as dt
import importlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from ...guest.guest import GUEST
from ...job import Json

WORKSPACE: Final = "/workspace"
_BEGINNING_BYTES: Final = 16
_REPORTED: set[tuple[str, int, int, int]] = set()
"""The tables of which the host knows all, as they were."""
_EVERYTHING: set[tuple[int, str, int, int, int]] = set()
"""What `report_everything` reported: the number of the run, and each file as it was."""
_FILES_MAX: Final = 10_000
_OWN = threading.local()


def report_read(event: str, arguments: tuple[object, ...]) -> None:
    """Ask the host before something is opened: an audit hook. Raises what the host says, and then nothing is opened."""
    said = _SAID.get(event)
    if said is None or not GUEST.tells_reads or is_own():
        return
    for path in said(arguments[0] if arguments else None):
        if report_path(path):
            return


def report_path(path: str) -> bool:
    """Report to the host what a file or a folder of the workspace holds; return whether it is one.

    Raises what the host says, and `PermissionError` for a table that cannot be read: then it must not be opened.
    """
    if path != WORKSPACE and not path.startswith(f"{WORKSPACE}/"):
        return False
    if os.path.lexists(path):
        GUEST.call_host("learn_path", {"filename": path})
        with as_own():
            _tell_table(path)
    return True


def report_everything() -> None:
    """Report all files of the workspace to the host: one of them is read, and which one is not seen.

    Raises as `report_path`, and `PermissionError` where there are too many.
    """
    count = 0
    for folder, _folders, names in os.walk(WORKSPACE):
        for name in names:
            count += 1
            if count > _FILES_MAX:
                raise PermissionError(
                    f"What is read here is not seen, and the workspace has more than {_FILES_MAX} files to look "
                    "through for personal data. Read the file by its path, with open() or a function that takes one."
                )
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            mark = (GUEST.run, path, status.st_ino, status.st_size, status.st_mtime_ns)
            if mark not in _EVERYTHING and stat.S_ISREG(status.st_mode):
                report_path(path)
                _EVERYTHING.add(mark)


def is_own() -> bool:
    """Return whether this thread reads for the host just now."""
    return bool(getattr(_OWN, "reads", False))


@contextmanager
def as_own() -> Iterator[None]:
    """Mark what this thread reads as reads for the host, which are not reported."""
    before, _OWN.reads = is_own(), True
    try:
        yield
    finally:
        _OWN.reads = before


def _tell_table(path: str) -> None:
    try:
        status = os.stat(path)
        mark = (path, status.st_ino, status.st_size, status.st_mtime_ns)
        if mark in _REPORTED or not os.path.isfile(path):
            return
        with open(path, "rb") as file:
            beginning = file.read(_BEGINNING_BYTES)
    except OSError:
        return  # the code cannot open it either
    read = reader_of(beginning)
    if read is None:
        return
    try:
        for rows in rows_of(read(path)):
            GUEST.call_host("learn_rows", {"rows": rows})
    except Exception as error:
        raise PermissionError(
            f"{os.path.basename(path)!r} cannot be read here: it could not be looked through for personal data "
            f"({type(error).__name__}: {str(error)[:200]}). Write it as CSV, or ask for more memory or time."
        ) from error
    _REPORTED.add(mark)


def _path(given: object) -> tuple[str, ...]:
    """Return the places that a path may mean; one that is relative to a folder's descriptor could be any."""
    if given is None:
        return (os.path.realpath("."),)
    if not isinstance(given, str | bytes | os.PathLike):
        return ()
    path = os.fsdecode(given)
    here = os.path.realpath(path)
    return (here,) if os.path.isabs(path) or os.path.lexists(here) else (here, os.path.realpath(f"{WORKSPACE}/{path}"))


def database_paths(given: object) -> tuple[str, ...]:
    """Return the places of the file that a name of a database means to SQLite, which may be a URI."""
    if isinstance(given, str | bytes | os.PathLike):
        path = os.fsdecode(given)
        return _path(unquote(urlsplit(path).path) if path.startswith("file:") else path)
    return ()


_SAID: Final[Mapping[str, Callable[[object], tuple[str, ...]]]] = MappingProxyType(
    {
        "open": _path,
        "os.listdir": _path,
        "os.scandir": _path,
        # Under another name the host would not find it.
        "os.rename": _path,
        "os.link": _path,
        "sqlite3.connect": database_paths,
    }
)


ROWS: Final = 2_000
"""Rows of one call."""
_CHARS_MAX: Final = 500_000
"""Characters of one call, about: its frame is bounded."""
_VALUE_CHARS_MAX: Final = 100_000
_BATCH: Final = 10_000
_SEEN_MAX: Final = 500_000
"""Values that are remembered, so that each is sent once."""
_SMALL_NUMBER: Final = 10_000
"""No number below it names anybody."""
_DEEP: Final = 8

Batch = Mapping[str, Sequence[Any]]
"""Some rows of a table, as the values of each column."""
Read = Callable[[str], Iterator[Batch]]


def reader_of(beginning: bytes) -> Read | None:
    """Return what reads a file that begins so, or None for one that is no such table."""
    if beginning.startswith(b"PAR1"):
        return _parquet
    if beginning.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return _arrow
    return _duckdb if beginning[8:12] == b"DUCK" else None


def rows_of(batches: Iterator[Batch]) -> Iterator[Json]:
    """Give the values of batches as rows, a list for each call."""
    seen: set[tuple[str, object]] = set()
    for batch in batches:
        columns = {name: _fresh(name, values, seen) for name, values in batch.items()}
        # What has a price is no person: the names of columns without texts are sent too.
        bare: dict[str, Json] = {name: 0 for name, values in columns.items() if not values}
        yield from _calls({name: values for name, values in columns.items() if values}, bare)


def _calls(columns: Mapping[str, Sequence[Json]], bare: Mapping[str, Json]) -> Iterator[Json]:
    rows: list[Json] = []
    chars = 0
    for at in range(max(map(len, columns.values()), default=0)):
        row = {name: values[at] for name, values in columns.items() if at < len(values)}
        rows.append({**bare, **row})
        chars += sum(len(value) if isinstance(value, str) else _BATCH // 100 for value in row.values())
        if len(rows) >= ROWS or chars >= _CHARS_MAX:
            yield rows
            rows, chars = [], 0
    if rows:
        yield rows


def _fresh(name: str, values: Sequence[Any], seen: set[tuple[str, object]]) -> list[Json]:
    fresh: list[Json] = []
    for value in values:
        plain = _plain(value)
        if plain is None:
            continue
        mark = (name, plain if isinstance(plain, str | int) else repr(plain))
        if mark in seen:
            continue
        if len(seen) < _SEEN_MAX:
            seen.add(mark)
        fresh.append(plain)
    return fresh


def _plain(value: object, deep: int = 0) -> Json:
    """Return what of a value may be personal as JSON, else None."""
    if isinstance(value, str):
        return value[:_VALUE_CHARS_MAX] or None
    if isinstance(value, bool | float) or value is None:
        return None
    if isinstance(value, int):
        return value if abs(value) >= _SMALL_NUMBER else None
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value[:_VALUE_CHARS_MAX].decode("utf-8", "replace") or None
    if isinstance(value, Mapping) and deep < _DEEP:
        return {str(key): _plain(each, deep + 1) for key, each in value.items()} or None
    if isinstance(value, list | tuple) and deep < _DEEP:
        return [_plain(each, deep + 1) for each in value] or None
    return None if isinstance(value, dt.time | dt.timedelta) else str(value)[:_VALUE_CHARS_MAX]


def _library(*names: str) -> str:
    """Return the first of these that is loaded, else the first that is installed. Raises `ImportError`."""
    for name in names:
        if name in sys.modules:
            return name
    for name in names:
        if find_spec(name) is not None:
            return name
    raise ImportError(f"none of {', '.join(names)} is installed")


def _parquet(path: str) -> Iterator[Batch]:
    library = _library("pyarrow", "polars", "duckdb")
    if library == "pyarrow":
        parquet = importlib.import_module("pyarrow.parquet")
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                yield _of_arrow(batch)
    elif library == "polars":
        yield from _of_polars(importlib.import_module("polars").scan_parquet(path, glob=False))
    else:
        yield from _asked("SELECT * FROM read_parquet(?)", [path])


def _arrow(path: str) -> Iterator[Batch]:
    if _library("pyarrow", "polars") == "polars":
        yield from _of_polars(importlib.import_module("polars").scan_ipc(path, glob=False))
        return
    arrow, ipc = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.ipc")
    with arrow.memory_map(path) as source:
        try:
            file = ipc.open_file(source)
        except arrow.ArrowInvalid:
            source.seek(0)
            batches: Iterator[Any] = iter(ipc.open_stream(source))
        else:
            batches = (file.get_batch(number) for number in range(file.num_record_batches))
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH):
                yield _of_arrow(batch.slice(start, _BATCH))


def _of_arrow(batch: Any) -> Batch:
    return {name: batch.column(number).to_pylist() for number, name in enumerate(batch.schema.names)}


def _of_polars(lazy: Any) -> Iterator[Batch]:
    start = 0
    while (frame := lazy.slice(start, _BATCH).collect()).height:
        yield cast("Batch", frame.to_dict(as_series=False))
        start += _BATCH


def _asked(query: str, given: Sequence[str]) -> Iterator[Batch]:
    with importlib.import_module("duckdb").connect() as connection:
        yield from _fetched(connection.execute(query, given))


def _fetched(cursor: Any) -> Iterator[Batch]:
    names = [str(each[0]) for each in cursor.description]
    while rows := cursor.fetchmany(_BATCH):
        yield dict(zip(names, zip(*rows, strict=True), strict=True))


def _duckdb(path: str) -> Iterator[Batch]:
    with importlib.import_module("duckdb").connect(path, read_only=True) as connection:
        tables = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary"
        ).fetchall()
        for names in tables:
            quoted = ".".join('"' + str(name).replace('"', '""') + '"' for name in names)
            yield from _fetched(connection.execute(f"SELECT * FROM {quoted}"))  # noqa: S608 - quoted
