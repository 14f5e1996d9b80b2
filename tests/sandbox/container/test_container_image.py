"""Images made of the running interpreter, and what is in them."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from sealab.sandbox.container import image
from sealab.sandbox.container.container_pool import ContainerPool, ContainerSettings
from sealab.sandbox.errors import ContainerMissing
from sealab.sandbox.host.pool import PoolSettings
from sealab.sandbox.job import Isolation, Job, Status

from ..conftest import failure, no_calls
from ..containers import needs_podman


def wheel(folder: Path) -> Path:
    """Make a wheel of a package with one module."""
    file = folder / "tinypkg-1.2-py3-none-any.whl"
    about = "tinypkg-1.2.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("tinypkg/__init__.py", "answer = 42\n")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.2\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home") / "container"
    image.build(folder, [str(wheel(tmp_path_factory.mktemp("wheels")))])
    return folder


def test_before_a_build_there_is_no_image(tmp_path: Path) -> None:
    assert image.current(tmp_path / "container") is None


def test_an_image_says_which_packages_and_modules_it_holds(folder: Path) -> None:
    built = image.current(folder)
    assert built is not None
    assert built.packages == {"tinypkg": "1.2"}
    assert built.modules == ("tinypkg",)


@needs_podman
async def test_code_imports_what_was_installed_in_the_image(folder: Path) -> None:
    built = image.current(folder)
    assert built is not None
    async with ContainerPool(ContainerSettings(PoolSettings(spares=0), built, folder)) as pool:
        code = "import sqlite3, ssl, zoneinfo, tinypkg\nzoneinfo.ZoneInfo('Europe/Rome')\ntinypkg.answer"
        outcome = await pool.run(Job(code, isolation=Isolation.CONTAINER), no_calls)
        assert outcome.status is Status.OK, outcome
        assert outcome.result == 42
        missing = await pool.run(Job("import numpy", isolation=Isolation.CONTAINER), no_calls)
        assert failure(missing).type == "ModuleNotFoundError"


def test_everybody_may_read_what_is_inside_and_nobody_else_may_look_from_outside(folder: Path) -> None:
    built = image.current(folder)
    assert built is not None
    assert built.root is not None
    for path in Path(built.root).rglob("*"):
        wanted = 0o555 if path.is_dir() else 0o444
        assert path.is_symlink() or path.stat().st_mode & wanted == wanted, path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_build_that_fails_says_why_and_leaves_the_image_before(folder: Path, tmp_path: Path) -> None:
    before = image.current(folder)
    with pytest.raises(ContainerMissing, match=r"no-such\.whl cannot be installed"):
        image.build(folder, [str(tmp_path / "no-such.whl")])
    assert image.current(folder) == before
    assert len(list(folder.glob("build-*"))) == 1


def test_a_new_build_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "container"
    first = image.build(folder)
    second = image.build(folder)
    assert image.current(folder) == second != first


def test_the_code_for_containers_is_copied_once_and_anew_only_when_it_has_changed(tmp_path: Path) -> None:
    first = image.code(tmp_path)
    assert image.code(tmp_path) == first
    assert (first / "sealab" / "sandbox" / "container" / "fork_server.py").is_file()
    assert [place.name for place in tmp_path.iterdir()] == [first.name]
