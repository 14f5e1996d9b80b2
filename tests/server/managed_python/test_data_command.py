"""`sealab data setup`, `sealab packages add`: the environment of full Python, made from wheel files of the tests' own."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from sealab.sandbox.installing import find_installer
from sealab.server.managed_python.environment import LOCK_FILE, locked_packages

from ..command_line import Ended, run, sealab
from .wheels import lock, made_environment, wheel

PANDAS = {"pandas/__init__.py": "class DataFrame:\n    def total(self):\n        return 42\n"}


def setup(home: Path, folder: Path, *options: str, **files: str) -> Ended:
    """Make an environment that holds a module `pandas` of the tests' own."""
    made = wheel(folder, "pandas", "9.1", {**PANDAS, **files})
    return sealab(
        "data",
        "setup",
        "--json",
        "--home",
        str(home),
        "--wheels",
        str(folder),
        "--lock",
        str(lock(folder / "lock.txt", made)),
        *options,
    )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheels")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """A home with an environment."""
    folder = tmp_path_factory.mktemp("home")
    assert setup(folder, wheels).returncode == 0
    return folder


def test_without_an_environment_the_status_says_what_to_run(tmp_path: Path) -> None:
    ended = sealab("data", "status", "--json", "--home", str(tmp_path))
    assert ended.returncode == 1
    told = json.loads(ended.stdout)
    assert (told["there"], told["offered"]) == (False, False)
    assert "sealab data setup" in told["note"]
    assert not (tmp_path / "python").exists()


def test_the_environment_is_made_below_the_home_offline_from_a_lock(home: Path) -> None:
    told = json.loads(sealab("data", "status", "--json", "--home", str(home)).stdout)
    assert (told["there"], told["offered"], told["packages"]) == (True, True, {"pandas": "9.1"})
    assert told["folder"] == str(home / "python")
    assert told["outdated"]  # the lock was the test's, not sealab's own


def test_code_that_imports_what_it_has_runs_there_at_once_and_other_code_stays_in_the_dialect(home: Path) -> None:
    there = json.loads(run(home, "import pandas as pd\npd.DataFrame().total()", "--json").stdout)
    assert (there["result"], there["isolation"]) == (42, "process")
    assert {"namespaces", "landlock", "seccomp"} <= set(there["layers"])
    here = json.loads(run(home, "text = 'import pandas'\nsum(range(9))", "--json").stdout)
    assert (here["result"], here["isolation"]) == (36, "restricted")


def test_an_operator_can_forbid_it(home: Path) -> None:
    code = "import pandas as pd\npd.DataFrame().total()"
    refused = run(home, code, SEALAB_ALLOWED_ISOLATION="restricted")
    assert refused.returncode == 3
    assert "module 'pandas' is not available here" in refused.stderr
    told = json.loads(
        sealab("data", "status", "--json", "--home", str(home), SEALAB_ALLOWED_ISOLATION="restricted").stdout
    )
    assert (told["there"], told["offered"], told["note"]) == (True, False, "ALLOWED_ISOLATION leaves out process.")


def test_an_environment_whose_lock_is_the_same_is_not_made_anew(home: Path, wheels: Path) -> None:
    before = os.readlink(home / "python" / "current")
    assert setup(home, wheels).returncode == 0
    assert os.readlink(home / "python" / "current") == before


def test_a_package_is_added_without_changing_what_is_there(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    shutil.copytree(home / "python", tmp_path / "python", symlinks=True)
    wheel(folder, "ratios", "1.0", {"ratios.py": "half = 0.5\n"}, ["pandas"])
    wheel(folder, "pandas", "9.2", PANDAS)
    ended = sealab("packages", "add", "ratios", "--json", "--home", str(tmp_path), "--wheels", str(folder))
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert (told["packages"], told["added"]) == ({"pandas": "9.1", "ratios": "1.0"}, ["ratios"])
    assert run(tmp_path, "import ratios\nratios.half").stdout.strip() == "0.5"


def test_begun_anew_it_has_no_more_what_was_added(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    assert setup(tmp_path, folder).returncode == 0
    wheel(folder, "ratios", "1.0", {"ratios.py": "half = 0.5\n"}, ["pandas"])
    assert sealab("packages", "add", "ratios", "--home", str(tmp_path), "--wheels", str(folder)).returncode == 0
    told = sealab("data", "status", "--home", str(tmp_path)).stdout
    assert "Added: ratios. `sealab data setup --fresh` makes it anew without." in told
    kept = json.loads(setup(tmp_path, folder).stdout)
    assert (kept["packages"], kept["added"]) == ({"pandas": "9.1", "ratios": "1.0"}, ["ratios"])
    fresh = json.loads(setup(tmp_path, folder, "--fresh").stdout)
    assert (fresh["packages"], fresh["added"]) == ({"pandas": "9.1"}, [])
    assert run(tmp_path, "import ratios").returncode == 3
    assert "Added" not in sealab("data", "status", "--home", str(tmp_path)).stdout


def test_a_package_that_cannot_be_added_leaves_the_environment_as_it_was(home: Path, wheels: Path) -> None:
    before = sorted(path.name for path in (home / "python").iterdir())
    ended = sealab("packages", "add", "no-such-package", "--home", str(home), "--wheels", str(wheels))
    assert ended.returncode == 1
    assert "cannot be installed" in ended.stderr
    assert "misspelt" in ended.stderr
    assert sorted(path.name for path in (home / "python").iterdir()) == before


@pytest.mark.parametrize("name", ["https://example.org/x.whl", "./x.whl", "-r", "git+ssh://x", "a b"])
def test_only_names_of_packages_can_be_added(home: Path, name: str) -> None:
    ended = sealab("packages", "add", "--home", str(home), "--", name)
    assert ended.returncode == 2
    assert "not the name of a package" in ended.stderr


def test_a_package_with_another_hash_than_the_lock_names_is_not_installed(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    held = lock(tmp_path / "lock.txt", wheel(folder, "pandas", "9.1", PANDAS))
    wheel(folder, "pandas", "9.1", {"pandas/__init__.py": "harm = True\n"})
    ended = sealab("data", "setup", "--home", str(tmp_path), "--wheels", str(folder), "--lock", str(held))
    assert ended.returncode == 1
    assert "cannot be installed" in ended.stderr
    assert not (tmp_path / "python" / "current").exists()


def test_a_failed_run_of_an_installer_names_neither_a_traceback_nor_leaves_a_build(tmp_path: Path) -> None:
    ended = sealab("data", "setup", "--home", str(tmp_path), "--wheels", str(tmp_path / "none"))
    assert ended.returncode == 2
    assert "There is no folder" in ended.stderr


def test_nothing_of_the_current_folder_is_run_or_read_by_what_installs(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tmp_path / "of an agent"
    for name in ("pip", "venv", "tempfile", "ensurepip"):
        (found / name).mkdir(parents=True)
        for module in ("__init__", "__main__"):
            (found / name / f"{module}.py").write_text(f"open({str(tmp_path / 'taken')!r}, 'w').close()\n")
    (found / "uv.toml").write_text('index-url = "https://packages.example/simple"\n')
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(found)
    made_environment(home, wheels, wheel(wheels, "pandas", "9.1", PANDAS))
    assert not (tmp_path / "taken").exists()
    installer = find_installer()
    assert installer is not None
    assert os.path.isabs(installer.words[0])


def test_what_pandas_imports_only_when_it_is_asked_for_is_in_the_lock() -> None:
    assert {"jinja2", "openpyxl", "pyarrow", "tabulate", "xlsxwriter"} <= locked_packages(LOCK_FILE)


def test_an_index_that_cannot_be_reached_is_named_as_the_cause(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens there
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        held = lock(tmp_path / "lock.txt", wheel(tmp_path / "wheels", "pandas", "9.1", PANDAS))
        ended = sealab(
            *("data", "setup", "--home", str(tmp_path), "--lock", str(held)),
            PIP_CONFIG_FILE=os.devnull,
            PIP_INDEX_URL=address,
            PIP_RETRIES="1",
        )
    assert ended.returncode == 1
    assert "the index cannot be reached (Failed to establish a new connection" in ended.stderr
    assert ended.stderr.count("No matching distribution") == 1
