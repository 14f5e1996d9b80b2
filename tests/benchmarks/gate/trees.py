"""The two trees that are compared, each installed from its own wheel into a folder of its own.

Both are built by `hatchling` from what git has: the base from its commit, the change from the working tree with what is
not committed, which is first written as a tree object. The packages they need are those of the environment that runs
this: a second environment would take longer than the whole comparison. Where the locks differ, the table says so.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement

from tests.packaging.sizes import bytes_of

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ("server", "sandbox", "tools_registry", "skills_db", "workspace")


class NoBaseError(Exception):
    """There is no commit to compare with."""


def git(*arguments: str, **environment: str) -> str:
    """Return what a git command writes. Raises `subprocess.CalledProcessError`."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, env=os.environ | environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def commit_of(name: str) -> str | None:
    """Return the id of a commit, if there is one of that name."""
    done = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        cwd=ROOT,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip() or None


def default_base() -> str:
    """Return the newest commit on main that is no part of the change. Raises `NoBaseError`.

    On a branch that is where it left main. On main itself it is HEAD while something is not committed; then what the
    remote has of main, if HEAD is ahead of it; else the first parent of HEAD, that is main before the last landing. A
    clone whose last landing was several commits has no trace of where it began: say GATE_BASE there.
    """
    main = commit_of("main") or commit_of("origin/main")
    head = commit_of("HEAD")
    if main is not None and head is not None:
        left = git("merge-base", head, main)
        if left != head:
            return left
        if git("status", "--porcelain", "--untracked-files=no"):
            return head
        remote = commit_of("origin/main")
        if remote is not None and remote != head and git("merge-base", head, remote) == remote:
            return remote
    parent = commit_of("HEAD^")
    if parent is None:
        raise NoBaseError("There is no commit to compare with. Fetch more of the history, or say GATE_BASE=COMMIT.")
    return parent


def working_tree(folder: Path) -> str:
    """Return the id of a tree object with what the working tree holds, whether committed or not, but ignored files.

    The index of the user stays as it is: git adds to a copy of it in `folder`.
    """
    index = folder / "index"
    shutil.copyfile(ROOT / git("rev-parse", "--git-path", "index"), index)
    git("add", "--all", GIT_INDEX_FILE=str(index))
    return git("write-tree", GIT_INDEX_FILE=str(index))


def changed_lines(base: str, tree: str) -> dict[str, Counter[str]]:
    """Return the lines "added" and "removed" between two trees, by folder; "source" is Python in the five folders."""
    found: dict[str, Counter[str]] = {"source": Counter()}
    for line in git("diff", "--numstat", "--no-renames", base, tree).splitlines():
        added, removed, path = line.split("\t")
        if added == "-":
            continue
        folder = path.partition("/")[0] if "/" in path else "."
        folders = [folder, "source"] if folder in SOURCE and path.endswith(".py") else [folder]
        for each in folders:
            found.setdefault(each, Counter()).update(added=int(added), removed=int(removed))
    return found


@dataclass(frozen=True)
class Installed:
    """A tree that can be run: `site` holds the package as its wheel holds it, compiled."""

    name: str
    site: Path
    lock: bytes
    """The packages that it was made for."""
    missing: tuple[str, ...]
    """Packages that it requires and that are not installed here."""
    wheel_bytes: int
    install_bytes: int
    """The size of a default install: the package and what it requires, without what Python compiles of them."""

    @cached_property
    def environment(self) -> dict[str, str]:
        """The environment of its processes: that of this one without sealab's own variables."""
        plain = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SEALAB_", "PYTHON")) and key not in {"CI", "WRAPPER"}
        }
        return plain | {"PYTHONPATH": str(self.site), "SEALAB_REQUIRED_LEVEL": "limits"}


def install(name: str, tree: str, folder: Path) -> Installed:
    """Build the wheel of a commit or a tree object and unpack it below `folder`, as pip does."""
    source, site, out = folder / "source", folder / "site", folder / "dist"
    source.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", tree], cwd=ROOT, stdout=subprocess.PIPE)
    with archive:
        subprocess.run(["tar", "-x", "-C", str(source)], stdin=archive.stdout, check=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=source,
        env=os.environ | {"SOURCE_DATE_EPOCH": "315619200"},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(site)
    own = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    sizes, missing = _needed(tomllib.loads((source / "pyproject.toml").read_text())["project"]["dependencies"])
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", str(site)], check=True)
    return Installed(
        name,
        site,
        _lock(source).read_bytes(),
        tuple(missing),
        wheel.stat().st_size,
        own + sum(sizes.values()),
    )


def _lock(source: Path) -> Path:
    """Return the lock of a plain install; trees before `requirements/` have it at the top."""
    lock = source / "requirements" / "base.txt"
    return lock if lock.exists() else source / "requirements.txt"


def _needed(lines: list[str]) -> tuple[dict[str, int], list[str]]:
    """Return the bytes of each installed package that these requirements reach, and those that are not installed."""
    sizes: dict[str, int] = {}
    missing = []
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(line), "") for line in lines]
    while waiting:
        needed, extra = waiting.pop()
        if needed.marker is not None and not needed.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", needed.name).lower()
        asked = {"", *needed.extras}
        if all((name, each) in seen for each in asked):
            continue
        seen |= {(name, each) for each in asked}
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
            continue
        sizes[name] = bytes_of(found)
        waiting += [(Requirement(line), each) for line in found.requires or () for each in asked]
    return sizes, sorted(missing)
