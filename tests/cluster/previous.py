"""The release before this one, from the history of the repository: what a rolling deploy begins with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sealab.skills_db.migrations import MIGRATIONS

from .report import LeftOutError

ROOT = Path(__file__).resolve().parents[2]
_MIGRATIONS = "skills_db/migrations.py"
_NAMES = (
    "import dataclasses; from sealab.server.settings import Settings; from sealab.skills_db.migrations import MIGRATIONS;"
    " print(MIGRATIONS[0].name, *(field.name.upper() for field in dataclasses.fields(Settings)))"
)


class Previous:
    """A release in a folder: the environment that has an interpreter import it, and the settings that it knows."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.environment = {"PYTHONPATH": os.fspath(folder / ".import")}
        self.first_step, *settings = subprocess.run(
            [sys.executable, "-P", "-c", _NAMES],
            env=os.environ | self.environment, capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        self.settings = set(settings)


def previous_release(folder: Path, name: str | None = None) -> Previous:
    """Write a commit to a folder: by default the last one whose database is older than ours.

    Raises `LeftOutError` where there is no history, and for a release whose database is not read any more.
    """
    if name is None:
        changed = _git("rev-list", "-1", "--first-parent", "HEAD", "--", _MIGRATIONS).strip()
        name = _git("rev-parse", "--short", f"{changed}^").strip()
    folder.mkdir()
    with subprocess.Popen(["git", "-C", ROOT, "archive", name], stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "x", "-C", folder], stdin=packed.stdout, check=True)
    if packed.returncode:
        raise LeftOutError(f"the history has no {name}")
    previous = Previous(folder, name)
    if previous.first_step != MIGRATIONS[0].name:
        raise LeftOutError(f"{name} has a database of before the first release, which is not shared with this one")
    return previous


def _git(*arguments: str) -> str:
    told = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    if told.returncode:
        raise LeftOutError(f"no former release is in the history: {told.stderr.strip()[:200]}")
    return told.stdout
