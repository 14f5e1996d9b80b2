"""The one database of a running sealab, opened when something first needs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from ...skills_db import DATABASE_FILE
from ...skills_db.errors import DatabaseUnreachable
from .home import Home

if TYPE_CHECKING:
    from ...skills_db.engine import Database

T = TypeVar("T")


class Opening(Generic[T]):
    """What is opened by the thread that first asks for it, while the others wait.

    Where that fails since a server does not answer, those that waited get that error, and do not try each in its turn;
    from then on no caller waits for another's attempt.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._turn = threading.Lock()
        self._failure: DatabaseUnreachable | None = None
        self._failed_at = 0.0
        self.made: T | None = None

    def __call__(self) -> T:
        """Return it. Blocks. Raises what opening it raises."""
        if self.made is not None:
            return self.made
        asked = time.monotonic()
        if not self._turn.acquire(blocking=self._failure is None):
            raise self._refusal()
        try:
            if self.made is None:
                if self._failure is not None and self._failed_at >= asked:
                    raise self._refusal()
                self.made = self._made()
            return self.made
        finally:
            self._turn.release()

    def _made(self) -> T:
        try:
            made = self._make()
        except DatabaseUnreachable as failure:
            self._failure, self._failed_at = failure, time.monotonic()
            raise
        self._failure = None
        return made

    def _refusal(self) -> DatabaseUnreachable:
        return DatabaseUnreachable(*(() if self._failure is None else self._failure.args))


class HomeDatabase:
    """Opens the database at `url`, or the file in the home, at its first use; the same one for all who ask."""

    def __init__(self, url: str | None, home: Path, *, tenant: str | None = None) -> None:
        self._url = url
        self._home = home
        self._tenant = tenant
        self._opening = Opening(self._open)

    def __call__(self) -> Database:
        """Return the open database. Blocks. Raises what `open_database` raises."""
        return self._opening()

    @property
    def is_server(self) -> bool:
        """Whether a server has it, which others may use too; else it is a file."""
        return self._url is not None and not self._url.startswith("sqlite")

    @property
    def is_there(self) -> bool:
        """Whether there is something to open: a server's, or a file that was made before."""
        return self._url is not None or (self._home / DATABASE_FILE).exists()

    def close(self) -> None:
        """Close it, if it was ever opened."""
        database, self._opening = self._opening.made, Opening(self._open)
        if database is not None:
            database.close()

    def _open(self) -> Database:
        from ...skills_db.engine import open_database

        return open_database(self._url, self._home, tenant=self._tenant)


def database_of(url: str | None, home: Home) -> HomeDatabase:
    """Return the database of a home.

    A tenant's is apart from all others: a file in its home, or a schema of its own where `url` is a server's.
    """
    return HomeDatabase(url, home.root, tenant=None if home.operators is None else home.tenant)
