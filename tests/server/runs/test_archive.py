"""Runs that are kept after their reply, and what cancelled ones had written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sealab.server.use_cases.runs import cancelled_runs
from sealab.server.use_cases.runs.archive import RunKeeper
from sealab.server.use_cases.runs.cancelled_runs import CancelledRuns, LeftFiles
from sealab.skills_db.engine import open_database
from sealab.skills_db.workspace_files import WorkspaceFiles
from sealab.workspace.archive import RunArchive
from sealab.workspace.errors import Unavailable
from sealab.workspace.objects.kept_runs import KeptRuns
from sealab.workspace.objects.stored_archive import StoredRunArchive
from sealab.workspace.objects.stored_workspace import StoredWorkspace
from sealab.workspace.store import Workspace
from tests.object_stores import moto
from tests.waiting import until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def keeping(folder: Path) -> Iterator[RunKeeper]:
    folder.mkdir()
    with Workspace(folder, quota_bytes=1_000_000) as workspace:
        yield RunKeeper(RunArchive(workspace))


async def test_a_run_is_kept_a_moment_later_without_anybody_asking(keeping: RunKeeper, folder: Path) -> None:
    kept = folder.with_name("workspace.runs") / "r1" / "code.py"
    assert keeping.soon("r1", owner="home", code="1 + 1")
    assert not kept.exists()
    async with asyncio.timeout(10):
        while not kept.exists():  # noqa: ASYNC110 - a file tells nobody that it is there
            await asyncio.sleep(0.01)
    assert kept.read_text() == "1 + 1"


async def test_what_waits_at_the_end_is_kept_and_nothing_waits_after_it(keeping: RunKeeper, folder: Path) -> None:
    assert keeping.soon("r1", owner="home", code="1 + 1")
    await keeping.aclose()
    assert (folder.with_name("workspace.runs") / "r1" / "code.py").read_text() == "1 + 1"
    assert not keeping.soon("r2", owner="home", code="2 + 2")


async def test_what_an_object_store_does_not_take_is_tried_again_and_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sealab.server.use_cases.runs.archive._AGAIN_SECONDS", 0.01)
    tries = []

    def fail(_self: KeptRuns, folder: str, _files: Mapping[str, bytes]) -> None:
        tries.append(folder)
        raise Unavailable("The object store does not answer.")

    with moto() as s3, open_database(None, tmp_path) as database:
        bucket = s3.opened(s3.bucket(), "team", monkeypatch)
        with StoredWorkspace(
            tmp_path / "cache" / "1", bucket, WorkspaceFiles(lambda: database, Unavailable), quota_bytes=1000
        ) as workspace:
            keeper = RunKeeper(StoredRunArchive(workspace))
            with monkeypatch.context() as broken:
                broken.setattr(KeptRuns, "put", fail)
                assert keeper.soon("r1", owner="home", code="1 + 1")
                await until(lambda: len(tries) > 2)
            await until(lambda: not keeper.archive.waiting)
            assert workspace.read(".runs/r1/code.py", owner="home").content == "1 + 1"
            assert keeper.soon("r2", owner="home", code="2 + 2")
            monkeypatch.setattr(KeptRuns, "put", fail)
            await keeper.aclose()
            assert "Of the runs that ended 1 were not kept" in caplog.text


async def test_what_is_kept_too_late_is_named_where_the_server_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cancelled_runs, "_CLOSING_SECONDS", 0.05)
    ended: list[str] = []

    async def over() -> None:
        """Return at once."""

    async def soon() -> LeftFiles:
        return LeftFiles(kept=1)

    async def never() -> None:
        await asyncio.Event().wait()

    runs = CancelledRuns()
    runs.begin("soon", asyncio.create_task(over()), soon, lambda: ended.append("soon"))
    runs.begin("never", asyncio.create_task(over()), never, lambda: ended.append("never"))
    await runs.aclose()
    assert await runs.left_by("soon") == LeftFiles(kept=1)
    assert await runs.left_by("unknown") is None
    assert "The files of the cancelled run never are lost" in caplog.text
    assert "run soon" not in caplog.text
    assert "soon" in ended
