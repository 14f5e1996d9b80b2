"""The audit log of a home, opened for a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...audit.audit_log import AuditLog, audit_store
from ...audit.trail import UNAUDITED, AuditTrail
from ...database import HomeDatabase
from ...errors import AuditUnwritten
from ...home import Home
from ...privacy.of_home import operators_key
from ...settings import AuditMode, Settings
from ..terminal import print_error

if TYPE_CHECKING:
    from ....skills_db.audit.audit_store import AuditStore
    from ....skills_db.engine import Database
    from ...database import Opening


@contextmanager
def opened_log(home: Home, settings: Settings) -> Iterator[Opening[AuditStore]]:
    """Give what opens the audit log, which is closed at the end; that of a tenant's home is the operator's."""
    root = home.operators or home.root
    Home(root).prepare()
    database = HomeDatabase(settings.database_url, root)
    try:
        yield audit_store(database, operators_key(settings, root, database))
    finally:
        database.close()


@contextmanager
def trail_beside(home: Home, settings: Settings, database: Callable[[], Database]) -> Iterator[AuditTrail]:
    """Give what notes events in the audit log of the operator's home, whose database this opens, or has open.

    They are written at the end. Raises `AuditUnwritten` where that fails and lines are required, else it is said.
    """
    if settings.audit is AuditMode.OFF:
        yield UNAUDITED
        return
    log = AuditLog(audit_store(database, operators_key(settings, home.root, database)))
    try:
        yield AuditTrail(log)
    finally:
        try:
            log.flush()
        except AuditUnwritten as error:
            if settings.audit is AuditMode.REQUIRED:
                raise
            print_error(f"sealab: The audit log has no line of this. {error}")
        finally:
            log.close()
