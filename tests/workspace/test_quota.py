"""The quota on bytes and on entries: it refuses before anything is written and never drifts from what is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.workspace import quota
from sealab.workspace.errors import ContentRefused, NotFound, QuotaFull, WorkspaceError
from sealab.workspace.store import Workspace

from .conftest import kept_in


@pytest.fixture
def small(folder: Path) -> Iterator[Workspace]:
    with Workspace(folder, quota_bytes=100, files_max=6) as workspace:
        yield workspace


def _held(workspace: Workspace) -> tuple[int, int]:
    usage = workspace.usage()
    return usage.used_bytes, usage.entries


def _there(folder: Path) -> tuple[int, int]:
    """What a look from outside counts."""
    used_bytes = entries = 0
    for place, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        used_bytes += sum(os.lstat(os.path.join(place, file)).st_size for file in files)
    return used_bytes, entries


def test_a_write_past_the_quota_is_refused_with_the_figures_and_loses_nothing(small: Workspace, folder: Path) -> None:
    small.write("f", "x" * 60)
    with pytest.raises(QuotaFull, match=r"41 more bytes were needed, 40 of 100 are free.*Delete"):
        small.write("d/g", "y" * 41)
    with pytest.raises(QuotaFull):
        small.write("f", "y" * 101)
    with pytest.raises(QuotaFull):
        small.write("f", "y" * 41, append=True)
    assert small.read("f").content == "x" * 60
    assert _there(folder) == _held(small) == (60, 1)


def test_replacing_counts_the_difference_only(small: Workspace) -> None:
    small.write("f", "x" * 90)
    small.write("f", "y" * 100)
    assert _held(small) == (100, 1)
    small.write("f", "")
    small.write("g", "z" * 100)


def test_deleting_gives_bytes_and_entries_back(small: Workspace) -> None:
    small.write("a/b/f", "x" * 100)
    assert _held(small) == (100, 3)
    small.delete("a/b/f")
    assert _held(small) == (0, 0)
    small.write("g", "x" * 100)


def test_files_and_their_folders_are_counted_together(small: Workspace) -> None:
    small.write("a/b/c/d/e", "")
    small.write("f", "")
    with pytest.raises(QuotaFull, match=r"6 files and folders; 6 are allowed"):
        small.write("g", "")
    small.write("f", "still can be replaced")
    assert _held(small) == (21, 6)


def test_a_deep_name_that_would_make_too_many_folders_makes_none(small: Workspace, folder: Path) -> None:
    with pytest.raises(QuotaFull):
        small.write("1/2/3/4/5/6/f", "")
    assert _there(folder) == (0, 0)


def test_a_sparse_file_counts_as_long_as_it_says(small: Workspace, folder: Path) -> None:
    with open(folder / "sparse", "wb") as sparse:
        sparse.truncate(1 << 30)
    assert small.list().used_bytes == 1 << 30
    with pytest.raises(QuotaFull):
        small.write("f", "x")


def test_room_made_by_hand_is_noticed_before_a_write_is_refused(
    small: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write("f", "x" * 100)
    (folder / "f").unlink()
    monkeypatch.setattr(quota, "RECOUNT_FULL_SECONDS", -1.0)
    small.write("g", "y" * 100)
    assert _held(small) == (100, 1)


def test_files_put_there_by_hand_are_noticed_after_a_while(
    small: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "foreign").write_text("x" * 100)
    monkeypatch.setattr(quota, "RECOUNT_SECONDS", -1.0)
    with pytest.raises(QuotaFull):
        small.write("f", "x")


def test_an_overfull_workspace_can_still_shrink(small: Workspace, folder: Path) -> None:
    (folder / "f").write_text("x" * 1000)
    assert small.list().used_bytes == 1000
    small.write("f", "y" * 500)
    small.delete("f")
    assert _held(small) == (0, 0)


def test_refusals_of_a_full_workspace_do_not_count_the_files_each_time(
    small: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write("f", "x" * 100)
    counted = []
    recount = quota.Ledger.recount
    monkeypatch.setattr(quota.Ledger, "recount", lambda self: (counted.append(1), recount(self)))
    monkeypatch.setattr(quota, "RECOUNT_FULL_SECONDS", 1000.0)
    for _ in range(20):
        with pytest.raises(QuotaFull):
            small.write("g", "y")
    assert counted == []


def test_reports_do_not_count(small: Workspace, folder: Path) -> None:
    (kept_in(folder) / "r").mkdir()
    (kept_in(folder) / "r" / "output.txt").write_text("x" * 1000)
    small.write("f", "x" * 100)
    assert small.list().used_bytes == 100


def test_a_ledger_that_is_damaged_or_half_changed_is_counted_anew(folder: Path) -> None:
    with Workspace(folder, quota_bytes=100) as workspace:
        workspace.write("f", "x" * 7)
        ledger = kept_in(folder) / ".ledger"
        whole = ledger.read_bytes()
        wrong = quota._RECORD.pack(quota._MAGIC, 99, 99, True)
        for damaged in (b"", b"nonsense", whole + b"more", b"\xff" * len(whole), wrong):
            ledger.write_bytes(damaged)
            assert _held(workspace) == (7, 1)


def test_two_stores_on_one_root_share_the_count(folder: Path) -> None:
    with Workspace(folder, quota_bytes=100) as one, Workspace(folder, quota_bytes=100) as two:
        one.write("a/f", "x" * 60)
        assert _held(two) == (60, 2)
        with pytest.raises(QuotaFull):
            two.write("g", "y" * 41)
        two.delete("a/f")
        one.write("h", "z" * 100)
        assert _held(two) == (100, 1)


_WRITER = """
import sys
from sealab.workspace.errors import WorkspaceError
from sealab.workspace.store import Workspace
mark = sys.argv[2]
with Workspace(sys.argv[1], quota_bytes=50_000, files_max=40) as workspace:
    print("ready", flush=True)
    number = 0
    while number < int(sys.argv[3]):
        number += 1
        try:
            workspace.write(f"{mark}/{number % 7}/f", mark * (number * 37 % 4000))
            workspace.write("log", mark, append=True)
            if number % 3 == 0:
                workspace.delete(f"{mark}/{number % 7}/f")
        except WorkspaceError as error:
            print(error.code)
"""


def _writer(folder: Path, mark: str, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(folder), mark, str(rounds)], stdout=subprocess.PIPE, text=True
    )


def test_processes_writing_at_once_keep_the_count_true_and_lose_no_append(folder: Path) -> None:
    writers = [_writer(folder, mark, 150) for mark in "ab"]
    said = [writer.communicate(timeout=50)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert said == ["ready\n", "ready\n"]
    with Workspace(folder, quota_bytes=50_000) as workspace:
        log = workspace.read("log").content
        assert (log.count("a"), log.count("b")) == (150, 150)
        assert _held(workspace) == _there(folder)


def test_a_writer_killed_in_the_middle_leaves_whole_files_a_true_count_and_no_leftovers(folder: Path) -> None:
    with Workspace(folder, quota_bytes=50_000, files_max=40) as workspace:
        for _ in range(6):
            writer = _writer(folder, "k", 10**9)
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            while _held(workspace) == (0, 0):
                time.sleep(0.001)
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
            writer.stdout.close()
            listing = workspace.list()
            assert _held(workspace) == _there(folder)
            for file in listing.files:
                assert set(workspace.read(file.name).content) <= {"k"}
            for file in listing.files:
                workspace.delete(file.name)


def test_what_a_killed_write_left_behind_is_never_listed_and_removed_at_the_next_opening(folder: Path) -> None:
    with Workspace(folder, quota_bytes=100) as workspace:
        workspace.write("d/f", "x")
    part = folder / "d" / ".sealab-part-0011"
    part.write_text("half")
    with Workspace(folder, quota_bytes=100) as workspace:
        assert not part.exists()
        part.write_text("half")
        assert [file.name for file in workspace.list("d").files] == ["d/f"]
        assert [file.name for file in workspace.list().files] == ["d/f"]
        assert _held(workspace) == (1, 2)


_names = st.sampled_from(["f", "a/f", "a/b/f", "a/b", "g", ".runs/x", "../f"])
_steps = st.lists(
    st.tuples(st.sampled_from(["write", "append", "delete", "bad"]), _names, st.integers(0, 70)), max_size=25
)


@given(steps=_steps)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_whatever_is_done_the_count_is_what_is_there_and_within_the_quota(
    small: Workspace, folder: Path, steps: list[tuple[str, str, int]]
) -> None:
    for file in small.list().files:
        small.delete(file.name)
    model: dict[str, int] = {}
    for action, name, size in steps:
        try:
            match action:
                case "write":
                    model[name] = small.write(name, "x" * size).size
                case "append":
                    model[name] = small.write(name, "x" * size, append=True).size
                case "bad":
                    with pytest.raises((ContentRefused, WorkspaceError)):
                        small.write(name, "\udc80")
                case _:
                    small.delete(name)
                    del model[name]
        except NotFound:
            assert name not in model
        except WorkspaceError:
            pass
        assert {file.name: file.size for file in small.list().files} == model
        assert _held(small) == _there(folder)
        assert _held(small)[0] <= 100
        assert _held(small)[1] <= 6
