"""PACKAGES finds installed distributions and says at the start what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealab.sandbox.job import Isolation
from sealab.server.errors import SettingsError
from sealab.server.home import find_home
from sealab.server.runs.isolations import offer
from sealab.server.settings import Settings
from sealab.server.startup.packages import find_packages


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
