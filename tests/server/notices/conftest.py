"""A PostgreSQL server for the tests of what servers share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ...skills_db.postgres import INSTALL, Cluster, find_binaries, throwaway_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A throw-away PostgreSQL server. In CI it must be there; elsewhere its tests are skipped without it."""
    if find_binaries() is None:
        if os.environ.get("CI"):
            pytest.fail(f"There is no PostgreSQL on this machine. {INSTALL}")
        pytest.skip(f"there is no PostgreSQL on this machine. {INSTALL}")
    with throwaway_cluster(durable=False) as running:
        yield running
