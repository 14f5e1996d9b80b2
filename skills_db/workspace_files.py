"""The files of a workspace whose contents are in an object store: their names, sizes and keys, for all its servers.

Whoever changes a row locks that of the count first, so changes come one after the other, and what one has read holds
until it ends (PostgreSQL documentation, 13.3.2, "Row-Level Locks"; SQLite has one writer at a time). Everything here
blocks: call it from a thread.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from .engine import Database
from .errors import SkillsDbError
from .sql import Connection, batches, sa
from .tables import WORKSPACE_COUNT, WORKSPACE_FILE

Row: TypeAlias = tuple[str, int, int, str | None]
"""A path, bytes, nanoseconds since 1970, and the key of the content, which a folder has not."""
Work: TypeAlias = Literal["taking_in", "sweeping"]

_path, _blob = WORKSPACE_FILE.c.path, WORKSPACE_FILE.c.blob
_size, _entries = WORKSPACE_COUNT.c.size, WORKSPACE_COUNT.c.entries
_ROWS = sa.select(*WORKSPACE_FILE.c).order_by(_path)
_NAMED = _ROWS.where(_path.in_(sa.bindparam("paths", expanding=True)))
_USED = sa.select(_size, _entries)
_LOCK = _USED.with_for_update()
_COUNT = sa.update(WORKSPACE_COUNT).values(
    size=_size + sa.bindparam("more_bytes"), entries=_entries + sa.bindparam("more_entries")
)
_ADD = sa.insert(WORKSPACE_FILE)
_REPLACE = sa.update(WORKSPACE_FILE).where(_path == sa.bindparam("at"))


class WorkspaceFiles:
    """The rows of the one workspace of a database, which `opening` opens.

    Where the database does not answer, `unavailable` makes what is raised of its message.
    """

    def __init__(self, opening: Callable[[], Database], unavailable: Callable[[str], Exception]) -> None:
        self._opening = opening
        self._unavailable = unavailable

    @contextmanager
    def _opened(self) -> Iterator[Database]:
        try:
            yield self._opening()
        except SkillsDbError as error:
            raise self._unavailable(str(error)) from error

    @contextmanager
    def read(self) -> Iterator[FileRows]:
        """Give the rows of one moment."""
        with self._opened() as database, database.read() as connection:
            yield FileRows(connection)

    @contextmanager
    def change(self, *, durable: bool = True) -> Iterator[FileRows]:
        """Give the rows to change them: all of it is stored when the block ends, nothing where it raises."""
        with self._opened() as database, database.transaction(durable=durable) as connection:
            connection.execute(_LOCK)
            yield FileRows(connection)

    def now(self) -> float:
        """Return the time in seconds since 1970, by the clock of the database."""
        with self._opened() as database:
            return database.now()

    def store(self) -> str:
        """Return what the keys begin with of this database's contents: others may be in the same bucket.

        It is chosen once.
        """
        with self._opened() as database, database.transaction() as connection:
            store = connection.execute(sa.select(WORKSPACE_COUNT.c.store).with_for_update()).scalar_one()
            if not store:
                store = secrets.token_hex(4)
                connection.execute(sa.update(WORKSPACE_COUNT).values(store=store))
            return str(store)

    def takes_on(self, work: Work, seconds: float) -> bool:
        """Return whether a work is this server's for so long, that no other does meanwhile; with 0 it is free again."""
        until = WORKSPACE_COUNT.c[f"{work}_until"]
        now = self.now()
        with self._opened() as database, database.transaction(durable=False) as connection:
            taken = sa.update(WORKSPACE_COUNT).where((until <= now) if seconds else sa.true())
            return connection.execute(taken.values({until: now + seconds})).rowcount > 0


class FileRows:
    """The rows in a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute

    def used(self) -> tuple[int, int]:
        """Return bytes and the number of files and folders."""
        size, entries = self._execute(_USED).one()
        return size, entries

    def count(self, more_bytes: int, more_entries: int) -> None:
        """Count what was added, or removed."""
        self._execute(_COUNT, {"more_bytes": more_bytes, "more_entries": more_entries})

    def named(self, paths: Sequence[str]) -> list[Row]:
        """Return what has one of these paths."""
        return self._rows(_NAMED, paths=paths)

    def below(self, folder: str, *, direct: bool = False) -> list[Row]:
        """Return all that lies below a folder, or directly in it, sorted by path; "" is the workspace itself."""
        below = _below(folder)
        if direct:
            below &= sa.func.substr(_path, len(folder) + 2 if folder else 1).not_like("%/%")
        return self._rows(_ROWS.where(below))

    def has_any(self, folder: str) -> bool:
        """Return whether anything lies below a folder."""
        return self._execute(sa.select(_path).where(_below(folder)).limit(1)).first() is not None

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows, whose paths nothing has."""
        if rows:
            self._execute(_ADD, [_values(row) for row in rows])

    def replace(self, row: Row) -> None:
        """Replace the row that has its path."""
        self._execute(_REPLACE, {"at": row[0], **_values(row)})

    def remove(self, paths: Sequence[str]) -> None:
        """Remove the rows of these paths."""
        for some in batches(paths):
            self._execute(sa.delete(WORKSPACE_FILE).where(_path.in_(some)))

    def move(self, path: str, goal: str) -> None:
        """Give a file or a folder, with all that it holds, another path, which nothing has."""
        moved = sa.update(WORKSPACE_FILE).where((_path == path) | _below(path))
        self._execute(moved.values(path=sa.literal(goal) + sa.func.substr(_path, len(path) + 1)))

    def unnamed(self, keys: Iterable[str]) -> list[str]:
        """Return those keys of contents that no row names."""
        left: list[str] = []
        for some in batches(keys):
            named = set(self._execute(sa.select(_blob).where(_blob.in_(some))).scalars())
            left += [key for key in some if key not in named]
        return left

    def _rows(self, wanted: sa.Select[*tuple[Any, ...]], **given: object) -> list[Row]:
        return [(path, size, modified, blob) for path, size, modified, blob in self._execute(wanted, given)]


def _values(row: Row) -> dict[str, object]:
    return dict(zip(("path", "size", "modified", "blob"), row, strict=True))


def _below(folder: str) -> sa.ColumnElement[bool]:
    """Return what holds for the paths below a folder: they are a range, since paths sort by their bytes."""
    first, end = f"{folder}/", folder + chr(ord("/") + 1)
    return (_path > first) & (_path < end) if folder else sa.true()
