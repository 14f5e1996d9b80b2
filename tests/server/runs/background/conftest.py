"""Servers of these tests look for waiting runs as soon as they start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sealab.server.use_cases.runs.background import background_work


@pytest.fixture(autouse=True, scope="package")
def looks_at_once() -> Iterator[None]:
    """Let a server in this process look for runs at once, and not only when its start has settled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background_work, "_FIRST_LOOK_SECONDS", 0.05)
        yield
