"""Parts of bounds are lent until the last run of a server has ended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sealab.server.app import running
from sealab.server.home import Home
from sealab.server.settings import Settings
from sealab.server.shares.shared_bounds import PartLacking

from ..conftest import LEAST


async def test_who_waits_for_a_part_waits_on_until_background_runs_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LEAST.items():
        monkeypatch.setenv(name, value)
    waited: list[bool] = []
    async with running(Settings(), Home(tmp_path)) as app:
        parts, close = app.executor.shares.parts, app.background.work.aclose
        await parts.take("bound", 1, wait_seconds=0)
        waiting = asyncio.create_task(parts.take("bound", 1, wait_seconds=600))

        async def ended() -> None:
            await close()
            waited.append(not waiting.done())

        monkeypatch.setattr(app.background.work, "aclose", ended)
    assert waited == [True]
    with pytest.raises(PartLacking):
        await waiting
