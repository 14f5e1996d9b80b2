"""What hides personal data in a home: with the operator's own key, or with one that is derived for its tenant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.database import database_of
from ..base.home import Home
from ..base.settings import Settings
from ..governance.policy.access import NO_POLICY, Decider
from .detectors import Detectors
from .privacy import Privacy, TenantVault
from .tokens.audit_notes import OnTypes
from .tokens.keys import root_key

if TYPE_CHECKING:
    from ...skills_db.engine import Database


def privacy_of(
    settings: Settings,
    home: Home,
    database: Callable[[], Database],
    *,
    durable: bool = False,
    policy: Decider = NO_POLICY,
    on_types: OnTypes | None = None,
    operators: Callable[[], Database] | None = None,
    key: Callable[[], bytes] | None = None,
    detectors: Detectors | None = None,
) -> Privacy:
    """Return what hides values of a home with this database; `durable`, `policy` and `on_types` are as for `Privacy`.

    `detectors` are those of the operator, where this is a tenant of the same server. `operators` is the operator's
    database where this process has it open: a file must not be opened twice, since to close it once ends the locks of
    the process on it (fcntl(2), "Advisory record locking"). `key` gives the operator's key where it is open already.
    """
    vault = None
    if home.operators is not None:
        of_operators = key or partial(_operators_key, settings, Home(home.operators), operators)
        vault = TenantVault(home.tenant, home.operators, of_operators)
    return Privacy(
        settings,
        home.root,
        database,
        durable=durable,
        policy=policy,
        on_types=on_types,
        tenant=vault,
        detectors=detectors,
    )


def operators_key(settings: Settings, home: Path, database: Callable[[], Database]) -> Callable[[], bytes]:
    """Return what gives the master key of the operator's vault, whose home this is; it is made at its first use.

    That blocks, and raises `VaultKeyError`, or what opening the database raises. It gives the same one each time.
    """
    return cache(lambda: root_key(settings, home, database()))


def _operators_key(settings: Settings, home: Home, operators: Callable[[], Database] | None) -> bytes:
    if operators is not None:
        return root_key(settings, home.root, operators())
    with closing(database_of(settings.database_url, home)) as opened:
        return root_key(settings, home.root, opened())
