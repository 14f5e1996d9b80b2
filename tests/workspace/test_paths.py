"""The kernel's half of the boundary: links and special files are refused by the handle, not by the name."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from sealab.workspace import paths
from sealab.workspace.errors import NameRefused, NotAFile, NotFound, Unavailable, WorkspaceError
from sealab.workspace.names import Name
from sealab.workspace.paths import Root
from sealab.workspace.store import Workspace

SECRET = "the canary sings"


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text(SECRET)
    return outside / "canary"


def _refused(workspace: Workspace, name: str) -> str:
    """Reading, replacing, appending and deleting all refuse alike; the message of the first."""
    with pytest.raises(NotAFile) as caught:
        workspace.read(name)
    with pytest.raises(NotAFile):
        workspace.write(name, "mine")
    with pytest.raises(NotAFile):
        workspace.write(name, "mine", append=True)
    with pytest.raises(NotAFile):
        workspace.delete(name)
    return str(caught.value)


def test_a_link_to_a_file_is_refused(either_way: Workspace, folder: Path, canary: Path) -> None:
    (folder / "link").symlink_to(canary)
    assert "link" in _refused(either_way, "link")
    assert canary.read_text() == SECRET


@pytest.mark.parametrize("below", ["", "/f"], ids=["a file", "a folder"])
def test_a_link_inside_is_refused_too(either_way: Workspace, folder: Path, below: str) -> None:
    either_way.write(f"real{below}", "text")
    (folder / "link").symlink_to("real")
    _refused(either_way, f"link{below}")
    assert either_way.read(f"real{below}").content == "text"


def test_a_link_to_a_folder_is_refused_and_tells_nothing_of_what_lies_behind(
    either_way: Workspace, folder: Path, canary: Path
) -> None:
    (folder / "d").symlink_to(canary.parent)
    present = _refused(either_way, "d/canary")
    assert _refused(either_way, "d/absent") == present.replace("canary", "absent")
    with pytest.raises(NotAFile):
        either_way.list("d")
    with pytest.raises(NotAFile):
        either_way.write("d/sub/new", "x")
    assert os.listdir(canary.parent) == ["canary"]


def test_link_loops_and_long_chains_are_refused(either_way: Workspace, folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "c0").write_text("end")
    for number in range(200):
        (folder / f"c{number + 1}").symlink_to(f"c{number}")
    _refused(either_way, "loop")
    _refused(either_way, "c200")


def test_a_hard_link_is_refused(either_way: Workspace, folder: Path, canary: Path) -> None:
    os.link(canary, folder / "hard")
    assert "hard link" in _refused(either_way, "hard")
    assert canary.read_text() == SECRET


def test_a_fifo_and_a_socket_are_refused_without_waiting(either_way: Workspace, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    _refused(either_way, "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(folder, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{here}/sock" if os.path.exists("/proc/self/fd") else str(folder / "sock"))
        finally:
            os.close(here)
        _refused(either_way, "sock")


def test_a_folder_is_no_file_and_a_file_no_folder(either_way: Workspace) -> None:
    either_way.write("d/f", "x")
    assert "folder" in _refused(either_way, "d")
    for action in (either_way.read, either_way.delete, either_way.list):
        with pytest.raises(NotAFile):
            action("d/f/deeper")
    with pytest.raises(NotAFile):
        either_way.write("d/f/deeper", "x")
    with pytest.raises(NotAFile):
        either_way.list("d/f")


def test_none_of_them_is_listed(either_way: Workspace, folder: Path, canary: Path) -> None:
    either_way.write("plain", "x")
    (folder / "link").symlink_to(canary)
    (folder / "d").symlink_to(canary.parent)
    os.link(canary, folder / "hard")
    os.mkfifo(folder / "pipe")
    (folder / "back\\slash").write_text("x")
    (folder / os.fsdecode(b"bad\xff")).write_text("x")
    assert [file.name for file in either_way.list().files] == ["plain"]


@pytest.mark.parametrize("parts", [("..", "outside", "canary"), ("..",), ("x", "..", "..", "outside", "canary")])
def test_the_kernels_half_holds_without_the_judgement_of_letters(
    either_way: Workspace, tmp_path: Path, parts: tuple[str, ...]
) -> None:
    (tmp_path / "home" / "outside").mkdir()
    (tmp_path / "home" / "outside" / "canary").write_text(SECRET)
    either_way.write("x/f", "x")
    with pytest.raises(WorkspaceError):
        either_way.root.open_file(Name(parts))
    with pytest.raises(WorkspaceError):
        either_way.root.open_folder(parts)


def test_an_absolute_path_does_not_open_even_unjudged(either_way: Workspace, canary: Path) -> None:
    for parts in [(str(canary),), ("", *canary.parts[1:])]:
        with pytest.raises(WorkspaceError):
            either_way.root.open_file(Name(parts))


@pytest.mark.parametrize("leaf", ["", ".", "..", "a/b", "/etc", "a\0"])
def test_a_folder_takes_single_components_only(workspace: Workspace, leaf: str) -> None:
    with workspace.root.open_folder(()) as top:
        for method in (top.status, top.enter, top.make, top.create, top.recreate, top.unlink, top.remove):
            with pytest.raises(NameRefused):
                method(leaf)
        with pytest.raises(NameRefused):
            top.rename("a", leaf)


def test_a_link_is_never_written_through_when_a_file_is_made_again(
    workspace: Workspace, folder: Path, canary: Path
) -> None:
    (folder / "link").symlink_to(canary)
    os.link(canary, folder / "hard")
    with workspace.root.open_folder(()) as top:
        for leaf in ("link", "hard", "new"):
            handle = top.recreate(leaf)
            os.write(handle, b"mine")
            os.close(handle)
            assert (folder / leaf).read_text() == "mine"
    assert canary.read_text() == SECRET


def test_a_root_that_is_a_link_is_followed_once_at_opening(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "root").symlink_to("real")
    with Workspace(tmp_path / "root", quota_bytes=1000) as workspace:
        (tmp_path / "root").unlink()
        (tmp_path / "root").symlink_to("other")
        workspace.write("f", "x")
    assert (tmp_path / "real" / "f").read_text() == "x"
    assert not (tmp_path / "other" / "f").exists()


def test_folders_and_files_are_private(workspace: Workspace, folder: Path) -> None:
    workspace.write("d/f", "x")
    modes = [path.stat().st_mode & 0o777 for path in (folder, folder / "d", folder / "d" / "f")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_root_that_cannot_be_opened_says_so_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable) as caught:
        Workspace(tmp_path / "file", quota_bytes=1000)
    assert str(tmp_path) not in str(caught.value)


def test_no_error_names_the_place_on_the_host(either_way: Workspace, folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(tmp_path)
    either_way.write("d/f", "x")
    said = []
    for name in ("missing", "missing/deep", "pipe", "link", "link/x", "d", "d/f/x", "..", ".runs", str(tmp_path / "q")):
        for action in (either_way.read, either_way.delete, lambda name: either_way.write(name, "x")):
            try:
                action(name)
            except WorkspaceError as error:
                said.append(str(error).replace(repr(name), "") if name.startswith("/") else str(error))
    assert len(said) > 20
    assert not [message for message in said if str(tmp_path) in message]


def test_where_openat2_is_answered_with_an_error_the_steps_are_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_SYS_OPENAT2", 100_000)  # a number no kernel knows: ENOSYS
    root = Root(folder)
    assert not root.resolves_by_kernel
    with pytest.raises(NotFound):
        root.open_file(Name(("missing",)))
    root.close()


def test_failures_leave_no_descriptor_open(either_way: Workspace, folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(tmp_path)
    either_way.write("a/b/c", "x")

    def everything() -> None:
        for name in ("missing/x", "pipe", "link/x", "a/b", "a/b/c/d", "a/b/c"):
            for action in (either_way.read, either_way.list, lambda name: either_way.write(name, "y")):
                with contextlib.suppress(WorkspaceError):
                    action(name)

    everything()
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        everything()
    assert len(os.listdir("/dev/fd")) == before
