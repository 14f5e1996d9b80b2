"""The records of runs, as the server writes them on the side."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from sealab.server.database import HomeDatabase
from sealab.server.skills.service import SkillService
from tests.waiting import wait_until


def test_runs_are_recorded_though_the_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time
    with closing(HomeDatabase(None, tmp_path)) as database, closing(SkillService(database)) as service:
        service.note("a" * 26, duration_ms=1.0, status="ok", isolation="restricted", skills={})
        monkeypatch.setattr(time, "time", lambda: now() - 3600)
        wait_until(lambda: not service._ended.waiting())
        wait_until(lambda: service.run_store().count_by_status() == {"ok": 1})
