"""`sealab data`: makes the environment in which full Python has numpy, pandas and the like, and says how it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ...base.errors import Exit, SettingsError, UsageError
from ...base.home import Home
from ...base.settings import Settings
from ...use_cases.managed_python import building
from ...use_cases.managed_python.environment import LOCK_FILE, ManagedPython, current, last_problem
from ...use_cases.runs.isolations import why_no_process
from .command import Group
from .terminal import Here, Output, print_error

data = Group()


class DataStatus(TypedDict):
    """The environment of full Python, if there is one: where it is, its size on disk, and what is in it.

    `problem` says why the one that was made last was not put in place.
    """

    there: bool
    offered: bool
    folder: str
    python: str | None
    megabytes: int
    packages: dict[str, str]
    added: list[str]
    outdated: bool
    problem: str | None
    note: str


@data.command()
def setup(here: Here, *, wheels: Sequence[Path] = (), lock: Path = LOCK_FILE, fresh: bool = False) -> Output:
    """Make the environment with numpy, pandas, polars and the like, from a lock with hashes.

    wheels DIR: a folder of wheel files: nothing is asked of an index
    lock FILE: requirements with hashes, in place of sealab's own
    fresh: make it anew of the lock alone, without what `sealab packages add` added
    """
    here.home.prepare()
    built = building.set_up(here.home.python, print_step, lock=lock, wheels=judged_wheels(wheels), is_fresh=fresh)
    return status_output(here, built)


@data.command()
def status(here: Here) -> Output:
    """Show the environment and what is in it."""
    return status_output(here, current(here.home.python))


def judged_wheels(folders: Sequence[Path]) -> Sequence[Path]:
    """Return the folders of wheel files that were named. Raises `UsageError` for one that is not there."""
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"There is no folder {folder}. Name one that holds wheel files.")
    return folders


def print_step(step: str) -> None:
    """Print on standard error what begins."""
    print_error(f"{step} …")


def status_output(here: Here, built: ManagedPython | None) -> Output:
    """Return how the environment stands; the exit code says whether there is one."""
    status = status_of(built, here.home, here.settings)
    if built is None:
        return Output(status, status["note"], Exit.FAILED)
    holds = ", ".join(f"{name} {version}" for name, version in status["packages"].items())
    lines = [f"Python {built.python_version}, {built.megabytes} MB in {status['folder']}, with {holds}."]
    if built.added:
        lines.append(f"Added: {', '.join(built.added)}. `sealab data setup --fresh` makes it anew without.")
    return Output(status, [*lines, status["note"]])


def status_of(built: ManagedPython | None, home: Home, settings: Settings) -> DataStatus:
    """Show the state of the environment, and whether code reaches it."""
    try:
        reason = why_no_process(settings, home)
    except SettingsError as error:
        reason = str(error)
    outdated = built is not None and built.lock != hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()
    note = reason or 'Code that imports one of these runs in it, with isolation="auto" or "process".'
    if built is not None and outdated and not reason:
        note += " It was made from another lock than this version of sealab has: `sealab data setup` makes it anew."
    problem = last_problem(home.python)
    if problem is not None:
        note += f" The last attempt to make one failed: {problem}"
    return DataStatus(
        there=built is not None,
        offered=reason is None,
        folder=str(home.python),
        python=None if built is None else built.python_version,
        megabytes=0 if built is None else built.megabytes,
        packages={} if built is None else dict(built.packages),
        added=[] if built is None else list(built.added),
        outdated=outdated,
        problem=problem,
        note=note,
    )
