"""What every test can ask for."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep hostile tests off machines that could be hurt."""
    if os.environ.get("SEALAB_DISPOSABLE") == "1":
        return
    reason = "runs hostile code: use `make adversarial WRAPPER=…` with a command that gives it a throw-away machine"
    for item in items:
        if item.get_closest_marker("adversarial"):
            item.add_marker(pytest.mark.skip(reason=reason))
