"""How long the clock of a run may stand still."""

from __future__ import annotations

import asyncio

import pytest

from sealab.sandbox.host import run_clock
from sealab.sandbox.host.run_clock import Clock


async def test_the_pauses_of_a_run_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_clock, "PAUSE_SECONDS_MAX", 0.2)
    rang = asyncio.Event()
    clock = Clock(0.2, lambda: None, rang.set)
    try:
        for _ in range(60):  # far more than need be: each alone is within the bound
            with clock.pause():
                await asyncio.sleep(0.1)
            if rang.is_set():
                break
    finally:
        clock.stop()
    assert rang.is_set()
