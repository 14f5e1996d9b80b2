"""Builds the environment of full Python: from a lock with hashes, or the newest one with packages added.

Each build has a folder of its own and takes its place by one rename, so one that fails leaves the one before, and
servers that run go on with what they have. So does one of which a package cannot be imported. pip keeps no cache
outside the home.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path

from ....sandbox.installing import FOLDER, find_installer, modules_in
from ...base.errors import PythonNotBuilt
from .environment import CURRENT, LOCK_FILE, MANIFEST, ManagedPython, current, keep_problem
from .import_check import check

_BUILDS_KEPT = 2
_INSTALL_SECONDS = 1800
_MIB = 1024 * 1024
_SAID_LINES = 3
_BROKEN_CONNECTION = "after connection broken by '"
"""What pip says of a connection that it tries again, before the error."""
_ERROR_OF_CONNECTION = re.compile(r"\w+\([\"'](.+?)[\"'][,)]")

OnStep = Callable[[str], None]


def set_up(
    folder: Path, tell: OnStep, *, lock: Path = LOCK_FILE, wheels: Sequence[Path] = (), is_fresh: bool = False
) -> ManagedPython:
    """Build the environment from a lock with hashes; one that holds just that already is returned as it is.

    With `wheels`, folders of wheel files, nothing is asked of an index. What was added before is added again, unless it
    `is_fresh`: then it is built in any case, of the lock alone. Raises `PythonNotBuilt`, with what to do, when it
    cannot be built; then the one before stays.
    """
    wanted = hashlib.sha256(_read(lock)).hexdigest()
    with _alone(folder, tell):
        before = None if is_fresh else current(folder)
        if before is not None and (before.lock, before.python_version) == (wanted, platform.python_version()):
            keep_problem(folder, None)
            return before
        with _new_build(folder) as build:
            tell("Making an environment")
            _run([sys.executable, "-I", "-m", "venv", "--without-pip", str(build)], "An environment cannot be made")
            tell("Installing the packages for data work, which takes some minutes")
            _install(build, ["--require-hashes", "-r", str(lock.absolute())], wheels)
            added = () if before is None else before.added
            if added:
                tell(f"Installing {', '.join(added)}, with what they need")
                _add(build, added, wheels)
            _check(folder, build, tell)
            _finish(folder, build, added=added, lock=wanted)
        return _built(folder)


def add(folder: Path, packages: Sequence[str], tell: OnStep, *, wheels: Sequence[Path] = ()) -> ManagedPython:
    """Add packages to the environment, without changing the versions that are in it. Raises as `set_up`."""
    with _alone(folder, tell):
        before = current(folder)
        if before is None:
            raise PythonNotBuilt("There is no environment to add packages to. Run `sealab data setup` first.")
        with _new_build(folder) as build:
            tell("Copying the environment")
            # Installers put new files in the place of old ones and change none, so the copy can share them.
            shutil.copytree(folder / before.build, build, symlinks=True, dirs_exist_ok=True, copy_function=os.link)
            (build / MANIFEST).unlink()
            tell(f"Installing {', '.join(packages)}, with what they need")
            _add(build, packages, wheels)
            _check(folder, build, tell)
            _finish(folder, build, added=tuple(dict.fromkeys((*before.added, *packages))), lock=before.lock)
        return _built(folder)


def _add(build: Path, packages: Sequence[str], wheels: Sequence[Path]) -> None:
    pinned = "".join(f"{name}=={version}\n" for name, version in _versions(build).items())
    constraints = build / "constraints.txt"
    constraints.write_text(pinned, encoding="utf-8")
    _install(build, ["--constraint", str(constraints), "--", *packages], wheels)
    constraints.unlink()


def _install(build: Path, arguments: Sequence[str], wheels: Sequence[Path]) -> None:
    installer = find_installer()
    if installer is None:
        raise PythonNotBuilt("Packages cannot be installed without pip. Run `python -m ensurepip`, or install uv.")
    options = ["--no-cache-dir"] if not installer.is_uv else ["--no-cache", "--compile-bytecode"]
    if wheels:
        options += ["--no-index", *(option for each in wheels for option in ("--find-links", str(each.absolute())))]
    command = installer.install([*options, *arguments], python=str(build / "bin" / "python"))
    advice = "Look for a misspelt name, and whether pip reaches its index; or give wheel files with --wheels DIR."
    _run(command, "The packages cannot be installed", advice)


def _run(command: Sequence[str], what: str, advice: str = "Try again, or run sealab with another Python.") -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=FOLDER, timeout=_INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise PythonNotBuilt(f"{what}: it took more than {_INSTALL_SECONDS:g} seconds. {advice}") from None
    if done.returncode:
        raise PythonNotBuilt(f"{what}: {_reason_in(done.stderr or done.stdout)}. {advice}")


def _reason_in(said: str) -> str:
    """Return why an installer failed, by what it said last; one that found no index complains of packages there."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    reason = " ".join(lines[-_SAID_LINES:]).rstrip(".") or "the installer failed"
    after = said.split(_BROKEN_CONNECTION)[1:]
    if broken := [found[1] for each in after if (found := _ERROR_OF_CONNECTION.match(each))]:
        last = lines[-1].removeprefix("ERROR: ").rstrip(".")
        reason = f"the index cannot be reached ({broken[-1].rpartition('>: ')[2]}), so: {last}"
    return reason


def _check(folder: Path, build: Path, tell: OnStep) -> None:
    """Import each package once. Raises `PythonNotBuilt`, and keeps for `sealab data status` which cannot be."""
    tell("Importing each package once, in the sandbox")
    try:
        check(build / "bin" / "python", _site_packages(build))
    except PythonNotBuilt as error:
        keep_problem(folder, str(error))
        raise


@contextmanager
def _alone(folder: Path, tell: OnStep) -> Iterator[None]:
    """Keep other builds away (flock(2)): the folder is made if it is not there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _no_room(folder, error) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Waiting for another build")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for build in folder.glob("build-*"):
            if not (build / MANIFEST).exists():  # of a process that was killed
                shutil.rmtree(build, ignore_errors=True)
        yield
    finally:
        os.close(lock)


@contextmanager
def _new_build(folder: Path) -> Iterator[Path]:
    """Give a folder for a build, which is removed if the build fails."""
    try:
        build = Path(tempfile.mkdtemp(prefix="build-", dir=folder)).absolute()
        try:
            yield build
        except BaseException:
            shutil.rmtree(build, ignore_errors=True)
            raise
    except OSError as error:
        raise _no_room(folder, error) from error


def _no_room(folder: Path, error: OSError) -> PythonNotBuilt:
    return PythonNotBuilt(f"The environment cannot be built: {error}. Make room in {folder}, or try again.")


def _finish(folder: Path, build: Path, *, added: tuple[str, ...], lock: str) -> None:
    """Write the manifest, make the build the newest, and remove those that are too old to be in use."""
    manifest = {
        "python_version": platform.python_version(),
        "packages": _versions(build),
        "modules": modules_in(_site_packages(build)),
        "added": added,
        "lock": lock,
        "megabytes": round(sum(file.lstat().st_size for file in build.rglob("*") if file.is_file()) / _MIB),
    }
    (build / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    os.utime(build)
    pointer = folder / f"{CURRENT}.new"
    pointer.unlink(missing_ok=True)
    pointer.symlink_to(build.name)
    pointer.replace(folder / CURRENT)
    keep_problem(folder, None)
    builds = sorted(folder.glob("build-*"), key=lambda each: each.stat().st_mtime, reverse=True)
    for old in builds[_BUILDS_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _built(folder: Path) -> ManagedPython:
    built = current(folder)
    if built is None:
        raise PythonNotBuilt(f"The environment in {folder} cannot be used. Remove the folder, and set it up again.")
    return built


def _versions(build: Path) -> dict[str, str]:
    found = distributions(path=[str(_site_packages(build))])
    return dict(sorted((each.metadata["Name"], each.version) for each in found))


def _site_packages(build: Path) -> Path:
    return next((build / "lib").glob("python3.*")) / "site-packages"


def _read(lock: Path) -> bytes:
    try:
        return lock.read_bytes()
    except OSError as error:
        raise PythonNotBuilt(
            f"The lock {lock} cannot be read: {error.strerror}. Name a file of requirements."
        ) from None
