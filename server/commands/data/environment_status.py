"""`sealab data`: makes the environment in which full Python has numpy, pandas and the like, and says how it stands."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ...errors import Exit, SettingsError, UsageError
from ..group import Begin, Options, add_commands
from ..terminal import print_error

if TYPE_CHECKING:
    from ...home import Home
    from ...managed_python.environment import ManagedPython
    from ...settings import Settings


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


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab data` its commands; `options` adds those that all commands have."""
    make = add_commands(parser, begin, options)
    setup = make(
        "setup",
        lambda chosen, _home: _set_up(chosen, *begin(chosen)),
        "make the environment with numpy, pandas, polars and the like, from a lock with hashes",
    )
    add_wheels_to(setup)
    setup.add_argument("--lock", metavar="FILE", type=Path, help="requirements with hashes, in place of sealab's own")
    setup.add_argument(
        "--fresh", action="store_true", help="make it anew of the lock alone, without what `sealab packages add` added"
    )
    make(
        "status",
        lambda chosen, _home: _status(chosen, *begin(chosen)),
        "show the environment and what is in it",
    )


def add_wheels_to(command: argparse.ArgumentParser) -> None:
    """Add the option that names folders of wheel files."""
    command.add_argument(
        "--wheels",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="a folder of wheel files: nothing is asked of an index",
    )


def judged_wheels(chosen: argparse.Namespace) -> list[Path]:
    """Return the folders of wheel files that were named. Raises `UsageError` for one that is not there."""
    for folder in chosen.wheels:
        if not folder.is_dir():
            raise UsageError(f"There is no folder {folder}. Name one that holds wheel files.")
    return [folder.absolute() for folder in chosen.wheels]


def tell_step(step: str) -> None:
    """Say on standard error what begins."""
    print_error(f"{step} …")


def print_status(chosen: argparse.Namespace, built: ManagedPython | None, home: Home, settings: Settings) -> int:
    """Print how the environment stands; the exit code says whether there is one."""
    status = status_of(built, home, settings)
    if chosen.json:
        print(json.dumps(status, ensure_ascii=False))
    elif built is None:
        print(status["note"])
    else:
        holds = ", ".join(f"{name} {version}" for name, version in status["packages"].items())
        print(f"Python {built.python_version}, {built.megabytes} MB in {status['folder']}, with {holds}.")
        if built.added:
            print(f"Added: {', '.join(built.added)}. `sealab data setup --fresh` makes it anew without.")
        print(status["note"])
    return Exit.OK if built is not None else Exit.FAILED


def status_of(built: ManagedPython | None, home: Home, settings: Settings) -> DataStatus:
    """Say how the environment stands, and whether code reaches it."""
    from ...managed_python.environment import last_problem
    from ...runs.isolations import why_no_process

    try:
        reason = why_no_process(settings, home)
    except SettingsError as error:
        reason = str(error)
    outdated = built is not None and built.lock != _own_lock()
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


def _own_lock() -> str:
    import hashlib

    from ...managed_python.environment import LOCK_FILE

    return hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()


def _set_up(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ...managed_python.building import set_up
    from ...managed_python.environment import LOCK_FILE

    home.prepare()
    lock = LOCK_FILE if chosen.lock is None else chosen.lock.absolute()
    built = set_up(home.python, tell_step, lock=lock, wheels=judged_wheels(chosen), is_fresh=chosen.fresh)
    return print_status(chosen, built, home, settings)


def _status(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ...managed_python.environment import current

    return print_status(chosen, current(home.python), home, settings)
