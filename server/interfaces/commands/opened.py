"""What commands open of a home, and close again."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...base.errors import AuditUnwritten, SettingsError
from ...base.home import Home
from ...base.settings import AuditMode, Settings
from .terminal import Here, print_error

if TYPE_CHECKING:
    from ....skills_db.audit.audit_store import AuditStore
    from ....skills_db.engine import Database
    from ...app import App
    from ...base.database import HomeDatabase, Opening
    from ...governance.audit.trail import AuditTrail
    from ...privacy.privacy import Privacy
    from ...use_cases.journal.journal import Journal


@dataclass(frozen=True, slots=True)
class OpenedHome:
    """The database of a home, what hides values there, and its journals."""

    home: Home
    database: HomeDatabase
    privacy: Privacy
    journal: Journal


class HereInServer(Here):
    """What commands work with in a process that has homes open, each under its tenant: these are used as they are."""

    def __init__(self, settings: Settings, home: Home, open_homes: Mapping[str, OpenedHome]) -> None:
        super().__init__(argparse.Namespace(tenants_home=None if home.operators is None else home.tenant))
        self._read = home, settings
        self.open_homes = open_homes


@contextmanager
def opened_home(here: Here) -> Iterator[OpenedHome]:
    """Open the database of the home, and what is kept there."""
    with _opened_or_there(here, here.home) as opened:
        yield opened


def opened_homes(here: Here) -> Generator[OpenedHome]:
    """Open the homes that a command looks at, one after another: that of the tenant it names, else those of all."""
    with opened_home(here) as own:
        yield own
        if here.names_tenant:
            return
        from ....skills_db.tenants.tenant_store import TenantStore

        operators = own.database()
        if others := TenantStore(operators).all():
            from ...use_cases.tenants.commanding import homes_in_use

            for home in homes_in_use(here.settings, here.home, operators, others):
                with _opened_or_there(here, home) as opened:
                    yield opened


@contextmanager
def _opened_or_there(here: Here, home: Home) -> Iterator[OpenedHome]:
    if isinstance(here, HereInServer) and (there := here.open_homes.get(home.tenant)) is not None:
        yield there
        return
    with _opened(home, here.settings, durable=False) as opened:
        yield opened


@contextmanager
def home_of_run(here: Here, run_id: str) -> Iterator[OpenedHome]:
    """Open the home that has a run, or where none has it the one whose answer says so."""
    with closing(opened_homes(here)) as homes:
        for home in homes:
            if home.journal.store().knows(run_id):
                here.found_in = home.home.tenant
                yield home
                return
    with opened_home(here) as home:
        yield home


@contextmanager
def opened_vault(home: Home, settings: Settings) -> Iterator[OpenedHome]:
    """Do the same where the vault is needed; what is to be noted of it is written at the end."""
    with _opened(home, settings, durable=True) as opened:
        if opened.privacy.is_off:
            raise SettingsError("PRIVACY is off, so there is no vault. Set it to tools or auto.")
        yield opened


@contextmanager
def _opened(home: Home, settings: Settings, *, durable: bool) -> Iterator[OpenedHome]:
    from ...base.database import database_of
    from ...privacy.of_home import privacy_of
    from ...use_cases.journal.journal import Journal

    home.prepare()
    database = database_of(settings.database_url, home)
    try:
        privacy = privacy_of(settings, home, database, durable=durable)
        try:
            yield OpenedHome(home, database, privacy, Journal(settings, database, privacy.key, keeps=False))
        finally:
            privacy.close()
    finally:
        database.close()


@contextmanager
def opened_operators(here: Here) -> Iterator[Database]:
    """Open the operator's database."""
    from ...use_cases.tenants.contents import operators_database

    with operators_database(here.settings, here.home) as database:
        yield database


@asynccontextmanager
async def opened_app(here: Here) -> AsyncIterator[App]:
    """Start all that runs code and calls tools, without workers that wait."""
    async with running_with(here.settings, here.home) as app:
        yield app


@asynccontextmanager
async def running_with(settings: Settings, home: Home) -> AsyncIterator[App]:
    """Do the same with these settings."""
    from ...app import running  # it imports nearly everything

    async with running(replace(settings, workers_spare=0), home) as app:
        yield app


@contextmanager
def opened_log(home: Home, settings: Settings) -> Iterator[Opening[AuditStore]]:
    """Give what opens the audit log, which is closed at the end; that of a tenant's home is the operator's."""
    from ...base.database import HomeDatabase
    from ...governance.audit.audit_log import audit_store
    from ...privacy.of_home import operators_key

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
    from ...governance.audit.audit_log import AuditLog, audit_store
    from ...governance.audit.trail import UNAUDITED, AuditTrail
    from ...privacy.of_home import operators_key

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
