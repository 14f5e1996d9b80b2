"""The restricted dialect runs on the versions of Python that it was examined on, and on no other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from sealab.sandbox.python_versions import WALKED

ROOT = Path(__file__).resolve().parents[2]
_VERSIONS = [f"{major}.{minor}" for major, minor in WALKED]
_AS_ANOTHER_VERSION = """
import collections, sys
import sealab.server.app, sealab.server.cli, sealab.server.interfaces.commands.doctor, sealab.skills_db.skills, sealab.skills_db.sql
version = collections.namedtuple("version_info", "major minor micro releaselevel serial")
sys.version_info = version(*map(int, sys.argv[1].split(".")), 0, "final", 0)
raise SystemExit(sealab.server.cli.main(sys.argv[2:]))
"""


def sealab_on(version: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _AS_ANOTHER_VERSION, version, *arguments],
        input="6 * 7", env=os.environ | {"SEALAB_REQUIRED_LEVEL": "limits"} | env,
        capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip


def test_the_table_of_versions_and_the_package_say_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: Python :: \d+\.\d+$", line)]
    first, (major, minor) = WALKED[0], WALKED[-1]

    assert named == _VERSIONS
    assert project["requires-python"] == f">={first[0]}.{first[1]},<{major}.{minor + 1}"
    assert list(WALKED) == [(major, number) for number in range(first[1], minor + 1)]


def test_every_version_in_the_table_is_tested() -> None:
    assert f"for version in {' '.join(_VERSIONS[1:-1])};" in (ROOT / ".ci/run").read_text()
    assert f"Python {_VERSIONS[-1]}" in (ROOT / "tests/py314/package.json").read_text()
    assert "make py314" in (ROOT / ".ci/run").read_text()


@pytest.mark.parametrize("version", ["3.15", "4.0", "3.10"])
@pytest.mark.parametrize("command", [("run", "-"), ("serve",)])
def test_a_version_that_was_not_examined_is_refused_at_start(
    version: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    ended = sealab_on(version, *command, "--home", str(tmp_path))

    assert ended.returncode not in {0, 1}
    assert f"was not examined on Python {version}" in ended.stderr
    assert f"Install sealab for Python {_VERSIONS[0]} to {_VERSIONS[-1]}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "42" not in ended.stdout


def test_the_sandbox_itself_makes_no_restricted_worker_on_such_a_version() -> None:
    program = dedent("""
        import sys
        from sealab.sandbox.worker.runner import dialect_of
        from sealab.sandbox.errors import LevelMissing
        from sealab.sandbox.job import Isolation
        sys.version_info = (3, 15, 0, "final", 0)
        print(type(dialect_of(Isolation.PROCESS)).__name__)
        try:
            dialect_of(Isolation.RESTRICTED)
        except LevelMissing as missing:
            print(missing)
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50)

    full_python, refusal = ran.stdout.splitlines()
    assert full_python == "FullPython"
    assert "was not examined on Python 3.15" in refusal


def test_full_python_needs_no_examined_version(tmp_path: Path) -> None:
    ended = sealab_on("3.15", "run", "-", "--home", str(tmp_path), SEALAB_ALLOWED_ISOLATION="process")

    assert (ended.returncode, ended.stdout.split()) == (0, ["42"]), ended.stderr


def test_doctor_names_the_version(tmp_path: Path) -> None:
    refused = sealab_on("3.15", "doctor", "--json", "--home", str(tmp_path))
    findings = json.loads(refused.stdout)
    (language,) = [layer for layer in findings["layers"] if layer["layer"] == "language"]

    assert refused.returncode == 1
    assert findings["ok"] is False
    assert (language["available"], language["active"]) == (False, False)
    assert "Python 3.15" in language["why"]
    assert "uvx --python" in language["do"]
