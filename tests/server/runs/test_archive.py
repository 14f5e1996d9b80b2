"""Runs that are kept after their reply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealab.server.runs.archive import RunKeeper
from sealab.workspace.archive import RunArchive
from sealab.workspace.store import Workspace

pytestmark = pytest.mark.anyio


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
