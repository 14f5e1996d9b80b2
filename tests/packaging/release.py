"""Makes the files of a release in `dist/` but the bundle, checks them, and shows what a plain install brings: `make dist`.

    python -m tests.packaging.release TOOLS PLAIN

TOOLS is the folder with the programs of `requirements/packaging.txt`. PLAIN is made anew: a virtual environment with the
wheel and nothing else. The files have the time of the last commit, so that a build can be compared with another.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from .locks import ROOT, lock

DIST = ROOT / "dist"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*command: str | Path) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def build() -> Path:
    """Build the wheel and the sdist, and return the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", time.stdout.strip())
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    [wheel] = DIST.glob("*.whl")
    return wheel


def install_plainly(wheel: Path, plain: Path) -> Path:
    """Make the environment `plain` with the wheel and what it needs, in the locked versions; return its interpreter."""
    shutil.rmtree(plain, ignore_errors=True)
    run(sys.executable, "-m", "venv", "--without-pip", plain)
    python, needed = plain / "bin" / "python", plain / "requirements.txt"
    lock(needed, ["--constraint=requirements/base.txt", "pyproject.toml"])
    run(*PIP, "--python", python, "install", "--require-hashes", "-r", needed)
    run(*PIP, "--python", python, "install", "--no-deps", wheel)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=os.path.abspath)
    parser.add_argument("plain", type=os.path.abspath)
    chosen = parser.parse_args()
    tools, plain = Path(chosen.tools), Path(chosen.plain)
    wheel = build()
    run(tools / "twine", "check", "--strict", *DIST.iterdir())
    # The included skills are folders with scripts and tests, which are no modules: W004 says so of each. The licence of the
    # model of names is beside the model, and where licences of a wheel are looked for: W002.
    run(tools / "check-wheel-contents", "--ignore", "W002,W004", wheel)
    python = install_plainly(wheel, plain)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    described = ("--pyproject", "pyproject.toml", "--mc-type", "application", "--output-reproducible", "--validate")
    bill = DIST / f"sealab-{version}.cdx.json"
    run(tools / "cyclonedx-py", "environment", plain, *described, "--of", "JSON", "-o", bill)
    run(python, "tests/packaging/sizes.py")
    run(tools / "python", "tests/packaging/icon.py", DIST)
    run(sys.executable, "-m", "tests.packaging.provenance", DIST)


if __name__ == "__main__":
    main()
