"""Whether background runs of a tenant wait that no process has open."""

from __future__ import annotations

from contextlib import closing

from ...skills_db import DATABASE_FILE
from ..database import database_of
from ..home import Home
from ..settings import Settings


def runs_wait(settings: Settings, home: Home, now: float) -> bool:
    """Return whether a background run of a tenant may begin or go on. Blocks. Raises `SkillsDbError`."""
    from ...skills_db.engine import place_of
    from ...skills_db.journal.waiting_runs import any_may_begin

    _, file = place_of(settings.database_url, home.root, tenant=home.tenant)
    if file is not None:
        return any_may_begin(home.root / DATABASE_FILE, now)
    from ...skills_db.journal.background_store import may_begin

    with closing(database_of(settings.database_url, home)) as database:
        return may_begin(database(), now)
