"""A dry run finds its files as a run would that changes them, and the workspace stays as it was."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealab.workspace.dry_run_files import DryRunFiles
from sealab.workspace.errors import NotFound, QuotaFull, WorkspaceError
from sealab.workspace.run_files import RunFiles
from sealab.workspace.store import Workspace

NAMES = [
    "/workspace/a", "/workspace/b", "/workspace/d", "/workspace/d/a", "/workspace/d/e", "/workspace/d/e/f",
    "/workspace/new/x", "/workspace/new", "/tmp/t", "/workspace",
]  # fmt: skip
NAME = st.sampled_from(NAMES)
STEPS = st.one_of(
    st.tuples(st.just("put"), NAME, st.sampled_from(["w", "a", "r+", "x"])),
    st.tuples(st.sampled_from(["remove", "make_folder", "remove_folder", "truncate", "touch"]), NAME, st.just("")),
    st.tuples(st.just("rename"), NAME, NAME),
)


def fill(folder: Path) -> None:
    (folder / "d" / "e").mkdir(parents=True)
    for name, text in (("a", "first"), ("b", "second"), ("d/a", "third"), ("d/e/f", "fourth")):
        (folder / name).write_text(text)


def everything(folder: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def step(files: RunFiles, what: str, path: str, more: str) -> object:
    """Do one thing, and return what came of it, or the errno."""
    try:
        match what:
            case "put":
                opened = files.open(path, more)
                size = files.write(path, opened.identity, None, b"+new")
                files.release(opened.identity)
                return size
            case "truncate":
                files.truncate(path, files.open(path, "r+").identity, 2)
            case "touch":
                files.set_modified(path, 10**18)
                return None if path == "/workspace" or files.status(path).is_folder else files.status(path).modified_ns
            case "rename":
                files.rename(path, more)
            case _:
                getattr(files, what)(path)
    except WorkspaceError as error:
        return error.number
    return None


def seen(files: RunFiles, path: str = "/workspace") -> dict[str, bytes | None]:
    """What a run finds below a folder: the content of each file, and None for a folder."""
    found: dict[str, bytes | None] = {}
    for entry in files.list(path):
        below = f"{path}/{entry.name}"
        if entry.status.is_folder:
            found[below] = None
            found |= seen(files, below)
        else:
            opened = files.open(below, "r")
            assert opened.size == entry.status.size
            found[below] = files.read(below, opened.identity, 0, 100)
            files.release(opened.identity)
    return found


@given(st.lists(STEPS, min_size=1, max_size=12))
@example(
    [
        ("put", "/workspace/new", "w"),
        ("rename", "/workspace/b", "/workspace/a"),
        ("rename", "/workspace/b", "/workspace/new/x"),
    ]
)
@example([("put", "/workspace/new", "w"), ("rename", "/tmp/t", "/workspace/new/x")])
def test_each_step_has_the_outcome_that_it_has_in_a_run(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    top = tmp_path_factory.mktemp("w")
    for each in ("real", "dry"):
        (top / each).mkdir()
        fill(top / each)
    before = everything(top / "dry")
    with Workspace(top / "real", quota_bytes=10_000) as real, Workspace(top / "dry", quota_bytes=10_000) as dry:
        one, other = RunFiles(real), DryRunFiles(dry)
        for each in steps:
            assert step(other, *each) == step(one, *each), each
            assert seen(other) == seen(one), each
        used = dry.usage()
        assert everything(top / "dry") == before
        one.close()
        other.close()
        assert everything(top / "dry") == before
        assert os.listdir(top / "dry.runs") == [".ledger"]
        assert dry.usage().used_bytes == sum(len(text) for text in before.values() if text) <= used.used_bytes


@pytest.fixture
def files(tmp_path: Path) -> Iterator[DryRunFiles]:
    (tmp_path / "w").mkdir()
    fill(tmp_path / "w")
    with Workspace(tmp_path / "w", quota_bytes=10_000) as workspace:
        yield DryRunFiles(workspace)


def test_whole_files_are_written_listed_and_deleted_as_the_workspace_does(files: DryRunFiles) -> None:
    files.write_whole("new/below/x.txt", b"text")
    files.write_whole("a", b"changed")
    files.delete("d/e/f")
    listing = files.list_whole(".")
    assert [(each.name, each.size) for each in listing.files] == [
        ("a", 7), ("b", 6), ("d/a", 5), ("new/below/x.txt", 4),
    ]  # fmt: skip
    assert listing.count == 4
    assert [each.name for each in files.list_whole("new").files] == ["new/below/x.txt"]
    assert [entry.name for entry in files.list("/workspace/d")] == ["a"]  # the folder left empty went along
    assert (files.own_content("a"), files.own_content("b")) == (b"changed", None)
    with pytest.raises(NotFound):
        files.own_content("d/e/f")
    files.delete("new/below/x.txt")
    with pytest.raises(NotFound):
        files.list_whole("new")


def test_an_identity_of_the_workspaces_file_does_not_open_it_for_writing(files: DryRunFiles, tmp_path: Path) -> None:
    identity = files.open("/workspace/a", "r").identity
    with pytest.raises(NotFound) as caught:
        files.write("/workspace/a", identity, 0, b"XXXX")
    assert caught.value.number == errno.ESTALE
    assert (tmp_path / "w" / "a").read_text() == "first"


def test_what_the_run_writes_counts(files: DryRunFiles) -> None:
    with pytest.raises(QuotaFull):
        files.write_whole("large", bytes(10_001))


def test_links_are_not_copied(files: DryRunFiles, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "w" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "w" / "hard").hardlink_to(tmp_path / "secret")
    (tmp_path / "w" / "folder").symlink_to(tmp_path, target_is_directory=True)
    for path in ("/workspace/link", "/workspace/hard", "/workspace/folder/secret"):
        for mode in ("r", "r+", "a", "w"):
            with pytest.raises(WorkspaceError):
                files.open(path, mode)  # type: ignore[arg-type]
        with pytest.raises(WorkspaceError):
            files.rename(path, "/workspace/moved")
        with pytest.raises(WorkspaceError):
            files.remove(path)
    assert (tmp_path / "secret").read_text() == "outside"
