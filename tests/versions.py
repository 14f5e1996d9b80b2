"""The tests that depend on the version of Python, on another one of this machine, in a virtual environment of its own.

They are what runs beside the code, and of the host what every request passes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_TESTS = (
    "tests/sandbox tests/workspace tests/skills_db tests/server/host_functions"
    " tests/server/protocol/web/test_http.py tests/server/protocol/web/test_authentication.py"
)


def found(version: str) -> str | None:
    """Return an interpreter of that version that can make virtual environments, from the PATH or from pyenv."""
    installed = sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for python in (shutil.which(f"python{version}"), *installed):
        if (
            python
            and subprocess.run([python, "-c", "import venv"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        ):
            return python
    return None


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    made.add_argument("version", choices=("3.11", "3.12", "3.13"))
    made.add_argument("variables", nargs="*", metavar="NAME=VALUE", help="variables of make for its target `unit`")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; return 0 too where there is no such interpreter, which is then said."""
    told = parser().parse_args(arguments)
    python = found(told.version)
    if python is None:
        print(f"There is no Python {told.version} on this machine: its tests did not run.")
        return 0
    venv = f"VENV=.venv{told.version.replace('.', '')}"
    for target in ([f"PYTHON={python}", "science"], [f"TESTS={_TESTS}", *told.variables, "unit"]):
        made = subprocess.run(["make", "--no-print-directory", venv, *target], check=False)
        if made.returncode:
            return made.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
