"""What hides personal data in a home: with the operator's own key, or with one that is derived for its tenant."""

from __future__ import annotations

from contextlib import closing
from functools import partial

from ..database import HomeDatabase, database_of
from ..home import Home
from ..settings import Settings
from .privacy import Privacy, TenantVault


def privacy_of(settings: Settings, home: Home, database: HomeDatabase, *, durable: bool = False) -> Privacy:
    """Return what hides values of a home, whose database it is; `durable` as for `Privacy`."""
    vault = None
    if home.operators is not None:
        vault = TenantVault(home.tenant, home.operators, partial(_is_keyed, settings, Home(home.operators)))
    return Privacy(settings, home.root, database, durable=durable, tenant=vault)


def _is_keyed(settings: Settings, operators: Home) -> bool:
    """Return whether the operator's vault was made with a key: then a new one would not be that. Blocks."""
    from ...skills_db.vault import is_keyed

    with closing(database_of(settings.database_url, operators)) as database:
        return is_keyed(database())
