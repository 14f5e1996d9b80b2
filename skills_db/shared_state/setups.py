"""How each server on a PostgreSQL database is set up, so that it can be told what differs between them.

Every call blocks: make it from a thread. Times are those of the database's clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from .. import migrations
from ..engine import Database
from ..postgresql import CLOCK
from ..sql import sa

SEEN_SECONDS = 90.0
"""How long a server counts after it last wrote how it is set up."""


class SetupStore:
    """The setups of the servers on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._steps = -1

    def check_tables(self) -> None:
        """Raise `DatabaseNewer` where the tables were changed so that this version cannot work with them."""
        with self._database.read() as session:
            steps = int(session.execute(_STEPS).scalar_one())
        if steps != self._steps:
            migrations.missing_steps(self._database.migrating)
            self._steps = steps

    def note(self, holder: str, setup: Mapping[str, str]) -> None:
        """Write how a server is set up, and drop those that have not written for long."""
        with self._database.transaction(durable=False) as session:
            session.execute(_NOTE, {"holder": holder, "setup": json.dumps(setup, sort_keys=True)})
            session.execute(_DROP, {"seconds": 10 * SEEN_SECONDS})

    def leave(self, holder: str) -> None:
        """Drop a server that ends."""
        with self._database.transaction(durable=False) as session:
            session.execute(_LEAVE, {"holder": holder})

    def alive(self) -> Sequence[Mapping[str, str]]:
        """Return the setups of the servers that wrote within `SEEN_SECONDS`."""
        with self._database.read() as session:
            return [json.loads(setup) for setup in session.execute(_ALIVE, {"seconds": SEEN_SECONDS}).scalars()]


_STEPS = sa.text("SELECT count(*) FROM sealab_migration")
_NOTE = sa.text(
    f"INSERT INTO sealab_setup (holder, setup, seen) VALUES (:holder, :setup, {CLOCK}) "  # noqa: S608 - no value is in it
    "ON CONFLICT (holder) DO UPDATE SET setup = excluded.setup, seen = excluded.seen"
)
_DROP = sa.text(f"DELETE FROM sealab_setup WHERE seen < {CLOCK} - :seconds")  # noqa: S608 - no value is in it
_LEAVE = sa.text("DELETE FROM sealab_setup WHERE holder = :holder")
_ALIVE = sa.text(f"SELECT setup FROM sealab_setup WHERE seen >= {CLOCK} - :seconds")  # noqa: S608 - as above
