"""PACKAGES finds installed distributions, by their names and not by those of modules, or says what is wrong."""

from __future__ import annotations

from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import pytest

from sealab.sandbox.job import Isolation, Job, Refusal
from sealab.server.base.errors import SettingsError
from sealab.server.base.home import find_home
from sealab.server.base.settings import Settings
from sealab.server.base.startup.package_names import _OF_ANOTHER_NAME, distribution_of, misnamed
from sealab.server.base.startup.packages import find_packages
from sealab.server.use_cases.runs.isolations import offer
from sealab.server.use_cases.runs.placement.escalation import _obstacle

from ..command_line import sealab


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which distributions are found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(folder: Path, name: str, files: tuple[str, ...], *, needs: tuple[str, ...] = ()) -> None:
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {each}" for each in needs)]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_the_modules_of_distributions_are_found_where_they_are(folder: Path) -> None:
    install(folder, "Big-Tree", ("bigtree/__init__.py", "bigtree/a/b.py", "single.py", "../bin/tool", "_fast.so"))
    assert set(find_packages(["big_tree"])) == {(str(folder), "bigtree"), (str(folder), "single")}


def test_what_a_distribution_always_needs_must_be_listed_too(folder: Path) -> None:
    needs = ("Leaf>=1", "soft; extra == 'more'", "old ; python_version < '3'")
    install(folder, "tree", ("tree.py",), needs=needs)
    install(folder, "leaf", ("leaf.py",))
    with pytest.raises(SettingsError, match=r"PACKAGES names tree, which needs Leaf. Add Leaf to PACKAGES"):
        find_packages(["tree"])
    assert len(find_packages(["tree", "leaf"])) == 2


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("missing-one", None, "which is not installed"),
        ("onlyc", ("onlyc.cpython-311-x86_64-linux-gnu.so",), "has no modules written in Python"),
        ("taker", ("json.py",), "whose module 'json' has a name that is taken"),
        ("../x", None, "Give names of distributions"),
    ],
)
def test_a_distribution_that_cannot_be_used_stops_the_start(
    name: str, files: tuple[str, ...] | None, message: str, folder: Path
) -> None:
    if files is not None:
        install(folder, name, files)
    settings = Settings(packages=(name,), allowed_isolation=(Isolation.RESTRICTED,))
    with pytest.raises(SettingsError, match=message):
        offer(settings, find_home(str(folder / "home"), {}))


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("yaml", "PyYAML"),
        ("sklearn.linear_model", "scikit-learn"),
        ("cv2", "opencv-python"),
        ("PIL.Image", "pillow"),
        ("numpy", "numpy"),
        ("more_itertools", "more-itertools"),
        ("httpx2", "httpx2"),  # it is installed here
        ("no_such_module", None),
        ("requests_html", None),
    ],
)
def test_a_module_is_brought_by_its_own_distribution_or_by_none_that_is_known(
    module: str, distribution: str | None
) -> None:
    assert distribution_of(module) == distribution


def test_the_table_agrees_with_the_metadata_of_what_is_installed() -> None:
    installed = packages_distributions()
    compared = {module: installed[module] for module in _OF_ANOTHER_NAME if module in installed}
    assert "yaml" in compared
    for module, brought_by in compared.items():
        assert _OF_ANOTHER_NAME[module].lower() in [each.lower() for each in brought_by], module


@pytest.mark.parametrize("command", [("packages", "check"), ("container", "build", "--with")])
def test_the_name_of_a_module_is_not_taken_for_a_distribution(command: tuple[str, ...], tmp_path) -> None:
    refusal = sealab(*command, "sklearn", SEALAB_HOME=str(tmp_path)).refusal()
    assert "sklearn is a module of scikit-learn. Write `" in refusal
    assert misnamed("scikit-learn") is None


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("sklearn", "`sealab container build --with scikit-learn` makes one"),
        ("no_such_module", ""),
        ("requests", ""),
        ("boto3.session", ""),
    ],
)
def test_a_hint_names_no_package_that_is_unknown_or_that_wants_a_network(module: str, said: str) -> None:
    offer = SimpleNamespace(missing={Isolation.CONTAINER: "There is no image."}, image=None)
    executor = SimpleNamespace(settings=Settings(), offer=offer)
    obstacle = _obstacle(executor, Job("1", session="s"), Refusal(module))  # type: ignore[arg-type]
    assert obstacle is not None
    assert said in obstacle
    assert "--with" not in obstacle or said
