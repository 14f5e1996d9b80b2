"""Databases of both kinds, each its own, with empty tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.skills import SkillStore

from .postgres import INSTALL, Cluster, find_binaries, throwaway_cluster


@dataclass(frozen=True)
class Place:
    """Where a database is; `open` can be called again and again, also by several at once."""

    url: str | None
    home: Path

    def open(self) -> Database:
        return open_database(self.url, self.home)

    @property
    def server_url(self) -> str:
        """The URL of a database of a server."""
        assert self.url is not None
        return self.url


@contextmanager
def cluster_of_tests(*, durable: bool = False) -> Iterator[Cluster]:
    """A throw-away PostgreSQL server. In CI it must be there; elsewhere its tests are skipped without it."""
    if find_binaries() is None:
        if os.environ.get("CI"):
            pytest.fail(f"There is no PostgreSQL on this machine. {INSTALL}")
        pytest.skip(f"there is no PostgreSQL on this machine. {INSTALL}")
    with throwaway_cluster(durable=durable) as running:
        yield running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with cluster_of_tests() as running:
        yield running


@pytest.fixture
def postgres_place(cluster: Cluster, tmp_path: Path) -> Iterator[Place]:
    with cluster.database() as url:
        yield Place(url, tmp_path)


@pytest.fixture
def file_place(tmp_path: Path) -> Place:
    return Place(None, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue("file_place" if request.param == "sqlite" else "postgres_place")


@pytest.fixture
def database(place: Place) -> Iterator[Database]:
    with place.open() as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> SkillStore:
    return SkillStore(database)
