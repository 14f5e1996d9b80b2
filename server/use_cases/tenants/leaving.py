"""Erases what is kept of a principal who leaves: runs, sign-ins, tokens, answers to questions, use and limits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ....skills_db.engine import Database
from ....skills_db.journal.journal_store import JournalStore
from ....skills_db.tenants.contents import forget_principal
from ....tools_registry.upstream.pins import Pins
from ....workspace.archive import kept_of
from ....workspace.store import Workspace
from ...base.home import Home
from ...base.identity import DEFAULT_TENANT
from ...base.settings import Settings
from ...governance.audit.trail import UNAUDITED, AuditTrail
from ...governance.scopes import of_principal
from ..upstream_tools.registry import scopes_of_tenant
from ..upstream_tools.registry_state import opened_state
from .sign_outs import SignedOut, principal_signed_out


@dataclass(frozen=True, slots=True)
class Left:
    """What there is of a principal, or was: ids of journaled and of kept runs, and rows of the operator's tables."""

    runs: tuple[str, ...] = ()
    kept_runs: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    sign_ins: SignedOut = SignedOut()  # noqa: RUF009 - it is frozen


def left_of(
    settings: Settings,
    home: Home,
    operators: Database,
    principal: str,
    *,
    journals: JournalStore,
    workspace: Workspace,
    erases: bool,
    audit: AuditTrail = UNAUDITED,
) -> Left:
    """Return what is kept of a principal of the tenant whose home this is, and erase it where it `erases`. Blocks."""
    scope = of_principal(principal)
    owner = journals.owner(scope)
    rows = forget_principal(operators, home.tenant, principal, scope, time.time(), erases=erases)
    left = Left(tuple(journals.of_owner(owner)), tuple(kept_of(workspace, scope, drops=erases)), rows)
    if not erases:
        return left
    journals.forget_scope(owner)
    beginning = "" if home.tenant == DEFAULT_TENANT else scopes_of_tenant(home.tenant)
    with opened_state(home, settings.database_url) as state:
        if state.pins.read() is not None:
            Pins(state.pins).forget_scopes(lambda each: each == f"{beginning}{scope}")
    ended = principal_signed_out(settings, home, operators, principal, audit)
    return Left(left.runs, left.kept_runs, left.rows, ended)
