"""Servers of these tests look for waiting runs as soon as they start."""

from __future__ import annotations

import pytest

from sealab.server.runs.background import background_work


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a server in this process look for runs at once, and not only when its start has settled."""
    monkeypatch.setattr(background_work, "_FIRST_LOOK_SECONDS", 0.05)
