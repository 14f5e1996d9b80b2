"""What is known of the environment that full Python runs in where the operator named no interpreter.

Each build is a folder of its own below `<home>/python`, and the link `current` names the newest. Nothing here imports
what is in it: the server's own environment stays as small as it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

CURRENT = "current"
MANIFEST = "manifest.json"
_PROBLEM = "problem.txt"
LOCK_FILE = Path(__file__).with_name("requirements-data.txt")
"""The packages of `sealab[data]`, pinned and with hashes; `make lock` writes it."""


@dataclass(frozen=True, slots=True)
class ManagedPython:
    """One environment that was built.

    `python` is the path of its interpreter, which leads to the newest build. `packages` maps each distribution to its
    version, `modules` are the names that `import` finds beyond the standard library, `added` are the requirements of
    `sealab packages add`, `lock` is the SHA-256 of the lock that it was made from, in hexadecimal.
    """

    python: str
    build: str
    python_version: str
    packages: Mapping[str, str]
    modules: frozenset[str]
    added: tuple[str, ...]
    lock: str
    megabytes: int


def current(folder: Path) -> ManagedPython | None:
    """Return the newest environment below a folder, or None where there is none whose interpreter is still there."""
    try:
        build = os.readlink(f"{folder}/{CURRENT}")  # for each run: a path of `pathlib` takes ten times as long
    except OSError:
        return None
    found = _read(str(folder), build)
    return found if found is not None and os.access(found.python, os.X_OK) else None


def last_problem(folder: Path) -> str | None:
    """Return why the last attempt to make an environment left none in place; None where one did, or none was made."""
    try:
        return (folder / _PROBLEM).read_text(encoding="utf-8") or None
    except (OSError, ValueError):
        return None


def keep_problem(folder: Path, problem: str | None) -> None:
    """Keep, for `last_problem`, why none was put in place, or that there is nothing to say."""
    if problem is None:
        (folder / _PROBLEM).unlink(missing_ok=True)
    else:
        (folder / _PROBLEM).write_text(problem, encoding="utf-8")


@lru_cache(maxsize=64)
def _read(folder: str, build: str) -> ManagedPython | None:
    """Read the manifest of a build, which nothing changes later; a link that leads elsewhere is none of ours."""
    if os.path.basename(build) != build:
        return None
    try:
        manifest = json.loads((Path(folder) / build / MANIFEST).read_text(encoding="utf-8"))
        return ManagedPython(
            python=str(Path(folder) / CURRENT / "bin" / "python"),
            build=build,
            python_version=str(manifest["python_version"]),
            packages={str(name): str(version) for name, version in manifest["packages"].items()},
            modules=frozenset(map(str, manifest["modules"])),
            added=tuple(map(str, manifest["added"])),
            lock=str(manifest["lock"]),
            megabytes=int(manifest["megabytes"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


@lru_cache(maxsize=4)
def locked_packages(lock: Path) -> frozenset[str]:
    """Return the names of the distributions that a lock holds, in lower case."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return frozenset(
        line.partition("==")[0].strip().lower() for line in lines if "==" in line and not line.startswith(" ")
    )
