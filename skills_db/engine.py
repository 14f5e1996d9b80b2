"""Opens the one database, SQLite below the home or PostgreSQL by URL, and gives out connections to it.

Everything here blocks: call it from a thread. One `Database` serves any number of threads. Importing this module costs
half a second, so only what is about to use the database does it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from . import DATABASE_FILE, migrations, postgresql
from .circuit_breaker import Silence
from .errors import CommitUnknown, DatabaseUnavailable
from .failures import connection_lost, translated
from .file_check import refuse_damage
from .sql import ArgumentError, Connection, ConnectionPoolEntry, DBAPIConnection, DBAPIError, sa
from .tenants import schemas
from .tenants.schemas import schema_of

CACHE_KB = 512
"""What a connection to SQLite keeps of its file in memory: with SQLite's 2,000 it would be 16 MB a tenant.

The system's own cache has the same.
"""
BUSY_SECONDS = 30.0
"""How long a change waits for those of other threads and programs."""
_RETRY_SECONDS = 0.01


def open_database(url: str | None, home: Path, *, tenant: str | None = None) -> Database:
    """Open the database at `url`, or `sealab.db` in the folder `home`, and bring its tables up to date.

    `url` is `postgresql://user:password@host:port/name` (`postgres://` too) or `sqlite:////path/to/file`; `None` means
    the file in `home`, which must exist. Two programs may open the same database at the same moment.
    What a `tenant` has is a schema of its own on a PostgreSQL server, else the file in its `home`, whatever `url` says.
    Raises `DatabaseUnavailable`, `DatabaseDamaged` or `DatabaseNewer`.
    """
    place, file = place_of(url, home, tenant=tenant)
    database = _open_server(_parsed(url or ""), place, tenant) if file is None else _open_file(file, place)
    try:
        with translated(database.place):
            migrations.apply(database.migrating)
    except BaseException:
        database.close()
        raise
    return database


def place_of(url: str | None, home: Path, *, tenant: str | None = None) -> tuple[str, Path | None]:
    """Return what messages call the database at `url` or in `home`, and its file, unless a server has it.

    That of a tenant is never the file that `url` names, which is the operator's.

    Raises `DatabaseUnavailable` where `url` is not a valid address.
    """
    address = None if url is None else _parsed(url)
    if address is None or address.drivername == "sqlite":
        if address is None or tenant is not None:
            file = home / DATABASE_FILE
        else:
            file = Path(address.database or "").absolute()
        return f"The database file {file}", file
    host = address.host or address.query.get("host") or "this machine"
    return f"The PostgreSQL database {address.database or '(the default)'} on {host}", None


class Database:
    """An open database: connections that read, connections that change, and an end. Use it from any thread."""

    def __init__(self, engine: sa.Engine, place: str, file: Path | None) -> None:
        self.place = place
        self.file = file
        self.durable = engine.execution_options(sealab="durable")
        self.migrating = engine.execution_options(sealab="migration")
        self._engine = engine
        self._quick = engine.execution_options(sealab="quick")
        moment = {} if file is not None else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._reading = engine.execution_options(sealab="read", **moment)
        self._identity = None if file is None else _identity(file)
        self._turn = threading.Lock()
        self._silence = Silence(place)
        self._ahead: float | None = None
        self._closed = False
        sa.event.listen(engine, "checkin", self._close_returned)
        sa.event.listen(engine, "connect", self._take_clock)

    @property
    def is_file(self) -> bool:
        """Whether this is SQLite; otherwise it is PostgreSQL."""
        return self.file is not None

    def now(self) -> float:
        """Return the time in seconds since 1970, by which leases are judged: that of the server, if there is one.

        Programs on several hosts, whose own clocks may be minutes apart, have the same.
        """
        return time.time() if self._ahead is None else time.monotonic() + self._ahead

    def set_clock(self, now: float) -> None:
        """Take what a server says that the time is."""
        self._ahead = now - time.monotonic()

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """Give a connection whose changes are stored together when the block ends, or not at all when it raises.

        On SQLite one writer at a time: the block sees what was committed last, and nothing changes beneath it. On
        PostgreSQL others may commit meanwhile (READ COMMITTED); lock what must not change. Once the block has ended
        the changes survive a crash of the program and, when `durable`, a crash of the machine. Do not nest.
        Raises `DatabaseUnavailable`, `DatabaseDamaged` or `CommitUnknown`.
        """
        chosen = self.durable if durable else self._quick
        with self._silence.tried(), translated(self.place), self._writing(), chosen.connect() as connection:
            yield connection
            try:
                connection.commit()
            except DBAPIError as error:
                if connection_lost(error):
                    raise CommitUnknown(
                        f"The connection to {self.place} was lost while a change was being stored, so it is not known "
                        "whether it was. Look whether it is there, and repeat it if not."
                    ) from error
                raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that only reads, and all of whose reads see the same moment.

        Raises `DatabaseUnavailable` or `DatabaseDamaged`.
        """
        with self._silence.tried(), translated(self.place), self._reading.connect() as connection:
            self._check_file()
            yield connection

    def close(self) -> None:
        """Close every connection: what a thread still uses, as soon as it has done. Closing twice is allowed."""
        self._closed = True
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _take_clock(self, _connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        """Take the time of a server that was connected to: after a failover it may be another machine's."""
        if (now := entry.info.get(postgresql.SERVER_CLOCK)) is not None:
            self.set_clock(now)

    def _close_returned(self, _connection: DBAPIConnection | None, entry: ConnectionPoolEntry) -> None:
        """Close a connection that comes back after the end: it would stay open in a pool that nobody has."""
        if self._closed:
            entry.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Let the threads of this program write to a file in turn, without asking SQLite again and again."""
        if self.file is None:
            yield
            return
        if not self._turn.acquire(timeout=BUSY_SECONDS):
            raise DatabaseUnavailable(
                f"{self.place} has been busy with another change for {BUSY_SECONDS:g} seconds. Try again later."
            )
        try:
            self._check_file()
            yield
        finally:
            self._turn.release()

    def _check_file(self) -> None:
        """Refuse to go on with a file that has been removed or replaced: what is written to it would be lost."""
        if self.file is not None and _identity(self.file) != self._identity:
            raise DatabaseUnavailable(
                f"{self.place} has been removed or replaced since it was opened. Put it back and start sealab again."
            )


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _parsed(url: str) -> sa.URL:
    try:
        address = sa.make_url(url)
    except (ArgumentError, ValueError):
        address = None
    kind = None if address is None else address.drivername.partition("+")[0]
    memory = address is not None and kind == "sqlite" and (address.database or ":").startswith((":", "file:"))
    if address is None or kind not in {"postgresql", "postgres", "sqlite"} or memory:
        # The text itself is not shown: it may hold a password.
        raise DatabaseUnavailable(
            "DATABASE_URL is not the address of a database that sealab can use. Give one like "
            "postgresql://user:password@host:5432/name, or leave it out to use a file in the home folder."
        )
    return address.set(drivername="sqlite" if kind == "sqlite" else "postgresql+psycopg")


def _open_file(file: Path, place: str) -> Database:
    try:
        _make_private(file)
    except OSError as error:
        raise DatabaseUnavailable(
            f"{place} cannot be opened: {error.strerror}. Correct its permissions, or name another home with --home."
        ) from error
    refuse_damage(file, place)
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        connect_args={"timeout": BUSY_SECONDS},
        hide_parameters=True,
        pool_size=8,
        max_overflow=32,
        pool_use_lifo=True,  # each connection that is used fills a cache of its own
    )
    sa.event.listen(engine, "connect", _prepare_file_connection)
    sa.event.listen(engine, "begin", _begin_on_file)
    return Database(engine, place, file)


def _make_private(file: Path) -> None:
    """Make the file if it is missing, for its owner alone: SQLite gives its side files the mode of the file itself.

    One that is there is not opened: to close it would end the locks that SQLite holds on it in this process (fcntl(2),
    "Advisory record locking"; https://www.sqlite.org/howtocorrupt.html, 2.2).
    Raises `OSError` where it cannot be made, read or written.
    """
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        reason = errno.EISDIR if file.is_dir() else errno.EACCES
        if reason == errno.EISDIR or not os.access(file, os.R_OK | os.W_OK):
            raise OSError(reason, os.strerror(reason)) from None


def _prepare_file_connection(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver would otherwise begin transactions by itself, too late to be IMMEDIATE.
    connection.isolation_level = None
    cursor = connection.cursor()
    _retried(lambda: cursor.execute("PRAGMA journal_mode=WAL"))
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF", f"cache_size=-{CACHE_KB}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _retried(change: Callable[[], object]) -> None:
    """Make a change that SQLite refuses at once, without its own waiting, while another program opens the file."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            change()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def _begin_on_file(connection: Connection) -> None:
    purpose = connection.get_execution_options().get("sealab")
    if purpose == "read":
        connection.exec_driver_sql("BEGIN")
        return
    # Without an fsync at each commit a crash of the machine, not of the program, may lose the last ones.
    connection.exec_driver_sql(f"PRAGMA synchronous={'NORMAL' if purpose == 'quick' else 'FULL'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _open_server(address: sa.URL, place: str, tenant: str | None) -> Database:
    schema = None if tenant is None else schema_of(tenant)
    engine = postgresql.make_engine(address, busy_seconds=lambda: BUSY_SECONDS, schema=schema)
    database = Database(engine, place, None)
    with database.read() as connection:
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        database.close()
        raise DatabaseUnavailable(
            f"{place} keeps text as {encoding}, which cannot hold every skill. Create it with ENCODING 'UTF8'."
        )
    if schema is not None:
        with translated(place):
            schemas.make(database.migrating, schema)
    return database
