"""The database below the home, opened when something first needs it: the start of a server does not wait for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .home import Home
from .settings import Settings

if TYPE_CHECKING:
    from ..skills_db.engine import Database


class HomeDatabase:
    """One database for skills, run records and the vault. Use it from any thread, but not from the event loop."""

    def __init__(self, settings: Settings, home: Home) -> None:
        self._url = settings.database_url
        self._root = home.root
        self._turn = threading.Lock()
        self._database: Database | None = None

    @property
    def is_open(self) -> bool:
        """Whether something has needed it yet."""
        return self._database is not None

    def opened(self) -> Database:
        """Return the database; the first call opens it, which takes half a second. Raises `SkillsDbError`."""
        with self._turn:
            if self._database is None:
                from ..skills_db.engine import open_database  # noqa: PLC0415 - SQLAlchemy takes half a second to import

                self._database = open_database(self._url, self._root)
            return self._database

    def close(self) -> None:
        """Close it, if it was opened."""
        with self._turn:
            if self._database is not None:
                self._database.close()
                self._database = None
