"""How each server on a PostgreSQL database is set up, so that it can be told what differs between them.

Every call blocks: make it from a thread. Times are those of the database's clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from .. import migrations
from ..engine import Database
from ..postgresql import CLOCK
from ..sql import insert, sa
from ..tables import MIGRATION, SETUP

SEEN_SECONDS = 90.0
"""How long a server counts after it last wrote how it is set up."""


class SetupStore:
    """The setups of the servers on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._steps = -1

    def check_tables(self) -> None:
        """Raise `DatabaseNewer` where the tables were changed so that this version cannot work with them."""
        with self._database.read() as connection:
            steps = connection.execute(sa.select(sa.func.count()).select_from(MIGRATION)).scalar_one()
        if steps != self._steps:
            migrations.missing_steps(self._database.migrating)
            self._steps = steps

    def note(self, holder: str, setup: Mapping[str, str]) -> None:
        """Write how a server is set up, and drop those that have not written for long."""
        values = {"setup": json.dumps(setup, sort_keys=True), "seen": CLOCK}
        noted = insert(SETUP).values(holder=holder, **values)
        with self._database.transaction(durable=False) as connection:
            connection.execute(noted.on_conflict_do_update(index_elements=["holder"], set_=values))
            connection.execute(sa.delete(SETUP).where(SETUP.c.seen < CLOCK - 10 * SEEN_SECONDS))

    def leave(self, holder: str) -> None:
        """Drop a server that ends."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(sa.delete(SETUP).where(SETUP.c.holder == holder))

    def alive(self) -> Sequence[Mapping[str, str]]:
        """Return the setups of the servers that wrote within `SEEN_SECONDS`."""
        wanted = sa.select(SETUP.c.setup).where(SETUP.c.seen >= CLOCK - SEEN_SECONDS)
        with self._database.read() as connection:
            return [json.loads(setup) for setup in connection.execute(wanted).scalars()]
