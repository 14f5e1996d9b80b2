"""`sealab data setup`, `sealab packages add`: the environment of full Python, made from wheel files of the tests' own."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from sealab.sandbox.installing import find_installer
from sealab.sandbox.job import FONTS_FOLDER
from sealab.server.base.errors import PythonNotBuilt
from sealab.server.use_cases.managed_python.building import add
from sealab.server.use_cases.managed_python.environment import LOCK_FILE, current, last_problem, locked_packages

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
    refusal = run(home, code, SEALAB_ALLOWED_ISOLATION="restricted").refusal(3)
    assert "module 'pandas' is not available here" in refusal
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
    told = sealab("packages", "add", "ratios", "--json", "--home", str(tmp_path), "--wheels", str(folder)).told
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
    refusal = sealab("packages", "add", "no-such-package", "--home", str(home), "--wheels", str(wheels)).refusal(1)
    assert "cannot be installed" in refusal
    assert "misspelt" in refusal
    assert sorted(path.name for path in (home / "python").iterdir()) == before


@pytest.mark.parametrize("name", ["https://example.org/x.whl", "./x.whl", "-r", "git+ssh://x", "a b"])
def test_only_names_of_packages_can_be_added(home: Path, name: str) -> None:
    assert "not the name of a package" in sealab("packages", "add", "--home", str(home), "--", name).refusal()


def test_a_package_with_another_hash_than_the_lock_names_is_not_installed(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    held = lock(tmp_path / "lock.txt", wheel(folder, "pandas", "9.1", PANDAS))
    wheel(folder, "pandas", "9.1", {"pandas/__init__.py": "harm = True\n"})
    refusal = sealab("data", "setup", "--home", str(tmp_path), "--wheels", str(folder), "--lock", str(held)).refusal(1)
    assert "cannot be installed" in refusal
    assert not (tmp_path / "python" / "current").exists()


def test_a_failed_run_of_an_installer_names_neither_a_traceback_nor_leaves_a_build(tmp_path: Path) -> None:
    refusal = sealab("data", "setup", "--home", str(tmp_path), "--wheels", str(tmp_path / "none")).refusal()
    assert "There is no folder" in refusal


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


ANSWERING = {"pandas/__init__.py": "answer = 42\n"}
BROKEN = {"broken/__init__.py": "raise ImportError('libodd.so.1: cannot open shared object file')\n"}
FONT_MANAGER = """
import json, logging, os
import matplotlib
path = os.path.join(matplotlib.get_cachedir(), "fontlist-v1.2.json")
was_kept = os.path.exists(path)
if not was_kept:
    logging.getLogger(__name__).warning("Matplotlib is building the font cache; this may take a moment.")
    with open(path, "w") as file:
        json.dump(["a font"], file)
"""
MATPLOTLIB = {
    "matplotlib/__init__.py": "import os\ndef get_cachedir():\n"
    "    os.makedirs(os.environ['MPLCONFIGDIR'], exist_ok=True)\n    return os.environ['MPLCONFIGDIR']\n",
    "matplotlib/font_manager.py": FONT_MANAGER,
}


def test_a_package_that_cannot_be_imported_is_named_and_the_environment_is_not_put_in_place(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    wheels = wheel(folder, "pandas", "9.1", ANSWERING), wheel(folder, "broken", "1.0", BROKEN)
    with pytest.raises(PythonNotBuilt, match=r"broken cannot be imported \(broken: ImportError: libodd.so.1"):
        made_environment(tmp_path, folder, *wheels)
    assert current(tmp_path / "python") is None
    assert not list((tmp_path / "python").glob("build-*"))

    told = sealab("data", "status", "--json", "--home", str(tmp_path))
    status = json.loads(told.stdout)
    assert (told.returncode, status["there"], status["offered"]) == (1, False, False)
    assert "broken cannot be imported" in status["problem"]
    assert "broken cannot be imported" in sealab("doctor", "--home", str(tmp_path)).stdout

    made_environment(tmp_path, folder, wheels[0])
    assert last_problem(tmp_path / "python") is None


def test_a_package_that_is_added_and_cannot_be_imported_leaves_the_environment_in_use(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    made_environment(tmp_path, folder, wheel(folder, "pandas", "9.1", ANSWERING))
    before = os.readlink(tmp_path / "python" / "current")
    wheel(folder, "broken", "1.0", BROKEN)
    refusal = sealab("packages", "add", "broken", "--home", str(tmp_path), "--wheels", str(folder)).refusal(1)
    assert "broken cannot be imported" in refusal
    assert "was not put in place" in refusal
    assert os.readlink(tmp_path / "python" / "current") == before
    assert run(tmp_path, "import pandas\npandas.answer").stdout.strip() == "42"
    status = json.loads(sealab("data", "status", "--json", "--home", str(tmp_path)).stdout)
    assert (status["there"], status["offered"], "broken" in status["problem"]) == (True, True, True)
    assert "broken cannot be imported" in sealab("doctor", "--home", str(tmp_path)).stdout


def test_a_package_that_ends_the_process_is_named_and_those_after_it_are_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    wheels = (
        wheel(folder, "early", "1.0", {"early.py": "raise ValueError('odd')\n"}),
        wheel(folder, "killed", "1.0", {"killed.py": "import os\nos.abort()\n"}),
        wheel(folder, "later", "1.0", {"later.py": "raise SystemExit(3)\n"}),
        wheel(folder, "well", "1.0", {"well.py": "x = 1\n"}),
    )
    with pytest.raises(PythonNotBuilt) as told:
        made_environment(tmp_path, folder, *wheels)
    said = str(told.value)
    assert "early cannot be imported (early: ValueError: odd)" in said
    assert "killed cannot be imported (killed:" in said
    assert "later cannot be imported (later: SystemExit: 3)" in said
    assert "well" not in said


def test_packages_are_imported_where_no_harm_can_be_done(tmp_path: Path) -> None:
    folder, mark = tmp_path / "wheels", tmp_path / "mark"
    code = f"open({os.fspath(mark)!r}, 'w').write('harm')\n"
    with pytest.raises(PythonNotBuilt, match="harmful cannot be imported"):
        made_environment(tmp_path, folder, wheel(folder, "harmful", "1.0", {"harmful.py": code}))
    assert not mark.exists()


def test_of_a_package_one_module_beside_its_own_may_need_what_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    files = {**ANSWERING, "plugin_for_pandas/__init__.py": "import absent\n"}
    made_environment(tmp_path, folder, wheel(folder, "pandas", "9.1", files))
    assert current(tmp_path / "python") is not None


def test_the_list_of_fonts_is_made_at_setup_and_no_run_makes_it(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    made_environment(tmp_path, folder, wheel(folder, "matplotlib", "9.1", MATPLOTLIB))
    code = "import matplotlib.font_manager as fonts\nfonts.was_kept"
    report = json.loads(run(tmp_path, code, "--json").stdout)
    assert (report["result"], report["isolation"], report.get("stderr", "")) == (True, "process", "")
    wheel(folder, "more", "1.0", {"more.py": ""})
    add(tmp_path / "python", ["more"], lambda _step: None, wheels=[folder])
    assert list((tmp_path / "python" / "current").glob(f"lib/python3*/site-packages/{FONTS_FOLDER}/fontlist-v1.2.json"))
