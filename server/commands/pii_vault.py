"""The vault of a home, opened for a command, and how commands tell of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import SettingsError
from ..home import Home
from ..settings import Settings

if TYPE_CHECKING:
    from ...skills_db.journal.journal_store import JournalStore
    from ..database import HomeDatabase
    from ..privacy.privacy import Privacy


@dataclass(frozen=True, slots=True)
class OpenedVault:
    """What a command works with."""

    privacy: Privacy
    database: HomeDatabase

    def journals(self, settings: Settings) -> JournalStore:
        """Return the journals of the home."""
        from ..journal.journal import Journal

        return Journal(settings, self.database, self.privacy.key, keeps=False).store()


@contextmanager
def opened_vault(home: Home, settings: Settings) -> Iterator[OpenedVault]:
    """Open what is needed, and write what is to be noted at the end."""
    from ..database import database_of
    from ..privacy.of_home import privacy_of

    home.prepare()
    database = database_of(settings.database_url, home)
    try:
        privacy = privacy_of(settings, home, database, durable=True)
        if privacy.is_off:
            raise SettingsError("PRIVACY is off, so there is no vault. Set it to tools or auto.")
        try:
            yield OpenedVault(privacy, database)
        finally:
            privacy.close()
    finally:
        database.close()


def counted(types: Mapping[str, int]) -> str:
    """Return how many there are of each type, in words."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(types.items())) or "nothing"
