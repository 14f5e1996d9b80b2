"""Installs packages for full Python: with pip, wherever it is, or with uv; and says what can be imported of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = "/"
"""Where an installer of an environment runs: each path that it is given is absolute."""
_PIP = (sys.executable, "-P", "-m", "pip")
_QUIET = ("--quiet", "--disable-pip-version-check")


@dataclass(frozen=True, slots=True)
class Installer:
    """What installs packages: `words` begin its command line."""

    words: tuple[str, ...]
    is_uv: bool = False

    def install(self, arguments: Sequence[str], *, python: str = sys.executable) -> list[str]:
        """Return the command that installs for an interpreter; wheels only, since a build script would run as the user.

        pip takes `--python` from 22.3 on.
        """
        if self.is_uv:
            return [*self.words, "install", "--python", python, "--only-binary", ":all:", *arguments]
        other = () if python == sys.executable else ("--python", python)
        return [*self.words, *_QUIET, *other, "install", "--only-binary", ":all:", *arguments]


def find_installer() -> Installer | None:
    """Find pip, installed or as the wheel that comes with Python (ensurepip), or uv; None where there is neither.

    What the current folder holds may be an agent's: no `pip.py` is taken of it, and no settings by one run in `FOLDER`.
    """
    tried = subprocess.run([*_PIP, "--version"], capture_output=True, cwd=FOLDER, check=False)
    if tried.returncode == 0:
        return Installer(_PIP)
    bundled = sorted(Path(sysconfig.get_path("stdlib"), "ensurepip", "_bundled").glob("pip-*.whl"))
    if bundled:
        return Installer((sys.executable, f"{bundled[-1]}/pip"))
    uv = shutil.which("uv")
    return None if uv is None else Installer((uv, "pip", "--quiet"), is_uv=True)


def modules_in(folder: Path) -> tuple[str, ...]:
    """Name what can be imported from a folder of packages."""
    names = {
        entry.name.partition(".")[0]
        for entry in folder.iterdir()
        if (entry.is_dir() and any(entry.rglob("*.py"))) or entry.suffix in (".py", ".so")
    }
    return tuple(sorted(name for name in names if name.isidentifier()))
