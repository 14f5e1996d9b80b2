"""Writing, reading, listing and deleting."""

from __future__ import annotations

import base64
import dataclasses
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.workspace import store
from sealab.workspace.errors import ContentRefused, NameRefused, NotAFile, NotFound, Reserved, Unavailable
from sealab.workspace.store import Deleted, FileSlice, Workspace, WriteResult

from .conftest import OWNER, kept_in


def test_what_is_written_is_read_back(either_way: Workspace) -> None:
    assert either_way.write("a/b/héllo.txt", "grüße\r\n") == WriteResult("a/b/héllo.txt", 9)
    assert either_way.read("a/b/héllo.txt") == FileSlice("a/b/héllo.txt", "grüße\r\n", 9, truncated=False)


def test_results_have_exactly_the_keys_of_the_contract(workspace: Workspace) -> None:
    written = workspace.write("f", "x")
    results = (written, workspace.read("f"), workspace.list(), workspace.list().files[0], workspace.delete("f"))
    assert [[field.name for field in dataclasses.fields(result)] for result in results] == [
        ["filename", "size"], ["filename", "content", "size", "truncated"],
        ["path", "files", "count", "used_bytes", "quota_bytes"], ["name", "size", "modified"], ["filename", "deleted"],
    ]  # fmt: skip


def test_writing_again_replaces_and_appending_adds(either_way: Workspace) -> None:
    either_way.write("f", "long text")
    assert either_way.write("f", "short").size == 5
    assert either_way.write("f", ", é", append=True).size == 9
    assert either_way.read("f").content == "short, é"
    assert either_way.write("new/g", "begun", append=True).size == 5


def test_bytes_and_base64_carry_any_content(workspace: Workspace) -> None:
    data = bytes(range(256))
    workspace.write("b1", data)
    workspace.write("b2", base64.b64encode(data).decode(), encoding="base64")
    for name in ("b1", "b2"):
        assert base64.b64decode(workspace.read(name, encoding="base64").content) == data


@pytest.mark.parametrize("text", ["YQ", "YQ=", "Y Q==", "YQ==\n", "YQ==YQ==", "YR==", "é===", "_-8=", "="])
def test_content_that_is_not_strict_base64_is_refused_and_nothing_changes(workspace: Workspace, text: str) -> None:
    workspace.write("f", "before")
    with pytest.raises(ContentRefused, match=r"not base64 .*padding"):
        workspace.write("f", text, encoding="base64")
    assert workspace.read("f").content == "before"


def test_text_that_utf8_cannot_hold_is_refused_with_the_place(workspace: Workspace) -> None:
    with pytest.raises(ContentRefused, match="lone surrogate at character 2"):
        workspace.write("f", "ab\udc80")
    assert workspace.list().count == 0


def test_binary_read_as_text_says_what_to_do(workspace: Workspace) -> None:
    workspace.write("image.png", b"\x89PNG")
    with pytest.raises(ContentRefused, match="encoding='base64'"):
        workspace.read("image.png")


def test_text_cut_off_within_a_character_is_not_text(workspace: Workspace) -> None:
    workspace.write("cut", "é".encode()[:1])
    with pytest.raises(ContentRefused):
        workspace.read("cut")


@pytest.mark.parametrize(("offset", "limit"), [(-1, None), (0, -1), (True, None), (0, 1.5), ("0", None)])
def test_an_impossible_slice_is_refused(workspace: Workspace, offset: int, limit: int | None) -> None:
    workspace.write("f", "x")
    with pytest.raises(ContentRefused, match="whole number"):
        workspace.read("f", offset, limit)


def test_an_unknown_encoding_is_refused(workspace: Workspace) -> None:
    workspace.write("f", "x")
    with pytest.raises(ContentRefused, match="'latin-1'"):
        workspace.read("f", encoding="latin-1")  # type: ignore[arg-type]  # what a caller may send
    with pytest.raises(ContentRefused, match="'latin-1'"):
        workspace.write("f", "x", encoding="latin-1")  # type: ignore[arg-type]  # what a caller may send


@pytest.mark.parametrize("content", [None, 3, ["x"], {"a": 1}])
def test_content_that_is_neither_text_nor_bytes_is_refused(workspace: Workspace, content: str) -> None:
    with pytest.raises(ContentRefused, match=f"not {type(content).__name__}"):
        workspace.write("f", content)


_letters = st.sampled_from("aé日𝄞\n")


@given(text=st.text(_letters, max_size=60), offset=st.integers(0, 70), limit=st.none() | st.integers(0, 70))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_text_slice_counts_characters_whatever_the_chunks(
    workspace: Workspace, text: str, offset: int, limit: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_CHUNK_BYTES", 3)
        workspace.write("f", text)
        end = None if limit is None else offset + limit
        read = workspace.read("f", offset, limit)
    assert read.content == text[offset:end]
    assert read.truncated == (end is not None and end < len(text))
    assert read.size == len(text.encode())


@given(data=st.binary(max_size=60), offset=st.integers(0, 70), limit=st.none() | st.integers(0, 70))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_base64_slice_counts_bytes(workspace: Workspace, data: bytes, offset: int, limit: int | None) -> None:
    workspace.write("f", data)
    end = None if limit is None else offset + limit
    read = workspace.read("f", offset, limit, encoding="base64")
    assert base64.b64decode(read.content) == data[offset:end]
    assert read.truncated == (end is not None and end < len(data))


@pytest.mark.parametrize("text", ["x" * 100, "é" * 50])
def test_a_slice_is_bounded_and_says_that_more_follows(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(store, "READ_BYTES_MAX", 40)
    monkeypatch.setattr(store, "_CHUNK_BYTES", 10)
    workspace.write("f", text)
    for encoding in ("utf-8", "base64"):
        pieces, offset, truncated = [], 0, True
        while truncated:
            read = workspace.read("f", offset, encoding=encoding)
            truncated = read.truncated
            pieces.append(read.content if encoding == "utf-8" else base64.b64decode(read.content).decode())
            offset += len(read.content) if encoding == "utf-8" else len(base64.b64decode(read.content))
        assert len(pieces) > 2
        assert "".join(pieces) == text


def test_a_sparse_file_is_read_in_slices_and_never_allocated_whole(workspace: Workspace, folder: Path) -> None:
    with open(folder / "sparse", "wb") as sparse:
        sparse.truncate(1 << 40)
    assert workspace.read("sparse", 1 << 39, 4, encoding="base64").content == "AAAAAA=="
    assert len(workspace.read("sparse", encoding="base64").content) <= store.READ_BYTES_MAX * 4 // 3 + 4
    assert workspace.read("sparse", 0, 3).content == "\0\0\0"
    with pytest.raises(ContentRefused, match="too large to count"):
        workspace.read("sparse", 1 << 39, 4)


def test_files_are_listed_by_name_with_size_and_time_of_change(either_way: Workspace) -> None:
    for name in ("b.txt", "a/z", "a/b/c", "B"):
        either_way.write(name, name)
    listing = either_way.list()
    assert [(file.name, file.size) for file in listing.files] == [("B", 1), ("a/b/c", 5), ("a/z", 3), ("b.txt", 5)]
    assert (listing.path, listing.count, listing.used_bytes) == (".", 4, 14)
    for file in listing.files:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", file.modified)
        assert abs(datetime.fromisoformat(file.modified) - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_folder_is_listed_with_names_from_the_root(either_way: Workspace) -> None:
    for name in ("a/z", "a/b/c", "top"):
        either_way.write(name, "x")
    listing = either_way.list("a/")
    assert listing.path == "a"
    assert [either_way.read(file.name).content for file in listing.files] == ["x", "x"]
    assert [file.name for file in listing.files] == ["a/b/c", "a/z"]
    with pytest.raises(NotFound):
        either_way.list("nowhere")


def test_a_list_can_be_cut_and_still_counts_all(workspace: Workspace) -> None:
    for number in range(5):
        workspace.write(f"f{number}", "x")
    listing = workspace.list(limit=2)
    assert ([file.name for file in listing.files], listing.count) == (["f0", "f1"], 5)


def test_a_file_from_before_time_is_listed(workspace: Workspace, folder: Path) -> None:
    workspace.write("old", "x")
    os.utime(folder / "old", (-1e10, -1e10))
    assert workspace.list().files[0].modified.endswith("Z")


def test_deleting_removes_the_file_and_the_folders_it_leaves_empty(either_way: Workspace, folder: Path) -> None:
    either_way.write("a/b/c/one", "x")
    either_way.write("a/two", "x")
    assert either_way.delete("a/b/c/one") == Deleted("a/b/c/one", deleted=True)
    assert sorted(os.listdir(folder / "a")) == ["two"]
    either_way.delete("a/two")
    assert os.listdir(folder) == []
    with pytest.raises(NotFound):
        either_way.delete("a/two")


def test_the_reserved_folder_can_be_read_and_listed_by_name_only(either_way: Workspace, folder: Path) -> None:
    (kept_in(folder) / "r1").mkdir()
    (kept_in(folder) / "r1" / "output.txt").write_text("hello")
    assert either_way.list().count == 0
    assert [file.name for file in either_way.list(".runs", owner=OWNER).files] == [".runs/r1/output.txt"]
    assert [file.name for file in either_way.list(".runs/r1", owner=OWNER).files] == [".runs/r1/output.txt"]
    assert either_way.read(".runs/r1/output.txt", owner=OWNER).content == "hello"
    for name in (".runs/.ledger", ".runs/r1/missing", ".RUNS/r1/output.txt", ".runs/r2", ".runs/r1/../r1/output.txt"):
        with pytest.raises((NotFound, NameRefused)) as caught:
            either_way.read(name, owner=OWNER)
        assert str(folder.parent) not in str(caught.value)
    with pytest.raises(NotAFile):
        either_way.read(".runs", owner=OWNER)
    for name in (".runs/r1/output.txt", ".runs/x", ".runs", ".RUNS/x"):
        with pytest.raises(Reserved):
            either_way.write(name, "x")
        with pytest.raises(Reserved):
            either_way.delete(name)
    assert (kept_in(folder) / "r1" / "output.txt").read_text() == "hello"


def test_a_reader_sees_the_old_or_the_new_content_and_never_a_mixture(workspace: Workspace) -> None:
    contents = {letter * 50_000 for letter in "abc"}
    workspace.write("f", "a" * 50_000)
    done = threading.Event()

    def writer() -> None:
        for _ in range(15):
            for content in sorted(contents):
                workspace.write("f", content)
        done.set()

    thread = threading.Thread(target=writer)
    thread.start()
    seen = set()
    while not done.is_set():
        seen.add(workspace.read("f").content)
    thread.join()
    assert seen <= contents
    assert len(seen) > 1


def test_threads_appending_together_lose_nothing(workspace: Workspace) -> None:
    def appender(mark: str) -> None:
        for number in range(20):
            workspace.write("log", f"{mark}{number}\n", append=True)
            workspace.write(f"d/{mark}", str(number))

    threads = [threading.Thread(target=appender, args=(mark,)) for mark in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = workspace.read("log").content.split()
    assert sorted(lines) == sorted(f"{mark}{number}" for mark in "abcd" for number in range(20))
    used = workspace.usage()
    assert (used.used_bytes, used.entries) == (
        sum(file.size for file in workspace.list().files),
        6,
    )


def test_a_removed_workspace_is_reported_and_nothing_is_written_elsewhere(either_way: Workspace, folder: Path) -> None:
    os.rmdir(folder)
    with pytest.raises(Unavailable):
        either_way.write("f", "x")
    with pytest.raises(Unavailable):
        either_way.write("a/f", "x")
    assert not folder.exists()


_LIMITED = """
import resource, sys
from sealab.workspace.errors import Unavailable
from sealab.workspace.store import Workspace
with Workspace(sys.argv[1], quota_bytes=1_000_000) as workspace:
    workspace.write("f", "x" * 3000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    for name, append in (("f", False), ("f", True), ("made/for/it", False)):
        try:
            workspace.write(name, "y" * 10_000, append=append)
        except Unavailable as error:
            print(error)
    usage = workspace.usage()
    print(usage.used_bytes, usage.entries, workspace.read("f").content == "x" * 3000)
"""


def test_a_write_that_the_system_stops_halfway_leaves_what_was_there(folder: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(folder)], capture_output=True, text=True, check=True, timeout=50
    ).stdout.splitlines()
    assert len(said) == 4
    assert all("The operating system refused" in line for line in said[:3])
    assert said[3] == "3000 1 True"
    assert sorted(os.listdir(folder)) == ["f"]
