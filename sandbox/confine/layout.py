"""Says which files a worker finds in its root, and may read by Landlock, by what its isolation needs."""

from __future__ import annotations

import os
import sys
import sysconfig
import zoneinfo
from collections.abc import Iterable

from ..job import Isolation
from .root import Layout

WORKSPACE = "/workspace"
SCRATCH = "/tmp"  # noqa: S108 - a tmpfs of the worker's own, not the shared directory
RUN_FOLDERS = "/.runs"
"""Where the folders of all workers are that may write to the workspace; see `overlay`."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")

_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_LIBRARY_CACHE = "/etc/ld.so.cache"
_LINKED_FOLDERS = ("/lib", "/lib64", "/lib32", "/usr/lib64")


def layout_for(
    isolation: Isolation, workspace: str | None, run_folders: str | None = None, *, packages: bool = False
) -> Layout:
    """Describe the root of a zygote that is this process, and its workers.

    `restricted` needs the standard library and the time zones, which are imported and read late; the packages of the
    machine are none of its business, unless it is to have the `packages` of this process. Full Python gets them too,
    with the shared libraries of the system's C library, a few devices, its scratch directory, the workspace, and the
    directory `run_folders`.
    """
    library = _existing({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *_zipped_library()})
    zones = _existing(zoneinfo.TZPATH)
    if isolation is Isolation.RESTRICTED and packages:
        return Layout(readable=_outermost([*library, *zones, *_existing(filter(_holds_packages, sys.path))]))
    if isolation is Isolation.RESTRICTED:
        masked = _existing(os.path.join(path, folder) for path in library for folder in _PACKAGE_FOLDERS)
        return Layout(readable=_outermost([*library, *zones]), masked=masked)
    code = _outermost([*library, *_existing(filter(_holds_packages, sys.path)), *_mapped_libraries()])
    return Layout(
        readable=_outermost([*code, *zones, *_existing([_LIBRARY_CACHE])]),
        code=frozenset(code),
        devices=_existing(DEVICES),
        placed={} if workspace is None else {WORKSPACE: workspace},
        changeable={} if run_folders is None else {RUN_FOLDERS: run_folders},
        links={path: os.readlink(path) for path in _LINKED_FOLDERS if os.path.islink(path)},
        empty=(SCRATCH,),
    )


def _holds_packages(path: str) -> bool:
    return os.path.basename(path.rstrip("/")) in _PACKAGE_FOLDERS


def _zipped_library() -> list[str]:
    return [path for path in sys.path if path.endswith(".zip") and os.path.isfile(path)]


def _mapped_libraries() -> list[str]:
    """Give the directories of the shared libraries that this process runs on: others lie there (proc(5), maps)."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        files = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count("/") and ".so" in line}
    return _existing({os.path.dirname(file) for file in files})


def _existing(paths: Iterable[str]) -> list[str]:
    return sorted({path for path in paths if os.path.exists(path)})


def _outermost(paths: Iterable[str]) -> list[str]:
    """Leave out what lies beneath another of the paths."""
    kept: list[str] = []
    for path in sorted({os.path.normpath(path) for path in paths}):
        if not any(path.startswith(outer.rstrip("/") + "/") for outer in kept):
            kept.append(path)
    return kept
