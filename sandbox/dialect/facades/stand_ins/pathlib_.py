"""`pathlib` as arithmetic on text. `Path` joins, splits and compares; what touches a file says what to use instead."""

from __future__ import annotations

import ntpath
import pathlib
import posixpath
from typing import Any, NoReturn

from ..facade import make
from . import os_path_

__all__ = ["Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath"]

_FLAVOUR = """
altsep basename commonpath commonprefix curdir dirname extsep isabs isreserved join normcase normpath pardir pathsep
sep split splitdrive splitext splitroot
"""
_OF_FILES = """
chmod cwd exists expanduser glob group hardlink_to home is_block_device is_char_device is_dir is_fifo is_file
is_junction is_mount is_socket is_symlink iterdir lchmod lstat mkdir open owner read_bytes read_text readlink rename
replace rglob rmdir samefile stat symlink_to touch unlink walk write_bytes write_text
"""
_INSTEAD = {
    "read_text": "read_file(name)",
    "read_bytes": "read_file(name, encoding=None)",
    "open": "read_file(name) or write_file(name, content)",
    "write_text": "write_file(name, content)",
    "write_bytes": "write_file(name, content)",
    "unlink": "delete_file(name)",
}


def _flavour(module: Any) -> Any:
    """Return what `PurePath.parser` may show of a path module: from 3.13 on the attribute is public."""
    return make("os.path", {name: getattr(module, name) for name in _FLAVOUR.split() if hasattr(module, name)})


class PurePosixPath(pathlib.PurePosixPath):
    """A path with `/` between its parts."""

    __slots__ = ()
    parser = _flavour(posixpath)


class PureWindowsPath(pathlib.PureWindowsPath):
    """A Windows path."""

    __slots__ = ()
    parser = _flavour(ntpath)


PurePath = PurePosixPath


class PosixPath(PurePosixPath):
    """A path of the workspace's kind, with nothing behind it."""

    __slots__ = ()

    def absolute(self) -> PosixPath:
        """Return the path from `/`."""
        return type(self)("/", self)

    def resolve(self, strict: bool = False) -> PosixPath:  # noqa: ARG002 - Python's own signature
        """Return the path from `/`, without `.` and `..`."""
        return type(self)(os_path_.abspath(str(self)))


def _refusing(name: str) -> Any:
    instead = _INSTEAD.get(name, "the helpers read_file, write_file, list_files and delete_file")

    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        raise NotImplementedError(f"Path.{name}() is not available, since paths are only text here. Use {instead}.")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


for _name in _OF_FILES.split():
    setattr(PosixPath, _name, _refusing(_name))

Path = PosixPath
