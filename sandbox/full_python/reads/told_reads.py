"""Tells the host which files of the workspace the code is about to open, where it has to know what is in them.

Python says so itself, by an audit hook; of libraries that open files in native code `native_reads` says it. What is
text or packed the host looks through; the tables of Arrow, parquet and DuckDB are read here and told row by row.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote, urlsplit

from ...guest.guest import GUEST
from . import table_contents

WORKSPACE: Final = "/workspace"
_BEGINNING_BYTES: Final = 16
_TOLD: set[tuple[str, int, int, int]] = set()
"""The tables of which the host knows all, as they were."""
_EVERYTHING: set[tuple[int, str, int, int, int]] = set()
"""What `tell_everything` told: the number of the run, and each file as it was."""
_FILES_MAX: Final = 10_000
_OWN = threading.local()


def tell(event: str, arguments: tuple[object, ...]) -> None:
    """Ask the host before something is opened: an audit hook. Raises what the host says, and then nothing is opened."""
    said = _SAID.get(event)
    if said is None or not GUEST.tells_reads or is_own():
        return
    for path in said(arguments[0] if arguments else None):
        if tell_path(path):
            return


def tell_path(path: str) -> bool:
    """Have the host know what a file or a folder of the workspace holds; return whether it is one.

    Raises what the host says, and `PermissionError` for a table that cannot be read: then it must not be opened.
    """
    if path != WORKSPACE and not path.startswith(f"{WORKSPACE}/"):
        return False
    if os.path.lexists(path):
        GUEST.call_host("learn_path", {"filename": path})
        with as_own():
            _tell_table(path)
    return True


def tell_everything() -> None:
    """Have the host know all files of the workspace: one of them is read, and which one is not seen.

    Raises as `tell_path`, and `PermissionError` where there are too many.
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
                tell_path(path)
                _EVERYTHING.add(mark)


def is_own() -> bool:
    """Return whether this thread reads for the host just now."""
    return bool(getattr(_OWN, "reads", False))


@contextmanager
def as_own() -> Iterator[None]:
    """Have this thread read for the host: nothing of it is told."""
    before, _OWN.reads = is_own(), True
    try:
        yield
    finally:
        _OWN.reads = before


def _tell_table(path: str) -> None:
    try:
        status = os.stat(path)
        mark = (path, status.st_ino, status.st_size, status.st_mtime_ns)
        if mark in _TOLD or not os.path.isfile(path):
            return
        with open(path, "rb") as file:
            beginning = file.read(_BEGINNING_BYTES)
    except OSError:
        return  # the code cannot open it either
    read = table_contents.reader_of(beginning)
    if read is None:
        return
    try:
        for rows in table_contents.rows_of(read(path)):
            GUEST.call_host("learn_rows", {"rows": rows})
    except Exception as error:
        raise PermissionError(
            f"{os.path.basename(path)!r} cannot be read here: it could not be looked through for personal data "
            f"({type(error).__name__}: {str(error)[:200]}). Write it as CSV, or ask for more memory or time."
        ) from error
    _TOLD.add(mark)


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
