"""The archive of runs in an object store: one request a run, several at once, and none waits for that of another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sealab.workspace.errors import NotFound, Unavailable
from sealab.workspace.objects.bucket import Bucket
from sealab.workspace.objects.kept_runs import KeptRuns
from sealab.workspace.objects.stored_archive import AT_ONCE, StoredRunArchive
from sealab.workspace.objects.stored_workspace import StoredWorkspace
from tests.object_stores import S3Server
from tests.workspace.conftest import OWNER, Opens

OTHER = "somebody"
_SECONDS = 30.0

Put = Callable[[KeptRuns, str, Mapping[str, bytes]], None]


@pytest.fixture
def workspace(opens: Opens, moto_server: S3Server) -> StoredWorkspace:
    return opens(moto_server, moto_server.bucket())


@pytest.fixture
def put() -> Put:
    return KeptRuns.put


def code_of(workspace: StoredWorkspace, run_id: str, owner: str = OWNER) -> str:
    return workspace.read(f".runs/{run_id}/code.py", owner=owner).content


def test_a_new_run_is_kept_by_one_request(workspace: StoredWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = StoredRunArchive(workspace)
    archive.keep("first", owner=OWNER, code="the store is listed once")
    asked = []
    ask = Bucket._asked

    def counted(self: Bucket, question: Callable[[], Any]) -> Any:
        asked.append(question)
        return ask(self, question)

    monkeypatch.setattr(Bucket, "_asked", counted)
    for number in range(20):
        assert archive.keep_soon(f"r{number}", owner=OWNER, code=str(number))
    archive.flush()
    archive.keep("cut", owner=OWNER, code="x", output="long")
    assert len(asked) == 20 + 2
    assert code_of(workspace, "r19") == "19"


def test_nobody_waits_for_the_run_of_another(
    workspace: StoredWorkspace, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()

    def slow(self: KeptRuns, folder: str, files: Mapping[str, bytes]) -> None:
        if folder == "slow":
            begun.set()
            assert released.wait(_SECONDS)
        put(self, folder, files)

    archive = StoredRunArchive(workspace)
    archive.keep("first", owner=OWNER, code="first")
    monkeypatch.setattr(KeptRuns, "put", slow)
    with ThreadPoolExecutor(3) as threads:
        try:
            assert archive.keep_soon("slow", owner=OWNER, code="at last")
            flushed = threads.submit(archive.flush)
            assert begun.wait(_SECONDS)
            assert archive.keep_soon("waits", owner=OTHER, code="of another")
            done = threads.submit(_whatever_else, workspace, archive)
            assert done.result(_SECONDS) == ("content", "first", "of another", "cut")
            reads = threads.submit(code_of, workspace, "slow")
            assert not reads.done()
        finally:
            released.set()
        assert reads.result(_SECONDS) == "at last"
        flushed.result(_SECONDS)


def _whatever_else(workspace: StoredWorkspace, archive: StoredRunArchive) -> tuple[str, ...]:
    workspace.write("f", "content")
    archive.keep("cut", owner=OTHER, code="cut", output="long")
    assert len(workspace.list(".runs", owner=OTHER).files) == 3
    return (
        workspace.read("f").content,
        code_of(workspace, "first"),
        code_of(workspace, "waits", OTHER),
        code_of(workspace, "cut", OTHER),
    )


def test_several_are_stored_at_once_and_no_more_than_so_many(
    workspace: StoredWorkspace, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(AT_ONCE)
    counting = threading.Lock()
    now: list[int] = [0, 0]

    def counted(self: KeptRuns, folder: str, files: Mapping[str, bytes]) -> None:
        with counting:
            now[0] += 1
            now[1] = max(now)
        together.wait(_SECONDS)
        put(self, folder, files)
        with counting:
            now[0] -= 1

    archive = StoredRunArchive(workspace)
    archive.keep("first", owner=OWNER, code="first")
    monkeypatch.setattr(KeptRuns, "put", counted)
    for number in range(AT_ONCE * 3):
        assert archive.keep_soon(f"r{number}", owner=OWNER, code=str(number))
    with ThreadPoolExecutor(3) as threads:
        for each in [threads.submit(archive.flush) for _ in range(3)]:
            each.result(_SECONDS)
    assert now == [0, AT_ONCE]
    assert archive.waiting == 0


def test_what_the_store_does_not_take_waits_and_is_told_and_nothing_is_lost(
    workspace: StoredWorkspace, put: Put, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_self: KeptRuns, _folder: str, _files: Mapping[str, bytes]) -> None:
        raise Unavailable("The object store does not answer.")

    archive = StoredRunArchive(workspace)
    with monkeypatch.context() as broken:
        broken.setattr(KeptRuns, "put", fail)
        assert archive.keep_soon("r1", owner=OWNER, code="1")
        assert archive.keep_soon("r2", owner=OWNER, code="2")
        archive.flush()
        assert archive.waiting == 2
        assert "Runs cannot be kept now, and wait" in caplog.text
        with pytest.raises(Unavailable, match="waits for the object store"):
            code_of(workspace, "r1")
        with pytest.raises(Unavailable, match="waits for the object store"):
            workspace.list(".runs", owner=OWNER)
        assert not archive.keep_soon("r3", owner=OWNER, code="3")
        with pytest.raises(Unavailable):
            archive.keep("r3", owner=OWNER, code="3")
    archive.flush()
    assert archive.waiting == 0
    assert [code_of(workspace, each) for each in ("r1", "r2")] == ["1", "2"]
    assert archive.keep_soon("r4", owner=OWNER, code="4")


def test_a_run_whose_answer_was_lost_is_kept_once_and_no_run_takes_the_id_of_another(
    workspace: StoredWorkspace, caplog: pytest.LogCaptureFixture
) -> None:
    archive = StoredRunArchive(workspace)
    for code in ("same", "same", "another"):
        assert archive.keep_soon("r1", owner=OWNER, code=code)
        archive.flush()
    assert code_of(workspace, "r1") == "same"
    assert "The run r1 is kept already" in caplog.text or "'r1' is kept already" in caplog.text
    assert archive.waiting == 0


def test_only_the_last_are_kept_however_many_are_stored_at_once(workspace: StoredWorkspace) -> None:
    archive = StoredRunArchive(workspace, 5)
    for burst in range(4):
        for number in range(20):
            assert archive.keep_soon(f"r{burst}-{number}", owner=OWNER, code="x")
        archive.flush()
        kept = [file.name for file in workspace.list(".runs", owner=OWNER).files]
        assert len(kept) == 5
        assert all(name.startswith(f".runs/r{burst}-") for name in kept)
    with pytest.raises(NotFound):
        code_of(workspace, "r0-0")
