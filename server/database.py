"""The one database of a running sealab, opened when something first needs it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..skills_db.engine import Database


class HomeDatabase:
    """Opens the database at `url`, or the file in the home, at its first use; the same one for all who ask."""

    def __init__(self, url: str | None, home: Path) -> None:
        self._url = url
        self._home = home
        self._turn = threading.Lock()
        self._open: Database | None = None

    def __call__(self) -> Database:
        """Return the open database. Blocks. Raises what `open_database` raises."""
        with self._turn:
            if self._open is None:
                from ..skills_db.engine import open_database  # noqa: PLC0415 - takes half a second to import

                self._open = open_database(self._url, self._home)
            return self._open

    def close(self) -> None:
        """Close it, if it was ever opened."""
        with self._turn:
            if self._open is not None:
                self._open.close()
                self._open = None
