"""What cancelled runs had written is kept after their callers; a server that ends waits for it, but not for long."""

from __future__ import annotations

import asyncio

import pytest

from sealab.server.runs import cancelled_runs
from sealab.server.runs.cancelled_runs import CancelledRuns, LeftFiles


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
