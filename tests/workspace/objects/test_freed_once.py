"""What is deleted becomes free once, however many servers delete it: else the quota could be passed."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from sealab.workspace.dry_run_files import files_of_run
from sealab.workspace.errors import ChangedMeanwhile, QuotaFull, WorkspaceError
from sealab.workspace.objects.bucket import Bucket
from sealab.workspace.objects.stored_workspace import StoredWorkspace
from tests.object_stores import S3Server
from tests.workspace.conftest import Opens

Pair = tuple[StoredWorkspace, StoredWorkspace]


@pytest.fixture
def pair(opens: Opens, s3: S3Server) -> Pair:
    bucket = s3.bucket()
    return opens(s3, bucket), opens(s3, bucket)


def at_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Have two threads meet before they do this."""
    barrier = threading.Barrier(2)
    original = getattr(StoredWorkspace, method)

    def met(self: StoredWorkspace, *given: Any, **named: Any) -> Any:
        barrier.wait(30)
        return original(self, *given, **named)

    monkeypatch.setattr(StoredWorkspace, method, met)


def real_and_counted(workspace: StoredWorkspace) -> tuple[tuple[int, int], tuple[int, int]]:
    objects = list(workspace.bucket.walk())
    used = workspace._counts.used()
    return (sum(each.size for each in objects), len(objects)), (used[0], used[1])


def test_a_file_that_two_servers_delete_at_once_is_free_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair[0].write("kept", "k" * 900)
    pair[0].write("f", "x" * 900)
    at_once(monkeypatch, "remove_file")
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda each: each.delete("f"), pair))
    real, counted = real_and_counted(pair[0])
    assert real == counted == (900, 1)


def test_a_file_that_two_servers_rename_at_once_is_counted_as_often_as_it_is_there(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair[0].write("f", "x" * 900)
    at_once(monkeypatch, "delete_copied")

    def rename(server: int) -> None:
        files = files_of_run(pair[server], "home")
        with contextlib.suppress(ChangedMeanwhile):
            files.rename("/workspace/f", f"/workspace/to-{server}")
        files.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(rename, range(2)))
    real, counted = real_and_counted(pair[0])
    assert real == counted == (1800, 2)


def test_room_that_a_smaller_content_gives_back_is_not_given_back_by_a_deletion_too(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    one.write("f", "x" * 900)
    delete = Bucket.delete
    writes: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as threads:

        def late(self: Bucket, key: str) -> None:
            if key == "f":
                monkeypatch.setattr(Bucket, "delete", delete)
                writes.append(threads.submit(two.write, "f", "y"))
                wait(writes, 0.5)
            delete(self, key)

        monkeypatch.setattr(Bucket, "delete", late)
        one.delete("f")
        writes[0].result(30)
    real, counted = real_and_counted(one)
    assert real == counted == (1, 1)


def test_a_rename_that_finds_no_room_for_the_folder_it_leaves_copies_nothing(opens: Opens, s3: S3Server) -> None:
    workspace = opens(s3, s3.bucket(), files_max=2)
    workspace.write("d/f", "x" * 900)
    workspace.write("other", "x")
    files = files_of_run(workspace, "home")
    for number in range(3):
        with pytest.raises(QuotaFull):
            files.rename("/workspace/d/f", f"/workspace/to-{number}")
    files.rename("/workspace/d/f", "/workspace/d/g")
    files.close()
    real, counted = real_and_counted(workspace)
    assert real == counted == (901, 2)


def test_a_copy_whose_source_cannot_be_deleted_is_counted(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair[0].write("f", "x" * 900)

    def away(_self: Bucket, _key: str) -> None:
        raise WorkspaceError("The store is away.")

    with monkeypatch.context() as patched:
        patched.setattr(Bucket, "delete", away)
        files = files_of_run(pair[0], "home")
        with pytest.raises(WorkspaceError, match="away"):
            files.rename("/workspace/f", "/workspace/to")
    files.close()
    real, counted = real_and_counted(pair[0])
    assert real == counted == (1800, 2)
