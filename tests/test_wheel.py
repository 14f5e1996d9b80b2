"""The built wheel holds what the tree holds, and runs outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("server", "sandbox", "tools_registry", "skills_db", "workspace")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = out.glob("sealab-*.whl")
    return built


def test_the_wheel_holds_exactly_the_files_of_the_five_folders(wheel: Path) -> None:
    in_tree = {
        f"sealab/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == in_tree


def test_every_folder_of_the_house_is_linked_for_the_editable_install() -> None:
    links = {path.name: path.resolve() for path in (ROOT / ".import" / "sealab").iterdir()}
    assert links == {folder: ROOT / folder for folder in FOLDERS}


def test_the_installed_wheel_runs_code_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    program = tmp_path / "program.py"
    # The dependencies come from this environment, sealab itself from the wheel alone: `-S` keeps the editable
    # install's path file from being read.
    paths = [str(site), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(paths),
        "SEALAB_HOME": str(tmp_path / "home"),
    }
    program.write_text("total = sum(range(10))\ntotal")
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            "import sys; from sealab.server.cli import main; sys.exit(main())",
            "run",
            str(program),
            "--json",
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"] == 45
    origin = subprocess.run(
        [sys.executable, "-S", "-c", "import sealab.sandbox; print(sealab.sandbox.__file__)"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert origin.stdout.startswith(str(site))
