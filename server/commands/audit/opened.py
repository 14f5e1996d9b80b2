"""The audit log of a home, opened for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...audit.audit_log import audit_store
from ...database import HomeDatabase
from ...home import Home
from ...privacy.privacy import Privacy
from ...settings import Settings

if TYPE_CHECKING:
    from ....skills_db.audit.audit_store import AuditStore
    from ...database import Opening


@contextmanager
def opened_log(home: Home, settings: Settings) -> Iterator[Opening[AuditStore]]:
    """Give what opens the audit log, which is closed at the end; that of a tenant's home is the operator's."""
    root = home.operators or home.root
    Home(root).prepare()
    database = HomeDatabase(settings.database_url, root)
    try:
        yield audit_store(database, Privacy(settings, root, database).key)
    finally:
        database.close()
