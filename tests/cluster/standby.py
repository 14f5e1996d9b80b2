"""A standby of a throw-away PostgreSQL, that has each commit before it is acknowledged, and can be promoted."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from tests.skills_db.postgres import Cluster

_STREAMS = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
_START_SECONDS = 60.0


@contextmanager
def standby_of(primary: Cluster, options: Mapping[str, object]) -> Iterator[Cluster]:
    """Copy a server and run the copy beside it, with more options of its own; from now on commits wait for both."""
    with tempfile.TemporaryDirectory(prefix="sealab-standby-") as name:
        folder = Path(name)
        if primary.owner:
            shutil.chown(folder, primary.owner)
        copied = subprocess.run(
            [primary.binaries / "pg_basebackup", "-d", primary.url("postgres"), "-D", folder / "data", "-R", "-c", "fast"],
            user=primary.owner, cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
        if copied.returncode:
            raise RuntimeError(f"pg_basebackup failed: {copied.stderr}")
        standby = Cluster(
            primary.binaries, folder, primary.password, primary.owner, primary.durable, {**primary.options, **options}
        )
        standby.start()
        try:
            primary.execute(sql.SQL("ALTER SYSTEM SET synchronous_standby_names = '*'"))
            primary.execute(sql.SQL("SELECT pg_reload_conf()"))
            _wait_until_it_streams(primary)
            yield standby
        finally:
            standby.stop()


def _wait_until_it_streams(primary: Cluster) -> None:
    deadline = time.monotonic() + _START_SECONDS
    with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
        while (row := connection.execute(_STREAMS).fetchone()) is None or row[0] != 1:
            if time.monotonic() > deadline:
                raise RuntimeError("the standby does not stream")
            time.sleep(0.05)


def promote(standby: Cluster) -> None:
    """Let a standby take changes, and wait until it does."""
    standby.execute(sql.SQL("ALTER SYSTEM SET synchronous_standby_names = ''"))
    standby.execute(sql.SQL("SELECT pg_promote(wait => true)"))
