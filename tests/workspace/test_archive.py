"""The archive of runs: whole, bounded, the oldest dropped first."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sealab.workspace.archive import RunArchive
from sealab.workspace.errors import NameRefused, NotFound, QuotaFull, Unavailable, WorkspaceError
from sealab.workspace.paths import Folder
from sealab.workspace.store import Workspace

from .conftest import OWNER, archive_in, kept_in


def _runs(folder: Path) -> set[str]:
    return {name for name in os.listdir(kept_in(folder)) if not name.startswith(".")}


def test_a_run_is_kept_whole_and_read_by_its_names(workspace: Workspace) -> None:
    archive = archive_in(workspace)
    archive.keep("r1", owner=OWNER, code="print(1)\n", output="é" * 10, result_json=json.dumps([1]))
    read = {
        what: workspace.read(archive.path_of("r1", what), owner=OWNER).content
        for what in ("code.py", "output.txt", "result.json")
    }
    assert read == {"code.py": "print(1)\n", "output.txt": "é" * 10, "result.json": "[1]"}


def test_only_what_was_given_is_kept(workspace: Workspace) -> None:
    archive = archive_in(workspace)
    archive.keep("r1", owner=OWNER, code="1")
    assert [file.name for file in workspace.list(".runs", owner=OWNER).files] == [".runs/r1/code.py"]
    with pytest.raises(NotFound):
        workspace.read(archive.path_of("r1", "output.txt"), owner=OWNER)


def test_the_oldest_is_dropped_first(workspace: Workspace, folder: Path) -> None:
    archive = archive_in(workspace, kept=3)
    for number in range(10):
        archive.keep(f"r{number}", owner=OWNER, code=str(number) * (10 - number), output="long" if number % 2 else None)
        assert _runs(folder) == {f"r{at}" for at in range(max(0, number - 2), number + 1)}
        assert workspace.read(archive.path_of(f"r{number}", "code.py"), owner=OWNER).content == str(number) * (
            10 - number
        )
    assert [file.name for file in workspace.list(".runs", owner=OWNER).files] == [
        ".runs/r7/code.py",
        ".runs/r7/output.txt",
        ".runs/r8/code.py",
        ".runs/r9/code.py",
        ".runs/r9/output.txt",
    ]


def test_a_reopened_archive_goes_on_where_it_was(workspace: Workspace, folder: Path) -> None:
    first = archive_in(workspace, kept=3)
    for number in range(5):
        first.keep(f"z{9 - number}", owner=OWNER, code="x")
        time.sleep(0.01)  # a file system's clock ticks every few milliseconds
    second = archive_in(workspace, kept=3)
    second.keep("new", owner=OWNER, code="x")
    assert _runs(folder) == {"z6", "z5", "new"}


def test_runs_of_another_process_are_noticed_in_time(workspace: Workspace, folder: Path) -> None:
    one, two = archive_in(workspace, kept=5), RunArchive(workspace, kept=5)
    for number in range(100):
        one.keep(f"a{number}", owner=OWNER, code="x")
        two.keep(f"b{number}", owner=OWNER, code="x")
        assert len(_runs(folder)) <= 10
    assert {"a99", "b99"} <= _runs(folder)


def test_the_bytes_are_bounded_and_the_newest_stays_whatever_its_size(workspace: Workspace, folder: Path) -> None:
    archive = archive_in(workspace, bytes_max=1000)
    for number in range(4):
        archive.keep(f"r{number}", owner=OWNER, code="x" * 400)
    assert _runs(folder) == {"r2", "r3"}
    archive.keep("large", owner=OWNER, code="x", output="y" * 5000)
    assert _runs(folder) == {"large"}
    assert workspace.read(".runs/large/output.txt", owner=OWNER).size == 5000
    archive.keep("next", owner=OWNER, code="x")
    assert _runs(folder) == {"next"}


def test_a_full_workspace_loses_no_report_and_reports_take_nothing_from_it(folder: Path) -> None:
    with Workspace(folder, quota_bytes=10, files_max=1) as workspace:
        workspace.write("f", "x" * 10)
        archive_in(workspace).keep("r1", owner=OWNER, code="y" * 1000)
        assert workspace.read(".runs/r1/code.py", owner=OWNER).size == 1000
        assert workspace.usage().used_bytes == 10
        with pytest.raises(QuotaFull):
            workspace.write("g", "z")


@pytest.mark.parametrize("run_id", ["", ".", "..", "../x", "a/b", "a\n", "a" * 65, "A" * 5000, ".new-x", "é"])
def test_what_is_no_run_id_is_refused_and_makes_nothing(workspace: Workspace, folder: Path, run_id: str) -> None:
    archive = archive_in(workspace)
    with pytest.raises(NameRefused, match="not a run id"):
        archive.keep(run_id, owner=OWNER, code="x")
    with pytest.raises(NameRefused, match="not a run id"):
        archive.path_of(run_id, "code.py")
    assert os.listdir(kept_in(folder)) == [".ledger"]


def test_a_run_is_kept_once(workspace: Workspace) -> None:
    archive = archive_in(workspace, kept=1)
    archive.keep("r1", owner=OWNER, code="first")
    with pytest.raises(NameRefused, match="kept already"):
        archive.keep("r1", owner=OWNER, code="second")


def test_source_that_utf8_cannot_hold_is_kept_in_escapes(workspace: Workspace) -> None:
    archive_in(workspace).keep("r1", owner=OWNER, code="'\udc80'")
    assert workspace.read(".runs/r1/code.py", owner=OWNER).content == "'\\udc80'"


def test_no_run_at_all_cannot_be_kept(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="one run at least"):
        archive_in(workspace, kept=0)


def test_runs_that_somebody_removed_are_not_missed(workspace: Workspace, folder: Path) -> None:
    archive = archive_in(workspace, kept=2)
    for number in range(3):
        archive.keep(f"r{number}", owner=OWNER, code="x")
    for run_id in _runs(folder):
        shutil.rmtree(kept_in(folder) / run_id)
    archive.keep("r3", owner=OWNER, code="x")
    assert _runs(folder) == {"r3"}


def test_each_owner_finds_the_own_runs_alone(either_way: Workspace) -> None:
    archive = RunArchive(either_way)
    for owner in (OWNER, "http credentials 1", "http credentials 2"):
        archive.keep(f"run-{owner[-1]}", owner=owner, code=owner)
    archive.keep("run-1", owner="http credentials 2", code="the same id")
    assert either_way.read(".runs/run-1/code.py", owner="http credentials 1").content == "http credentials 1"
    assert either_way.read(".runs/run-1/code.py", owner="http credentials 2").content == "the same id"
    listed = {
        owner: [file.name for file in either_way.list(".runs", owner=owner).files]
        for owner in (OWNER, "http credentials 1", "http credentials 2", "http")
    }
    assert listed == {
        OWNER: [".runs/run-e/code.py"],
        "http credentials 1": [".runs/run-1/code.py"],
        "http credentials 2": [".runs/run-1/code.py", ".runs/run-2/code.py"],
        "http": [],
    }


def test_a_run_of_another_owner_is_as_unknown_as_one_that_never_was(either_way: Workspace, folder: Path) -> None:
    archive = RunArchive(either_way)
    archive.keep("theirs", owner="http credentials 1", code="secret")
    (on_disk,) = _runs(folder)
    for owner in (OWNER, "http", None):
        for run_id in ("theirs", on_disk):
            said = []
            for known in (run_id, "x" * len(run_id)):
                with pytest.raises(NotFound) as caught:
                    either_way.read(f".runs/{known}/code.py", owner=owner)
                with pytest.raises(NotFound):
                    either_way.list(f".runs/{known}", owner=owner)
                said.append(str(caught.value).replace(known, "the run"))
            assert said[0] == said[1]
    assert on_disk != "theirs"
    assert "credentials" not in on_disk


def test_nothing_of_any_run_and_nothing_that_is_locked_lies_in_the_workspace_itself(
    workspace: Workspace, folder: Path
) -> None:
    workspace.write("f", "x")
    archive_in(workspace).keep("r1", owner=OWNER, code="x", output="y")
    assert os.listdir(folder) == ["f"]
    assert stat.S_IMODE(os.stat(kept_in(folder)).st_mode) == 0o700


def test_what_a_crash_left_half_made_is_dropped_when_it_is_old(workspace: Workspace, folder: Path) -> None:
    for name, age in ((".new-old", 1000), (".new-now", 0)):
        (kept_in(folder) / name).mkdir()
        (kept_in(folder) / name / "code.py").write_text("x")
        for path in (kept_in(folder) / name / "code.py", kept_in(folder) / name):
            os.utime(path, (time.time() - age, time.time() - age))
    archive_in(workspace).keep("r1", owner=OWNER, code="x")
    assert sorted(os.listdir(kept_in(folder))) == [".ledger", ".new-now", "r1"]
    assert [file.name for file in workspace.list(".runs", owner=OWNER).files] == [".runs/r1/code.py"]


def test_a_folder_used_again_never_writes_through_a_link(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("sings")
    archive = archive_in(workspace, kept=1)
    archive.keep("r1", owner=OWNER, code="x", output="y")
    os.unlink(kept_in(folder) / "r1" / "code.py")
    os.unlink(kept_in(folder) / "r1" / "output.txt")
    (kept_in(folder) / "r1" / "code.py").symlink_to(canary)
    os.link(canary, kept_in(folder) / "r1" / "output.txt")
    archive.keep("r2", owner=OWNER, code="mine", output="mine")
    assert canary.read_text() == "sings"
    assert (
        workspace.read(".runs/r2/code.py", owner=OWNER).content
        == workspace.read(".runs/r2/output.txt", owner=OWNER).content
        == "mine"
    )


def test_a_report_that_is_dropped_while_it_is_read_is_said_to_be_gone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_in(workspace, kept=1)
    archive.keep("r1", owner=OWNER, code="old " * 10)
    time.sleep(0.02)  # past one tick of the file system's clock
    really = os.pread

    def read_late(handle: int, size: int, offset: int) -> bytes:
        monkeypatch.setattr(os, "pread", really)
        archive.keep("r2", owner=OWNER, code="new " * 10)
        return really(handle, size, offset)

    monkeypatch.setattr(os, "pread", read_late)
    with pytest.raises(NotFound, match="dropped while it was read"):
        workspace.read(".runs/r1/code.py", owner=OWNER)


def test_threads_keep_at_once(workspace: Workspace, folder: Path) -> None:
    archive = archive_in(workspace, kept=20)
    threads = [
        threading.Thread(
            target=lambda mark=mark: [archive.keep(f"{mark}{n}", owner=OWNER, code=mark) for n in range(50)]
        )
        for mark in "abcd"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_runs(folder)) == 20
    for run_id in _runs(folder):
        assert workspace.read(archive.path_of(run_id, "code.py"), owner=OWNER).content == run_id[0]


_KEEPER = """
import sys
from sealab.workspace.archive import RunArchive
from sealab.workspace.store import Workspace
archive = RunArchive(Workspace(sys.argv[1], quota_bytes=1000), kept=5)
print("ready", flush=True)
number = 0
while True:
    number += 1
    archive.keep(f"{sys.argv[2]}-{number}", owner="home", code=f"code {number};" * 50, output=f"output {number};" * 500)
"""


def test_a_server_killed_while_keeping_leaves_every_run_whole(folder: Path) -> None:
    for attempt in range(5):
        keeper = subprocess.Popen(
            [sys.executable, "-c", _KEEPER, str(folder), str(attempt)], stdout=subprocess.PIPE, text=True
        )
        assert keeper.stdout is not None
        keeper.stdout.readline()
        while f"{attempt}-9" not in str(_runs(folder)) and keeper.poll() is None:
            time.sleep(0.001)
        keeper.kill()
        keeper.wait()
        keeper.stdout.close()
        with Workspace(folder, quota_bytes=1000) as workspace:
            runs = _runs(folder)
            assert runs
            for run_id in runs:
                number = run_id.split("-")[1]
                assert (
                    workspace.read(RunArchive.path_of(run_id, "code.py"), owner=OWNER).content == f"code {number};" * 50
                )
                assert (
                    workspace.read(RunArchive.path_of(run_id, "output.txt"), owner=OWNER).content
                    == f"output {number};" * 500
                )


def test_what_waits_to_be_kept_is_there_for_whoever_reads(workspace: Workspace, folder: Path) -> None:
    archive = archive_in(workspace)
    assert archive.keep_soon("r1", owner=OWNER, code="first")
    assert archive.keep_soon("r2", owner=OWNER, code="second")
    assert _runs(folder) == set()
    assert [file.name for file in workspace.list(".runs", owner=OWNER).files] == [
        ".runs/r1/code.py",
        ".runs/r2/code.py",
    ]
    assert archive.keep_soon("r3", owner=OWNER, code="third")
    assert workspace.read(".runs/r3/code.py", owner=OWNER).content == "third"
    assert archive.keep_soon("r4", owner=OWNER, code="fourth")
    archive.flush()
    assert _runs(folder) == {"r1", "r2", "r3", "r4"}


def test_what_waits_counts_before_what_comes_later(workspace: Workspace, folder: Path) -> None:
    archive = archive_in(workspace, kept=2)
    for number in range(4):
        assert archive.keep_soon(f"r{number}", owner=OWNER, code="x")
    archive.keep("r4", owner=OWNER, code="x", output="long")
    assert _runs(folder) == {"r3", "r4"}


def test_no_more_waits_than_memory_is_given_for_it(workspace: Workspace) -> None:
    archive = archive_in(workspace, 1000)
    assert not archive.keep_soon("large", owner=OWNER, code="x" * 100_000)
    taken = [archive.keep_soon(f"r{number:03}", owner=OWNER, code="x") for number in range(300)]
    assert taken[0]
    assert not taken[-1]
    archive.flush()
    assert len(workspace.list(".runs", owner=OWNER).files) == taken.count(True)
    assert archive.keep_soon("again", owner=OWNER, code="x")


def test_after_one_that_could_not_be_kept_each_is_kept_at_once_or_refused_until_it_works_again(
    workspace: Workspace, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    archive = archive_in(workspace)
    for run_id in ("r1", "r2"):
        (kept_in(folder) / f".new-{run_id}").write_text("in the way")
    assert archive.keep_soon("r1", owner=OWNER, code="x")
    archive.flush()
    assert "The run r1 could not be kept" in caplog.text
    assert not archive.keep_soon("r2", owner=OWNER, code="x")
    with pytest.raises(WorkspaceError):
        archive.keep("r2", owner=OWNER, code="x")
    assert not archive.keep_soon("r3", owner=OWNER, code="x")
    archive.keep("r3", owner=OWNER, code="x")
    assert archive.keep_soon("r4", owner=OWNER, code="x")


def test_a_disk_that_fails_while_the_archive_looks_round_is_told_like_any_other_failure(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_folder: Folder) -> list[str]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    archive = archive_in(workspace)
    assert archive.keep_soon("r1", owner=OWNER, code="x")
    with monkeypatch.context() as broken:
        broken.setattr(Folder, "names", fail)
        archive.flush()
        with pytest.raises(Unavailable):
            archive.keep("r2", owner=OWNER, code="x")
    assert "The run r1 could not be kept" in caplog.text
    archive.keep("r3", owner=OWNER, code="x")
    assert workspace.read(".runs/r3/code.py", owner=OWNER).content == "x"


def test_threads_have_runs_wait_and_read_them_at_once(workspace: Workspace) -> None:
    archive = archive_in(workspace)

    def keep_and_read(mark: str) -> list[str]:
        read = []
        for number in range(30):
            run_id = f"{mark}{number}"
            if not archive.keep_soon(run_id, owner=OWNER, code=run_id):
                archive.keep(run_id, owner=OWNER, code=run_id)
            read.append(workspace.read(archive.path_of(run_id, "code.py"), owner=OWNER).content)
        return read

    with ThreadPoolExecutor(4) as threads:
        for mark, read in zip("abcd", threads.map(keep_and_read, "abcd"), strict=True):
            assert read == [f"{mark}{number}" for number in range(30)]
