"""`os.path` as arithmetic on text. Nothing here asks a file system; the current folder is taken to be `/`."""

from __future__ import annotations

import os
import posixpath

__all__ = ["abspath", "realpath", "relpath"]


def abspath(path: str | os.PathLike[str]) -> str:
    """Return `path` made absolute from `/`, without `.` and `..`."""
    return posixpath.normpath(posixpath.join("/", os.fspath(path)))


def realpath(path: str | os.PathLike[str], *, strict: bool = False) -> str:  # noqa: ARG001 - Python's own signature
    """Return `abspath(path)`: there are no links."""
    return abspath(path)


def relpath(path: str | os.PathLike[str], start: str | os.PathLike[str] = "/") -> str:
    """Return `path` as seen from `start`."""
    steps = [step for step in abspath(path).split("/") if step]
    origin = [step for step in abspath(start).split("/") if step]
    common = len(posixpath.commonprefix([steps, origin]))
    return posixpath.join(*[".."] * (len(origin) - common), *steps[common:]) if steps != origin else "."
