"""What the project promises about itself: no addresses in the locks, documents that agree with the program."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import grimp
import pytest
import yaml

from sealab.server.base.settings import Settings
from sealab.server.cli import make_parser
from sealab.server.interfaces.protocol.address import Address

ROOT = Path(__file__).resolve().parent.parent
GUEST_MODULES = ROOT / "sandbox" / "guest_modules"
DATA_LOCK = ROOT / "server" / "use_cases" / "managed_python" / "requirements-data.txt"
LOCKS = [*sorted(ROOT.glob("requirements/*.txt")), DATA_LOCK]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_names_hashes_for_every_package_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+==", entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]


@pytest.mark.parametrize("folder", ["conformance", "py314", "upstreams"])
def test_the_lock_of_npm_packages_names_no_address(folder: str) -> None:
    assert '"resolved"' not in (ROOT / "tests" / folder / "package-lock.json").read_text()


def test_every_dependency_of_the_project_stands_in_both_locks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=!~\[ ]", line)[0].lower().replace("_", "-") for line in project["dependencies"]}
    for lock in ("requirements/base.txt", "requirements/dev.txt"):
        locked = set(re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / lock).read_text().lower(), re.MULTILINE))
        assert names <= {name.replace("_", "-") for name in locked}


def test_the_lock_of_full_python_holds_every_package_of_the_data_extra() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["data"]
    locked = {_normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", DATA_LOCK.read_text(), re.MULTILINE)}
    assert {_normal(re.split(r"[<>=!~\[ ]", line)[0]) for line in extra} <= locked


def test_every_package_that_the_project_imports_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    declared = {_normal(re.split(r"[<>=!~\[ ]", line)[0]) for line in lines}
    distributions = packages_distributions()
    undeclared = {
        f"{file.relative_to(ROOT)}: {name}"
        for folder in ("server", "sandbox", "tools_registry", "skills_db", "workspace")
        for file in (ROOT / folder).rglob("*.py")
        if GUEST_MODULES not in file.parents  # data, which the dialect reads
        for name in _imported(file)
        if name not in sys.stdlib_module_names | {"_typeshed"}
        and not declared & {_normal(each) for each in distributions.get(name, ())}
    }
    assert undeclared == set()


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_the_tree_holds_nothing_outside_the_agreed_house() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("this is not a git checkout; run the tests in a clone to check the tree's layout")
    allowed = re.compile(
        r"pyproject\.toml|README\.md|Makefile|CHANGELOG\.md|CONTRIBUTING\.md|CODE_OF_CONDUCT\.md|SECURITY\.md|LICENSE"
        r"|mkdocs\.yml|requirements|server\.json|Dockerfile|compose\.yaml|server|sandbox|tools_registry|skills_db|workspace"
        r"|tests|docs|deploy|\..*"
    )
    assert {name.split("/")[0] for name in listed if not allowed.fullmatch(name.split("/")[0])} == set()


def test_no_modules_import_one_another_in_a_circle_not_even_late_or_for_a_type() -> None:
    folders = [f"sealab.{path.name}" for path in (ROOT / ".import" / "sealab").iterdir()]
    graph = grimp.build_graph(*folders, exclude_type_checking_imports=False, cache_dir=None)
    TopologicalSorter({each: graph.find_modules_directly_imported_by(each) for each in graph.modules}).prepare()


FOLDERS = ("sandbox", "server", "skills_db", "tools_registry", "workspace")


def _modules(top: str) -> list[Path]:
    return [
        path.relative_to(ROOT)
        for path in (ROOT / top).rglob("*.py")
        if path.name != "__init__.py" and GUEST_MODULES not in path.parents and "examples" not in path.parts
    ]


@pytest.mark.parametrize("top", FOLDERS)
def test_each_folder_says_its_idea(top: str) -> None:
    folders = {(ROOT / path).parent for path in _modules(top)}
    assert [
        folder for folder in folders if ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) is None
    ] == []


SMALL_LINES = 60
SMALL = {
    "sandbox.dialect.facades.stand_ins.random_seeds",  # functions are judged by the package that they are of
    "server.base.startup.light_import",  # imported where nothing else may be
}
"""Modules with one importer that are small for a reason."""


def test_no_module_is_small_and_imported_by_one_other() -> None:
    graph = grimp.build_graph(*(f"sealab.{top}" for top in FOLDERS), cache_dir=None)
    small = {
        name.removeprefix("sealab.")
        for top in FOLDERS
        for path in _modules(top)
        if len((ROOT / path).read_text().splitlines()) < SMALL_LINES
        and (name := f"sealab.{path.with_suffix('').as_posix().replace('/', '.')}") in graph.modules
        and len(graph.find_modules_that_directly_import(name)) == 1
    }
    assert small <= SMALL


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/security/design.md", "docs/security/finds.md"]
)
def test_every_file_that_a_page_points_to_is_there(page: str) -> None:
    named = re.findall(
        r"`((?:server|sandbox|tools_registry|skills_db|workspace|tests)/[\w/]+\.py)`", (ROOT / page).read_text()
    )
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_containers_of_the_compose_file_are_hardened_and_the_plain_one_serves_on_loopback() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert [name for name, service in services.items() if "profiles" not in service] == ["sealab"]
    options = make_parser().parse_args(services["sealab"]["command"])
    assert Address.parse(options.http).port > 0
    for service in services.values():
        _is_hardened(service)


def _is_hardened(service: dict[str, Any]) -> None:
    assert service["build"] == "."
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["stop_grace_period"].removesuffix("s")) >= Settings().drain_seconds + 10


def test_the_image_holds_every_folder_of_the_package_and_what_builds_it() -> None:
    text = (ROOT / "Dockerfile").read_text()
    copied = {name for line in re.findall(r"^COPY ([^-].*)$", text, re.MULTILINE) for name in line.split()[:-1]}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in copied} <= set(ignored)
    folders = {path.name for path in (ROOT / ".import" / "sealab").iterdir()}
    assert copied == folders | {
        ".import",
        "requirements/base.txt",
        "requirements/team.txt",
        "pyproject.toml",
        "README.md",
        "LICENSE",
    }
