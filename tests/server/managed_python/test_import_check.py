"""An environment of which a package cannot be imported does not take its place, and what was found is told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sealab.sandbox.job import FONTS_FOLDER
from sealab.server.errors import PythonNotBuilt
from sealab.server.managed_python.building import add
from sealab.server.managed_python.environment import current, last_problem

from ..command_line import run, sealab
from .wheels import made_environment, wheel

PANDAS = {"pandas/__init__.py": "answer = 42\n"}
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
    wheels = wheel(folder, "pandas", "9.1", PANDAS), wheel(folder, "broken", "1.0", BROKEN)
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
    made_environment(tmp_path, folder, wheel(folder, "pandas", "9.1", PANDAS))
    before = os.readlink(tmp_path / "python" / "current")
    wheel(folder, "broken", "1.0", BROKEN)
    ended = sealab("packages", "add", "broken", "--home", str(tmp_path), "--wheels", str(folder))
    assert ended.returncode == 1
    assert "broken cannot be imported" in ended.stderr
    assert "was not put in place" in ended.stderr
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
    files = {**PANDAS, "plugin_for_pandas/__init__.py": "import absent\n"}
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
