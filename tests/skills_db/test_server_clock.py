"""Leases go by the clock of the database, also when that goes on at another machine, whose clock differs."""

from __future__ import annotations

import time

import psycopg

from sealab.skills_db.errors import DatabaseUnavailable
from sealab.skills_db.journal.background_store import KEPT, BackgroundStore
from sealab.skills_db.sql import sa

from .conftest import Place

LEASE_SECONDS, AHEAD_SECONDS = 20.0, 300


def go_on_elsewhere(place: Place) -> None:
    """Cut all connections; who connects anew meets a clock that is ahead."""
    assert place.url is not None
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
            f"$$ SELECT pg_catalog.clock_timestamp() + interval '{AHEAD_SECONDS} seconds' $$".encode()
        )
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET search_path = public, pg_catalog'.encode())
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            (connection.info.dbname,),
        )


def test_a_run_that_is_under_way_stays_its_servers_when_the_database_goes_on_with_another_clock(
    postgres_place: Place,
) -> None:
    with postgres_place.open() as database:
        first = BackgroundStore(database, b"k" * 32, process="first")
        first.put("r", "home", {"code": "1"}, expires=time.time() + 10_000, most=5)
        claimed = first.claim(LEASE_SECONDS, most=5)
        assert claimed is not None
        go_on_elsewhere(postgres_place)
        for _ in range(2):  # the first one may find the connection gone
            try:
                first.has_work()
            except DatabaseUnavailable:
                continue
        assert abs(database.now() - time.time() - AHEAD_SECONDS) < AHEAD_SECONDS / 2
        assert first.renew("r", claimed.owner, None, LEASE_SECONDS) == KEPT
        with postgres_place.open() as other:
            assert BackgroundStore(other, b"k" * 32, process="second").claim(LEASE_SECONDS, most=5) is None
        with database.read() as session:
            assert session.execute(sa.text("SELECT begins FROM sealab_background_run")).scalar_one() == 1
