"""The pure paths of `pathlib`: arithmetic on text, from which the guest module of that name derives `Path`."""

from __future__ import annotations

import ntpath
import pathlib
import posixpath
from typing import Any

from ....guest.facade import make

__all__ = ["PurePath", "PurePosixPath", "PureWindowsPath"]

_FLAVOUR = """
altsep basename commonpath commonprefix curdir dirname extsep isabs isreserved join normcase normpath pardir pathsep
sep split splitdrive splitext splitroot
"""


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
