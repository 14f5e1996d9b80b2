"""Containers as an operator and a caller see them: built and looked at from the command line, reached by refused code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ...sandbox.containers import needs_podman
from .. import command_line
from ..command_line import Ended

EXCEPT_STAR = "try:\n    raise ExceptionGroup('x', [ValueError(1)])\nexcept* ValueError:\n    print('caught')\n"


def sealab(home: Path, *arguments: str, code: str = "", **env: str) -> Ended:
    return command_line.sealab(*arguments, "--home", str(home), stdin=code, **env)


def run(home: Path, code: str, *arguments: str, **env: str) -> dict[str, object]:
    done = sealab(home, "run", "-", "--json", *arguments, code=code, **env)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    built = sealab(home, "container", "build", "--json")
    assert built.returncode == 0, built.stderr
    assert json.loads(built.stdout)["usable"] is True
    steps = [step.partition(" ")[0] for step in built.stderr.splitlines()]
    assert steps == ["Copying", "Copying", "Running"], "data alone goes to stdout"
    return home


@needs_podman
def test_refused_code_runs_in_a_container_where_there_is_one_that_has_what_it_imports(home: Path) -> None:
    report = run(home, EXCEPT_STAR)
    assert (report["status"], report["isolation"], report["output"]) == ("ok", "container", "caught\n")
    assert run(home, "1 + 1")["isolation"] == "restricted"
    assert run(home, EXCEPT_STAR, "--isolation", "restricted")["status"] == "refused"
    report = run(home, "x = 1\nimport pandas")
    assert report["status"] == "refused"
    assert report["error"]["line"] == 2
    assert "csv.DictReader" in report["error"]["hint"]


@needs_podman
def test_helpers_in_a_container_reach_the_workspace(home: Path) -> None:
    code = "write_file('a.txt', 'hi')\n[read_file('a.txt'), open('/workspace/a.txt').read()]"
    report = run(home, code, "--isolation", "container")
    assert report["result"] == ["hi", "hi"]
    assert report["files"] == [{"name": "a.txt", "size": 2}]


@needs_podman
def test_the_doctor_and_the_status_tell_of_containers(home: Path) -> None:
    findings = json.loads(sealab(home, "doctor", "--json").stdout)
    (container,) = (each for each in findings["isolations"] if each["isolation"] == "container")
    assert container["offered"] is True
    assert "container" in container["layers"]
    status = sealab(home, "container", "status")
    assert status.returncode == 0
    assert "Containers can be used." in status.stdout


def test_without_an_engine_the_status_and_a_request_say_what_to_install(tmp_path: Path) -> None:
    missing = {"SEALAB_CONTAINER_RUNTIME": "no-such-engine"}
    refusal = sealab(tmp_path, "run", "-", "--isolation", "container", code="1", **missing).refusal(3)
    assert "no-such-engine" in refusal
    assert "apt install podman" in refusal
    assert "apt install podman" in run(tmp_path, EXCEPT_STAR, **missing)["error"]["hint"]
    assert sealab(tmp_path, "container", "status", **missing).returncode == 1


def test_a_refusal_names_the_command_that_makes_an_image_or_that_the_operator_allows_no_container(
    tmp_path: Path,
) -> None:
    report = run(tmp_path, EXCEPT_STAR)
    assert report["status"] == "refused"
    assert report["error"]["line"] == 1
    assert "container" in report["error"]["hint"]
    if shutil.which("podman"):
        assert "sealab container build" in report["error"]["hint"]
    report = run(tmp_path, EXCEPT_STAR, SEALAB_ALLOWED_ISOLATION="restricted")
    assert "ALLOWED_ISOLATION" in report["error"]["hint"]


def stopped_docker(folder: Path) -> str:
    """A docker whose daemon does not answer, in the words of the real one."""
    program = folder / "docker"
    program.write_text(
        "#!/bin/sh\n"
        "echo 'Cannot connect to the Docker daemon at unix:///nowhere.sock. Is the docker daemon running?' >&2\n"
        "exit 1\n"
    )
    program.chmod(0o755)
    return str(program)


def test_an_engine_that_is_stopped_is_not_missing_and_not_offered(tmp_path: Path) -> None:
    docker = {"SEALAB_CONTAINER_RUNTIME": stopped_docker(tmp_path), "SEALAB_CONTAINER_IMAGE": "python:3.11"}
    home = tmp_path / "home"
    found = sealab(home, "doctor", "--json", **docker)
    findings = json.loads(found.stdout)
    (container,) = (each for each in findings["isolations"] if each["isolation"] == "container")
    assert (container["offered"], found.returncode, findings["reached"]) == (False, 3, True)
    assert "docker is installed, but not running. Start it:" in container["problem"]
    spoken = sealab(home, "doctor", **docker).stdout
    (line,) = (line for line in spoken.splitlines() if line.startswith("container"))
    assert line.split()[1:3] == ["not", "offered"]
    assert "but not running" in sealab(home, "container", "status", **docker).stdout
    built = sealab(home, "container", "build", **docker)
    assert (built.returncode, "but not running" in built.stderr) == (1, True)
    assert not (home / "container").exists() or not list((home / "container").glob("build-*"))


def test_an_engine_that_is_not_there_is_named_and_containers_are_not_offered(tmp_path: Path) -> None:
    other = {"SEALAB_CONTAINER_RUNTIME": "kubernetes"}
    refusal = sealab(tmp_path, "run", "-", "--isolation", "container", code="1", **other).refusal(3)
    assert "There is no kubernetes here" in refusal
    status = sealab(tmp_path, "container", "status", "--json", SEALAB_CONTAINER_IMAGE="sealab:0.1.0", **other)
    assert status.returncode == 1
    assert "There is no container engine kubernetes" in json.loads(status.stdout)["problem"]
