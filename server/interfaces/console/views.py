"""What one request to the console asks, for whom, and what its answer is made from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ....skills_db.errors import JournalNotFound
from ....skills_db.tenants.tenant_store import TenantStore
from ...app import App
from ...base.errors import AuditUnwritten, UsageError
from ...base.identity import DEFAULT_TENANT, LOCAL_IDENTITY, Identity, Right
from ...governance.caller import LOCAL, Caller
from ...governance.scopes import of_principal
from ..commands.opened import HereInServer, OpenedHome, home_of_run
from .sessions import ConsoleSession

_T = TypeVar("_T")


class OfApp(Protocol):
    """What requests use of a tenant: at least its app."""

    @property
    def app(self) -> App:
        """The app."""
        ...

    @property
    def holds_connections(self) -> bool:
        """Whether clients hold something of it that they would lose."""
        ...


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: a security boundary. `scope` is whose runs and questions are seen, None for those of everybody.

    With `admin` these are all of the tenant; in `default`, which is the operator's, all of all tenants.
    """

    identity: Identity
    session: ConsoleSession | None = None

    @property
    def is_operator(self) -> bool:
        """Whether all tenants are seen, and what is of the server itself."""
        return self.identity.tenant == DEFAULT_TENANT and self.identity.may(Right.ADMIN)

    @property
    def caller(self) -> Caller:
        """Who has code run, and cannot be asked meanwhile."""
        if self.identity == LOCAL_IDENTITY:
            return LOCAL
        return Caller(of_principal(self.identity.principal), identity=self.identity)

    @property
    def scope(self) -> str | None:
        """Whose runs are seen."""
        return None if self.identity.may(Right.ADMIN) else self.caller.scope

    def may(self, *rights: Right) -> bool:
        """Return whether it has one of these rights."""
        return any(map(self.identity.may, rights))


@dataclass(frozen=True, slots=True)
class View:
    """One request: who asks, what stands in its path, its query and its form, and the app of the viewer's tenant."""

    viewer: Viewer
    app: App
    operators: App
    open_homes: Mapping[str, OpenedHome]
    using: Callable[[str], AbstractAsyncContextManager[OfApp]]
    """Gives what requests use of a tenant, which is open for so long."""
    named: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)

    def here(self) -> HereInServer:
        """Return what commands are given: the viewer's homes, or of these the tenant that the query names. Blocks.

        Raises `UsageError` for a tenant that there is not, or that is not the viewer's.
        """
        tenant, own, is_operator = self.query.get("tenant") or None, self.app.home, self.viewer.is_operator
        home = own
        if tenant is not None and tenant != own.tenant:
            known = {each.id for each in TenantStore(self.operators.database()).all()} if is_operator else set()
            if tenant not in known:
                raise UsageError(f"There is no tenant {tenant} here. Leave the tenant out, or name one that is listed.")
            home = own.of_tenant(tenant)
        here = HereInServer(self.operators.settings, home, self.open_homes)
        if tenant is not None or not is_operator:  # else the home of `default` stands for those of all tenants
            here.chosen.tenants_home = home.tenant
        return here

    async def listed(self, function: Callable[[HereInServer], _T]) -> _T:
        """Return what a command's function lists, in a thread; what happened by now is written before."""
        for home in self.open_homes.values():
            await home.journal.stored()
        if (log := self.operators.audit.log) is not None:
            with suppress(AuditUnwritten):  # what there is, is shown
                await log.stored()
        return await asyncio.to_thread(lambda: function(self.here()))

    def reach(self, here: HereInServer, run_id: str) -> str:
        """Return the tenant of a run that the viewer sees. Blocks. Raises `JournalNotFound` for any other."""
        with home_of_run(here, run_id) as home:
            scope = self.viewer.scope
            if scope is not None or not home.journal.store().knows(run_id):
                try:
                    home.journal.background().state(run_id, scope=scope)
                except JournalNotFound:
                    home.journal.store().journal(run_id, scope=scope)
            return home.home.tenant
