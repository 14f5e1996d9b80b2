"""What a release consists of agrees with the program; `make dist`, `make bundle` and `make image` try the rest."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest

from sealab.server.base.settings import _NAMES, Settings
from sealab.server.cli import make_parser
from sealab.server.interfaces.protocol.address import Address

from .bundle import SOURCE, command_of, project_of
from .buttons import buttons
from .first_answer import WAYS
from .provenance import CHECKSUMS, STATEMENT

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENTRY = json.loads((ROOT / "server.json").read_text())
MANIFEST = json.loads((SOURCE / "manifest.json").read_text())


def test_the_registry_entry_is_valid_by_the_schema_of_the_registry() -> None:
    schema = json.loads((HERE / "server.schema.json").read_text())
    assert schema["$id"] == ENTRY["$schema"]
    checked = jsonschema.Draft7Validator(schema)
    assert [each.message for each in checked.iter_errors(ENTRY)] == []
    assert list(checked.iter_errors({**ENTRY, "description": "x" * 101})), "which the schema refuses"


@pytest.mark.parametrize("package", ENTRY["packages"], ids=lambda each: each["transport"]["type"])
def test_the_registry_entry_says_what_the_program_takes(package: Mapping[str, Any]) -> None:
    assert (package["identifier"], package["version"], ENTRY["version"]) == (
        PROJECT["name"], PROJECT["version"], PROJECT["version"],
    )  # fmt: skip
    for variable in package["environmentVariables"]:
        name = variable["name"].removeprefix("SEALAB_")
        assert name == "HOME" or name in _NAMES
        if "choices" in variable:
            default = getattr(Settings(), name.lower())
            assert set(variable["choices"]) == {each.value for each in type(default)}
            assert variable["default"] == default.value


def test_the_registry_entry_starts_sealab_over_both_transports() -> None:
    over_stdio, over_http = ENTRY["packages"]
    assert over_stdio["transport"] == {"type": "stdio"}
    assert "packageArguments" not in over_stdio
    words = [each["value"] if each["type"] == "positional" else f"{each['name']}={each['value']}" for each in over_http["packageArguments"]]  # fmt: skip
    address = Address.parse(make_parser().parse_args(words).http)
    url = urlsplit(over_http["transport"]["url"])
    assert (url.hostname, url.port, url.path) == (address.ip, address.port, "/mcp")


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_the_buttons_of_a_page_install_what_the_registry_entry_says(page: str) -> None:
    text = (ROOT / page).read_text()
    assert buttons("pictures" if page.startswith("docs") else "docs/pictures") in text
    found = [parse_qs(urlsplit(each).query) for each in re.findall(r"\((https://\S+/install\S*)\)", text)]
    assert [each["name"] for each in found] == [[ENTRY["title"]]] * 2
    in_cursor, in_vs_code = (each["config"][0] for each in found)
    stdio = ENTRY["packages"][0]
    told = {"command": stdio["runtimeHint"], "args": [stdio["identifier"]]}
    assert json.loads(base64.b64decode(in_cursor, validate=True)) == json.loads(in_vs_code) == told


def test_the_ways_that_are_measured_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    for commands in WAYS.values():
        assert all(f"`{each.removesuffix(' --yes')}`" in page for each in commands)


def test_the_manifest_of_the_bundle_agrees_with_the_package() -> None:
    assert MANIFEST["version"] == PROJECT["version"]
    assert MANIFEST["license"] == PROJECT["license"]
    assert MANIFEST["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]
    assert MANIFEST["description"] == ENTRY["description"]
    chosen = {name: each["default"] for name, each in MANIFEST["user_config"].items()}
    command, env = command_of(MANIFEST, Path("/bundle"), chosen)
    assert command == ["uv", "run", "--directory", "/bundle", MANIFEST["server"]["entry_point"]]
    assert {name.removeprefix("SEALAB_") for name in env} <= {"HOME", *_NAMES}
    assert env["SEALAB_PRIVACY"] == Settings().privacy.value


def test_the_entry_point_of_the_bundle_is_the_program(tmp_path: Path) -> None:
    started = [sys.executable, str(SOURCE / "server.py")]
    ended = subprocess.run([*started, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert PROJECT["version"] in ended.stdout


def test_the_bundle_pins_every_package_of_the_lock() -> None:
    lock = (ROOT / "requirements/base.txt").read_text()
    made = tomllib.loads(project_of(PROJECT, "sealab-0.1.0-py3-none-any.whl", lock))
    pins = made["tool"]["uv"]["constraint-dependencies"]
    assert len(pins) == len(re.findall(r"^\S+==", lock, re.MULTILINE))
    assert made["tool"]["uv"]["sources"]["sealab"]["path"] == "sealab-0.1.0-py3-none-any.whl"
    assert made["project"]["requires-python"] == PROJECT["requires-python"]


def test_checksums_and_provenance_name_every_file_of_a_release(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_bytes(b"one")
    (tmp_path / "two.tar.gz").write_bytes(b"two")
    for _ in range(2):
        subprocess.run([sys.executable, "-m", "tests.packaging.provenance", str(tmp_path)], cwd=ROOT, check=True)
    subprocess.run(["sha256sum", "--check", "--strict", CHECKSUMS], cwd=tmp_path, check=True)
    statement = json.loads((tmp_path / STATEMENT).read_text())
    assert [each["name"] for each in statement["subject"]] == ["one.whl", "two.tar.gz"]
    assert statement["predicate"]["buildDefinition"]["externalParameters"]["commit"]


def test_every_dependency_is_imported() -> None:
    imported = {
        match[1]
        for folder in (ROOT / ".import" / "sealab").iterdir()
        for file in folder.resolve().rglob("*.py")
        for match in re.finditer(r"^\s*(?:from|import) (\w+)", file.read_text(), re.MULTILINE)
    }
    distributions = packages_distributions()
    used = {each.lower().replace("_", "-") for name in imported for each in distributions.get(name, ())}
    extras = PROJECT["optional-dependencies"]
    ours = [each for name, extra in extras.items() if name != "data" for each in extra]  # that one is for code
    lines = [*PROJECT["dependencies"], *ours]
    declared = {re.split(r"[<>=!~\[; ]", line)[0].lower().replace("_", "-") for line in lines}
    # It is imported by its name as a text.
    assert declared - used == {"docstring-parser"}
