"""Security boundary: the files of packages that the operator installed, as code reads them.

All are read before a worker is confined, and kept in memory: a path below `ROOT` is a key, and never a path of the
machine. They cannot be written. Beyond `PACKAGE_DATA_BYTES_MAX` there are none, nor those of tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = "/packages"
"""Where code finds what was installed: modules have their `__file__` below it."""
PACKAGE_DATA_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of the files of one package, in the order of their names."""
TESTS: Final = frozenset({"test", "tests"})
_COMPILED: Final = frozenset({".pyc", ".so", ".pyd"})

_files: dict[str, bytes] = {}
_folders: dict[str, set[str]] = {}


def read(folder: Path, name: str) -> None:
    """Take the files of a package but for compiled code, hidden files, tests and links. Raises `OSError`."""
    left = PACKAGE_DATA_BYTES_MAX
    for path in sorted((folder / name).rglob("*")):
        parts = path.relative_to(folder).parts
        is_left_out = path.suffix in _COMPILED or any(part.startswith(".") or part in TESTS for part in parts)
        if is_left_out or path.is_symlink() or not path.is_file() or (size := path.stat().st_size) > left:
            continue
        left -= size
        add(ROOT, parts, path.read_bytes()[:size])


def add(root: str, parts: Sequence[str], data: bytes) -> None:
    """Let code read `data` as a file below `root`."""
    _files["/".join((root, *parts))] = data
    for length, part in enumerate(parts):
        _folders.setdefault("/".join((root, *parts[:length])), set()).add(part)


def file(path: str) -> bytes | None:
    """Return what is in a file, by its path as code gives it."""
    return _files.get(path)


def folder(path: str) -> list[str] | None:
    """Return the names in a folder, sorted."""
    names = _folders.get(path)
    return None if names is None else sorted(names)
