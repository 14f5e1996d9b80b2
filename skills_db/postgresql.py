"""Connections to a PostgreSQL server that wait for no answer longer than a bound.

A server that was stopped, or cut off by a network, says nothing, and its machine may acknowledge every packet: neither
its own statement time-out nor TCP ends the wait then. So the wait for each answer is bounded on this side, and a
connection whose answer did not come is closed: what it had not committed is undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from .errors import DatabaseUnavailable
from .sql import ConnectionPoolEntry, DBAPIConnection, InvalidatePoolError, sa
from .tenants.schemas import use

CLOCK = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)
"""The time now in SQL, in seconds since 1970 by the server's clock; it goes on within a transaction."""

if TYPE_CHECKING:
    from psycopg import Connection

CONNECT_SECONDS = 5
"""How long each address of the server may take to let this program in."""
PING_SECONDS = 5.0
"""How long a connection that was idle may take to show that it still works."""
STATEMENT_SECONDS = 15.0
"""How long the server may compute for one statement."""
ANSWER_SECONDS = 20.0
"""How long the server may say nothing at all while an answer is waited for."""
LOCK_SECONDS = 10.0
"""How long a change waits for those of others; of BUSY_SECONDS and this, the shorter one holds."""
MIGRATION_SECONDS = 300.0
"""How long one statement may take that changes the tables."""
_MS = 1000
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3}
"""What ends an idle connection to a machine that has gone, in seconds and times."""


class Bounded(Protocol):
    """A connection whose wait for an answer is bounded."""

    answer_seconds: float


def make_engine(address: sa.URL, *, busy_seconds: Callable[[], float], schema: str | None = None) -> sa.Engine:
    """Make the engine of the server at `address`; `busy_seconds` says how long a change may wait for others.

    With a `schema` its connections see what that has, and nothing else of the database.

    Raises `DatabaseUnavailable` where the driver is not installed.
    """
    connect = _connector()
    engine = sa.create_engine(
        address,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "sealab",
            "tcp_user_timeout": int(ANSWER_SECONDS * _MS),
            **_KEEPALIVE,
        },
        hide_parameters=True,
        execution_options={"preserve_rowcount": True},  # of an insert its cursor is closed at once
        pool_size=8,
        max_overflow=32,
        pool_timeout=PING_SECONDS,
        pool_recycle=CONNECTED_SECONDS_MAX,
    )
    sa.event.listen(engine, "do_connect", lambda _dialect, _entry, _given, options: connect(**options))
    sa.event.listen(engine, "connect", partial(_prepare, schema))
    sa.event.listen(engine, "checkout", lambda connection, entry, _checked_out: _ping(engine, connection, entry))
    sa.event.listen(engine, "begin", lambda connection: _begin(connection, min(busy_seconds(), LOCK_SECONDS)))
    return engine


def _connector() -> Callable[..., Connection[Any]]:
    try:
        import psycopg
    except ImportError as error:
        raise DatabaseUnavailable(
            "DATABASE_URL names a PostgreSQL server, but the driver for it is not installed. "
            "Install sealab with its extra: pip install 'sealab[postgres]'."
        ) from error

    class BoundedConnection(psycopg.Connection[Any]):
        """A connection that closes itself where the server says nothing for `answer_seconds`."""

        answer_seconds = ANSWER_SECONDS

        def wait(self, gen: Generator[Any, Any, Any], *more: Any, **options: Any) -> Any:
            try:
                return super().wait(_bounded(gen, self.answer_seconds), *more, **options)
            except TimeoutError:
                self.close()
                raise psycopg.errors.ConnectionTimeout(
                    f"the server said nothing for {self.answer_seconds:g} seconds"
                ) from None

    return BoundedConnection.connect


def _bounded(steps: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Go the driver's steps; between them it says what there is to read or write, now and then that there is nothing.

    Raises `TimeoutError` where there was nothing to read for so long.
    """
    deadline = time.monotonic() + seconds
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready & _READABLE:
                deadline = now + seconds
            elif now >= deadline:
                raise TimeoutError
            wanted = steps.send(ready)
    except StopIteration as ended:
        return ended.value


_READABLE = 1
"""`psycopg.waiting.Ready.R`."""
_NEW = "sealab new"
SERVER_CLOCK = "sealab clock"
"""Where a new connection's entry says what time it was at the server, in seconds since 1970."""
CONNECTED_SECONDS_MAX = 3600
"""How old a connection gets: clocks of two machines do not run equally fast, and each new one tells the server's."""


def _prepare(schema: str | None, connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    try:
        entry.info[SERVER_CLOCK] = _set_up(schema, connection)
    except BaseException:
        connection.close()  # the pool drops it as it is
        raise
    entry.info[_NEW] = True


def _set_up(schema: str | None, connection: DBAPIConnection) -> float:
    """Set a connection up, and return the server's time."""
    cursor = connection.cursor()
    if schema is not None and not use(cursor, schema):
        raise DatabaseUnavailable("The tenant is being removed, so nothing of it is stored. Ask the operator.")
    cursor.execute(f"SET SESSION statement_timeout = '{STATEMENT_SECONDS}s'")
    cursor.execute("SELECT current_setting('synchronous_commit'), extract(epoch FROM clock_timestamp())")
    row = cursor.fetchone()
    assert row is not None
    if row[0] == "off":
        # Such a server forgets acknowledged commits in a crash.
        cursor.execute("SET SESSION synchronous_commit = on")
    cursor.close()
    connection.commit()
    return float(row[1])


def _ping(engine: sa.Engine, connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    """Replace an idle connection whose server has gone, with all that are as old; fail where the server says nothing.

    SQLAlchemy's own ping waits as long as for any answer, and connects anew to a server that has just said nothing.
    """
    if entry.info.pop(_NEW, None):
        return
    bounded = cast("Bounded", connection)
    bounded.answer_seconds = PING_SECONDS
    began = time.monotonic()
    try:
        engine.dialect.do_ping(connection)
    except Exception as error:
        if time.monotonic() - began >= PING_SECONDS:
            raise
        raise InvalidatePoolError from error
    finally:
        bounded.answer_seconds = ANSWER_SECONDS


def _begin(connection: sa.Connection, busy_seconds: float) -> None:
    options = connection.get_execution_options()
    purpose = options.get("sealab")
    seconds = MIGRATION_SECONDS if purpose == "migration" else STATEMENT_SECONDS
    bounded = cast("Bounded", connection.connection.driver_connection)
    bounded.answer_seconds = ANSWER_SECONDS + seconds - STATEMENT_SECONDS
    if purpose == "read":
        return
    # A statement that waits is cancelled in time, and a program that was cut off delays the others no longer than that.
    local = {"lock_timeout": f"{busy_seconds}s", "idle_in_transaction_session_timeout": f"{2 * busy_seconds}s"}
    local |= {"statement_timeout": f"{seconds}s"} if purpose == "migration" else {}
    local |= {"synchronous_commit": "off"} if purpose == "quick" else {}
    # What `SET LOCAL` does, in one statement.
    settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in local.items())
    connection.exec_driver_sql(f"SELECT {settings}").close()
