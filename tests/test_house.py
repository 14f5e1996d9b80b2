"""What the project promises about itself: no addresses in the locks, documents that agree with the program."""

from __future__ import annotations

import argparse
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from sealab.server.cli import make_parser
from sealab.server.settings import _NAMES

ROOT = Path(__file__).resolve().parent.parent
LOCKS = sorted(ROOT.glob("requirements*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_names_hashes_for_every_package_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+==", entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]


def test_the_lock_of_the_conformance_packages_names_no_address() -> None:
    assert '"resolved"' not in (ROOT / "tests" / "conformance" / "package-lock.json").read_text()


def test_every_dependency_of_the_project_stands_in_both_locks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=!~\[ ]", line)[0].lower().replace("_", "-") for line in project["dependencies"]}
    for lock in ("requirements.txt", "requirements-dev.txt"):
        locked = set(re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / lock).read_text().lower(), re.MULTILINE))
        assert names <= {name.replace("_", "-") for name in locked}


def test_the_tree_holds_nothing_outside_the_agreed_house() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("this is not a git checkout; run the tests in a clone to check the tree's layout")
    allowed = re.compile(
        r"pyproject\.toml|README\.md|Makefile|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|LICENSE|requirements.*\.txt"
        r"|server\.json|Dockerfile|compose\.yaml|server|sandbox|tools_registry|skills_db|workspace|tests|docs|\..*"
    )
    assert {name.split("/")[0] for name in listed if not allowed.fullmatch(name.split("/")[0])} == set()


@pytest.mark.parametrize("name", sorted(_NAMES))
def test_every_setting_stands_in_the_table_of_the_readme(name: str) -> None:
    table = (ROOT / "README.md").read_text().partition("## Settings")[2].partition("\n## ")[0]
    assert f"`{name}`" in table


def test_every_command_stands_in_the_table_of_the_readme() -> None:
    table = (ROOT / "README.md").read_text().partition("## From a terminal")[2].partition("\n## ")[0]
    commands = next(each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction))
    assert [name for name in commands.choices if f"| `sealab {name}" not in table] == []
