"""A standby that lacks what was committed last is promoted: real PostgreSQL, of which one lags behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg

from sealab.skills_db.engine import open_database
from sealab.skills_db.replicas import NOBODY, ReplicaStore

from .postgres import Cluster, throwaway_cluster

A, B = "a" * 16, "b" * 16
LONG = 1000.0


@contextmanager
def promoted(behind: Path, like: Cluster) -> Iterator[Cluster]:
    """Run a standby with these files, and promote it."""
    standby = replace(like, folder=behind, process=None)
    (behind / "data" / "standby.signal").touch()
    if standby.owner is not None:
        for folder, _, files in os.walk(behind):
            for path in (folder, *(os.path.join(folder, each) for each in files)):
                shutil.chown(path, standby.owner)
    standby.start()
    try:
        with psycopg.connect(standby.url("postgres"), autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
        yield standby
    finally:
        standby.stop()


def test_a_promotion_that_loses_a_lease_is_noticed_and_no_session_is_two_servers(tmp_path: Path) -> None:
    with throwaway_cluster() as primary, tempfile.TemporaryDirectory(prefix="sealab-standby-") as behind:
        url = primary.create("shared")
        with open_database(url, tmp_path) as database:
            for each in (A, B):
                ReplicaStore(database).join(each, 1, f"http://{each}", "mark", "1", seconds=LONG)
        primary.stop()
        shutil.copytree(primary.folder / "data", Path(behind) / "data")
        primary.start()
        with open_database(url, tmp_path) as database:
            store = ReplicaStore(database)
            taken = store.take("s", A, 1, settle_seconds=LONG)
            before = store.beat(A, 1, seconds=LONG, is_leaving=False)
            assert taken.replica == A
        with promoted(Path(behind), primary) as standby, open_database(standby.url("shared"), tmp_path) as database:
            store = ReplicaStore(database)
            after = store.beat(A, 1, seconds=LONG, is_leaving=False)
            assert after.kept
            assert after.history not in {"", before.history}
            assert store.take("s", B, 1, settle_seconds=LONG).replica == NOBODY
            assert store.keep({"s": taken.epoch}, A, 1, may_be_forgotten=True) == frozenset()
            assert store.take("s", B, 1, settle_seconds=LONG).replica == A
