"""What servers on one PostgreSQL database tell each other: that something changed, and how each is set up.

Of changes each hears on a connection of its own (LISTEN, NOTIFY). A notice says where something changed, of which kind
it is and its new version, and never what is stored. Setups are rows, with times of the database's clock.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import migrations
from ..engine import Database
from ..postgresql import CLOCK
from ..sql import insert, sa
from ..tables import CHANNEL, MIGRATION, SETUP

if TYPE_CHECKING:
    from psycopg import AsyncConnection

PING_SECONDS = 10.0
"""After how long without a notice the server is asked for a sign of life."""
ANSWER_SECONDS = 5.0
"""How long it has for that, and for letting this program in."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What changed: `schema` is the tenant's, or the operator's; `kind` is `documents` or `skills`."""

    schema: str
    kind: str
    version: int


@dataclass(frozen=True, slots=True)
class Listening:
    """A connection that hears notices; `schema` is the operator's."""

    schema: str
    connection: AsyncConnection[Any]

    async def notices(self) -> AsyncIterator[Notice]:
        """Give each notice as it comes. Raises `psycopg.Error` or `TimeoutError` where the connection has ended."""
        while True:
            async for notify in self.connection.notifies(timeout=PING_SECONDS):
                found = _notice(notify.payload)
                if found is not None:
                    yield found
            async with asyncio.timeout(ANSWER_SECONDS):
                await self.connection.execute("SELECT 1")


def connect_options(url: str) -> Mapping[str, Any]:
    """Return how the driver is to connect to the server at `url`. Imports the driver: call it in a thread."""
    import psycopg  # noqa: F401 - so that it is loaded

    address = sa.make_url(url).set(drivername="postgresql+psycopg")
    _, options = address.get_dialect()().create_connect_args(address)
    return {
        **options,
        "connect_timeout": int(ANSWER_SECONDS),
        "application_name": "sealab notices",
        "keepalives_idle": 30,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "autocommit": True,
    }


@asynccontextmanager
async def listening(options: Mapping[str, Any]) -> AsyncIterator[Listening]:
    """Give a connection that hears all that is sent from now on. Raises `psycopg.Error` or `TimeoutError`."""
    import psycopg

    async with asyncio.timeout(2 * ANSWER_SECONDS):
        connection = await psycopg.AsyncConnection.connect(**options)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await connection.execute(f"LISTEN {CHANNEL}")
            row = await (await connection.execute("SELECT current_schema()")).fetchone()
        yield Listening("" if row is None else str(row[0]), connection)
    finally:
        await connection.close()


def _notice(payload: str) -> Notice | None:
    """Read a notice; None for what is not one, since whoever may use the database may send anything."""
    try:
        said = json.loads(payload)
        return Notice(str(said["schema"]), str(said["kind"]), int(said["version"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


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
