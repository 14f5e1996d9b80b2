"""Files opened as Python's `open` and `os` open them: in place, counted, and never outside the workspace."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealab.workspace.archive import RunArchive
from sealab.workspace.dry_run_files import files_of_run
from sealab.workspace.errors import WorkspaceError
from sealab.workspace.names import DEPTH_MAX, TEMPORARY_PREFIX
from sealab.workspace.run_files import DESCRIPTORS_MAX, RunFiles
from sealab.workspace.store import Workspace
from tests.object_stores import S3Server

QUOTA = 1000


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workspace]:
    if getattr(request, "param", "folder") == "objects":
        server: S3Server = request.getfixturevalue("moto_server")
        yield request.getfixturevalue("opens")(server, server.bucket(), quota_bytes=QUOTA)
        return
    with Workspace(tmp_path / "workspace", quota_bytes=QUOTA, files_max=50) as workspace:
        yield workspace


@pytest.fixture
def files(workspace: Workspace) -> Iterator[RunFiles]:
    files = files_of_run(workspace, "home")
    yield files
    files.close()


def number_of(call: Callable[..., object], *arguments: object) -> int:
    with pytest.raises(WorkspaceError) as caught:
        call(*arguments)
    return caught.value.number


def written(files: RunFiles, path: str, data: bytes) -> str:
    identity = files.open(path, "w").identity
    files.write(path, identity, 0, data)
    return identity


def test_what_is_written_is_there_at_once_and_counts(workspace: Workspace, files: RunFiles, tmp_path: Path) -> None:
    identity = files.open("/workspace/a", "w").identity
    assert files.write("/workspace/a", identity, 0, b"hello") == 5
    assert (tmp_path / "workspace" / "a").read_bytes() == b"hello"
    assert files.write("/workspace/a", identity, None, b"!") == 6
    assert files.write("/workspace/a", identity, 1, b"E") == 2
    assert files.read("/workspace/a", identity, 0, 100) == b"hEllo!"
    assert workspace.usage().used_bytes == 6
    files.truncate("/workspace/a", identity, 2)
    assert workspace.usage().used_bytes == 2
    assert files.open("/workspace/a", "w").size == 0
    assert (workspace.usage().used_bytes, workspace.usage().entries) == (0, 1)


def test_a_hole_counts_as_long_as_it_is(workspace: Workspace, files: RunFiles) -> None:
    identity = written(files, "/workspace/a", b"")
    assert files.write("/workspace/a", identity, 900, b"x") == 901
    assert workspace.usage().used_bytes == 901
    assert number_of(files.write, "/workspace/a", identity, 1 << 40, b"x") == errno.ENOSPC
    assert number_of(files.truncate, "/workspace/a", identity, 1 << 40) == errno.ENOSPC
    assert number_of(files.write, "/workspace/a", identity, 1 << 70, b"x") == errno.EINVAL


def test_a_full_workspace_takes_nothing_and_the_file_stays_whole(workspace: Workspace, files: RunFiles) -> None:
    identity = written(files, "/workspace/a", b"x" * 990)
    assert number_of(files.write, "/workspace/a", identity, 980, b"y" * 30) == errno.ENOSPC
    assert files.read("/workspace/a", identity, 0, 2000) == b"x" * 990
    assert workspace.usage().used_bytes == 990
    assert files.write("/workspace/a", identity, 980, b"y" * 20) == 1000


def test_each_mode_does_what_open_does(files: RunFiles) -> None:
    assert number_of(files.open, "/workspace/a", "r") == errno.ENOENT
    assert number_of(files.open, "/workspace/a", "r+") == errno.ENOENT
    assert number_of(files.open, "/workspace/no/a", "w") == errno.ENOENT
    written(files, "/workspace/a", b"12")
    assert number_of(files.open, "/workspace/a", "x") == errno.EEXIST
    assert files.open("/workspace/a", "a").size == 2
    assert files.open("/workspace/a", "r+").size == 2
    assert number_of(files.open, "/workspace/a/b", "w") == errno.ENOTDIR
    files.make_folder("/workspace/d")
    assert number_of(files.open, "/workspace/d", "r") == errno.EISDIR
    assert number_of(files.open, "/workspace/d", "w") == errno.EISDIR
    assert number_of(files.open, "/workspace", "r") == errno.EISDIR
    assert number_of(files.open, "/workspace/a", "rw") == errno.EINVAL


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/workspace/../etc/passwd",
        "/workspace//a",
        "/workspacea",
        "/tmp/../etc/passwd",
        "/tmp/" + "d/" * 40 + "f",
        "workspace/a",
        "a",
        "",
        "/workspace/a\0b",
        "/workspace/a\\b",
        "/workspace/\udc80",
        "/workspace/.sealab-temp-1/a",
        "/workspace/.SEALAB-part-1",
        "/workspace/.runs",
        "/workspace/.RUNS/x",
        "/proc/self/root",
        "/workspace/" + "x" * 300,
    ],
)
def test_no_path_leads_out_or_to_what_belongs_to_sealab(files: RunFiles, tmp_path: Path, path: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    for call, *more in (
        (files.open, "r"),
        (files.open, "w"),
        (files.open, "a"),
        (files.make_folder,),
        (files.remove,),
        (files.remove_folder,),
        (files.set_modified, 0),
        (files.read, "1.1", 0, 10),
        (files.write, "1.1", 0, b"x"),
        (files.truncate, "1.1", 0),
        (files.list,),
    ):
        assert number_of(call, path, *more) in {  # type: ignore[arg-type]
            errno.ENOENT, errno.EINVAL, errno.EACCES, errno.ENAMETOOLONG, errno.ESTALE, errno.EISDIR,
        }  # fmt: skip
    written(files, "/workspace/own", b"")
    with pytest.raises(WorkspaceError):
        files.rename("/workspace/own", path)
    with pytest.raises(WorkspaceError):
        files.rename(path, "/workspace/own")
    (tmp_path / "workspace" / "own").unlink()
    assert sorted(tmp_path.rglob("*")) == before


def test_links_devices_and_second_names_are_neither_shown_nor_opened_nor_replaced(
    files: RunFiles, tmp_path: Path
) -> None:
    inside = tmp_path / "workspace"
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (inside / "link").symlink_to(secret)
    (inside / "folder").symlink_to(tmp_path)
    os.link(secret, inside / "second")
    os.mkfifo(inside / "fifo")
    written(files, "/workspace/own", b"own")
    assert [entry.name for entry in files.list("/workspace")] == ["own"]
    for name in ("link", "second", "fifo"):
        path = f"/workspace/{name}"
        for call, *more in (
            (files.open, "r"),
            (files.open, "r+"),
            (files.open, "w"),
            (files.open, "a"),
            (files.status,),
            (files.remove,),
            (files.set_modified, 0),
        ):
            assert number_of(call, path, *more) in {errno.ELOOP, errno.EACCES}  # type: ignore[arg-type]
        assert number_of(files.rename, path, "/workspace/other") == errno.ELOOP
        assert number_of(files.rename, "/workspace/own", path) == errno.ELOOP
    assert number_of(files.open, "/workspace/folder/secret", "r") in {errno.ELOOP, errno.ENOTDIR}
    assert number_of(files.list, "/workspace/folder") in {errno.ELOOP, errno.ENOTDIR}
    assert secret.read_text() == "secret"


def test_a_file_that_was_replaced_while_it_was_open_is_not_taken_for_it(workspace: Workspace, files: RunFiles) -> None:
    identity = written(files, "/workspace/a", b"first")
    workspace.write("a", "second one")
    assert files.read("/workspace/a", identity, 0, 100) == b"first"  # as long as it is held
    files.release(identity)
    assert number_of(files.read, "/workspace/a", identity, 0, 100) == errno.ESTALE
    assert number_of(files.write, "/workspace/a", identity, 0, b"x") == errno.ESTALE
    workspace.delete("a")
    assert number_of(files.read, "/workspace/a", identity, 0, 100) == errno.ESTALE


def open_files() -> int:
    """Return how many descriptors are of files: the client of an object store has sockets besides."""
    return sum(Path(f"/proc/self/fd/{descriptor}").is_file() for descriptor in os.listdir("/proc/self/fd"))


def test_more_files_are_open_than_descriptors_are_held(files: RunFiles) -> None:
    before = open_files()
    opened = {f"/workspace/{n}": written(files, f"/workspace/{n}", b"%d" % n) for n in range(20)}
    assert [files.read(path, identity, 0, 9) for path, identity in opened.items()] == [b"%d" % n for n in range(20)]
    assert open_files() - before <= DESCRIPTORS_MAX


def test_what_was_removed_counts_until_it_is_closed(workspace: Workspace, files: RunFiles) -> None:
    identity = written(files, "/workspace/a", b"x" * 600)
    files.remove("/workspace/a")
    other = files.open("/workspace/b", "w").identity
    assert number_of(files.write, "/workspace/b", other, 0, b"x" * 600) == errno.ENOSPC
    assert number_of(files.write, "/workspace/a", identity, 600, b"x" * 600) == errno.ENOSPC
    assert files.write("/workspace/a", identity, 600, b"x" * 100) == 700
    assert workspace.usage().used_bytes == 0
    files.release(identity)
    assert files.write("/workspace/b", other, 0, b"x" * 600) == 600
    assert workspace.usage().used_bytes == 600


def test_temporary_files_are_the_runs_own_and_end_with_it(workspace: Workspace, tmp_path: Path) -> None:
    one, two = RunFiles(workspace), RunFiles(workspace)
    assert one.list("/tmp") == []
    assert number_of(one.open, "/tmp/a", "r") == errno.ENOENT
    one.make_folder("/tmp/d")
    written(one, "/tmp/d/a", b"x" * 100)
    assert [entry.name for entry in one.list("/tmp")] == ["d"]
    assert two.list("/tmp") == []
    assert number_of(two.open, "/tmp/d/a", "r") == errno.ENOENT
    assert [entry.name for entry in two.list("/workspace")] == []
    assert workspace.list().count == 0
    assert os.listdir(tmp_path / "workspace") == []  # native code of another caller may see it
    assert workspace.usage().used_bytes == 100
    with workspace.ledger.locked():
        workspace.ledger.recount()
    assert (workspace.usage().used_bytes, workspace.usage().entries) == (100, 3)
    one.rename("/tmp/d/a", "/workspace/kept")
    one.close()
    two.close()
    assert os.listdir(tmp_path / "workspace") == ["kept"]
    assert os.listdir(tmp_path / "workspace.runs") == [".ledger"]
    assert (workspace.usage().used_bytes, workspace.usage().entries) == (100, 1)
    assert number_of(one.open, "/workspace/kept", "r") == errno.ENOENT


def test_no_run_finds_the_temporary_files_of_another_by_the_names_of_kept_runs(
    workspace: Workspace, files: RunFiles, tmp_path: Path
) -> None:
    other = RunFiles(workspace, "other")
    written(other, "/tmp/secret", b"secret")
    (made,) = [name for name in os.listdir(tmp_path / "workspace.runs") if name.startswith(TEMPORARY_PREFIX)]
    RunArchive(workspace).keep("r1", owner="home", code="1")
    assert [file.name for file in workspace.list(".runs", owner="home").files] == [".runs/r1/code.py"]
    for path in (f"/workspace/.runs/{made}/secret", f"/workspace/.runs/r1/../{made}/secret", f"/tmp/{made}/secret"):
        for call in (lambda path: files.open(path, "r"), files.status, files.remove):
            assert number_of(call, path) in {errno.ENOENT, errno.EACCES}
    with pytest.raises(WorkspaceError):
        workspace.read(f".runs/{made}/secret", owner="home")
    other.close()


def test_a_rename_between_file_systems_says_so_and_copying_works(
    workspace: Workspace, files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    written(files, "/tmp/a", b"x" * 100)
    monkeypatch.setattr(os, "rename", refused)
    assert number_of(files.rename, "/tmp/a", "/workspace/a") == errno.EXDEV
    assert (workspace.usage().used_bytes, workspace.usage().entries) == (100, 2)


def test_what_a_dead_server_left_is_removed_after_a_day(tmp_path: Path) -> None:
    top = tmp_path / "w.runs"
    for name, age in (("old", 0), ("new", None)):
        folder = top / f"{TEMPORARY_PREFIX}{name}"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "f").write_text("x")
        if age is not None:
            os.utime(folder, (age, age))
    with Workspace(tmp_path / "w", quota_bytes=QUOTA) as workspace:
        assert os.listdir(tmp_path / "w") == []
        assert sorted(os.listdir(top)) == [".ledger", f"{TEMPORARY_PREFIX}new"]
        assert (workspace.usage().used_bytes, workspace.usage().entries) == (1, 3)


def test_renaming_replaces_files_and_empty_folders_and_gives_back(workspace: Workspace, files: RunFiles) -> None:
    written(files, "/workspace/a", b"aaa")
    written(files, "/workspace/b", b"bb")
    files.rename("/workspace/a", "/workspace/b")
    assert (workspace.usage().used_bytes, workspace.usage().entries) == (3, 1)
    files.rename("/workspace/b", "/workspace/b")
    files.make_folder("/workspace/d")
    files.make_folder("/workspace/e")
    assert number_of(files.rename, "/workspace/b", "/workspace/d") == errno.EISDIR
    assert number_of(files.rename, "/workspace/d", "/workspace/b") == errno.ENOTDIR
    assert number_of(files.rename, "/workspace/d", "/workspace/d/in") == errno.EINVAL
    files.rename("/workspace/b", "/workspace/d/b")
    assert number_of(files.rename, "/workspace/e", "/workspace/d") == errno.ENOTEMPTY
    files.rename("/workspace/d", "/workspace/e")
    assert [entry.name for entry in files.list("/workspace/e")] == ["b"]
    assert (workspace.usage().used_bytes, workspace.usage().entries) == (3, 2)
    assert number_of(files.rename, "/workspace/none", "/workspace/x") == errno.ENOENT
    assert number_of(files.rename, "/workspace/e", "/tmp") == errno.EBUSY


def test_no_folder_is_moved_so_deep_that_it_would_not_be_counted(files: RunFiles) -> None:
    deep = "/workspace"
    for _ in range(DEPTH_MAX - 1):
        deep += "/d"
        files.make_folder(deep)
    files.make_folder("/workspace/a")
    written(files, "/workspace/a/f", b"x")
    assert number_of(files.rename, "/workspace/a", f"{deep}/a") == errno.ENAMETOOLONG
    files.make_folder("/tmp/t")
    assert number_of(files.open, "/tmp" + "/d" * DEPTH_MAX, "w") == errno.ENAMETOOLONG


def test_folders_are_made_and_removed_one_by_one(workspace: Workspace, files: RunFiles) -> None:
    files.make_folder("/workspace/a")
    assert number_of(files.make_folder, "/workspace/a") == errno.EEXIST
    assert number_of(files.make_folder, "/workspace") == errno.EEXIST
    assert number_of(files.make_folder, "/workspace/x/y") == errno.ENOENT
    written(files, "/workspace/a/f", b"")
    assert number_of(files.remove_folder, "/workspace/a") == errno.ENOTEMPTY
    assert number_of(files.remove_folder, "/workspace/a/f") == errno.ENOTDIR
    assert number_of(files.remove_folder, "/workspace") == errno.EBUSY
    assert number_of(files.remove, "/workspace/a") == errno.EISDIR
    files.remove("/workspace/a/f")
    files.remove_folder("/workspace/a")
    assert number_of(files.remove_folder, "/workspace/a") == errno.ENOENT
    assert number_of(files.list, "/workspace/a") == errno.ENOENT
    assert workspace.usage().entries == 0
    assert [entry.name for entry in files.list("/")] == ["tmp", "workspace"]


def test_the_number_of_files_is_bounded(files: RunFiles) -> None:
    for n in range(50):
        files.open(f"/workspace/{n}", "x")
    assert number_of(files.open, "/workspace/more", "w") == errno.ENOSPC
    assert number_of(files.make_folder, "/workspace/more") == errno.ENOSPC


def test_the_time_of_a_file_can_be_set(files: RunFiles) -> None:
    written(files, "/workspace/a", b"")
    files.set_modified("/workspace/a", 10**18)
    assert files.status("/workspace/a").modified_ns == 10**18
    assert number_of(files.set_modified, "/workspace/b", 0) == errno.ENOENT
