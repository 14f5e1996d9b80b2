"""The bounds of callers and tenants that change while the server runs.

What `sealab limits set` put into the operator's database comes first, else the setting of that name counts, as the
settings file has it now. Both are looked at while runs begin, so that a change counts within `REFRESH_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ....sandbox.host.scheduler import OwnBound
from ....sandbox.job import Owner
from ....skills_db.errors import SkillsDbError
from ...base.errors import HostWorkBusy
from ...base.host_work import Kind, in_thread
from ...base.identity import DEFAULT_TENANT
from ..scopes import principal_of

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....skills_db.tenants.tenant_store import LimitOf, SetLimit
    from ...base.settings import Settings

KINDS = ("runs_max", "runs_per_minute", "cpu_seconds_per_day", "sessions_max")
"""What is bounded: the names of the settings without `caller_` and `tenant_`."""
REFRESH_SECONDS = 2.0
"""How old what is known of the database may be when a run begins."""
_WAIT_SECONDS = 0.5
"""How long a run waits to know it; then the last that is known counts."""
_LOG = logging.getLogger(__name__)


class OwnLimits:
    """The bounds in force. Belongs to one event loop. Without a `database` the settings alone count."""

    def __init__(self, settings: Settings, database: Callable[[], Database] | None = None) -> None:
        self.settings = settings
        self._database = database
        self._known: Mapping[LimitOf, SetLimit] = {}
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_of_server(self) -> bool:
        """Whether a server asks, which has a database to keep things in."""
        return self._database is not None

    def most(self, name: str, owner: Owner) -> float:
        """Return the bound of an owner that stands in place of the setting `name`; 0 is none."""
        tenant = owner.tenant or DEFAULT_TENANT
        principal = principal_of(owner.caller) if name.startswith("caller_") else ""
        found = self._known.get((tenant, principal, name))  # type: ignore[call-overload]  # equal to a `LimitOf`
        most: float = getattr(self.settings, name) if found is None else found.most
        return int(most) if most == int(most) else most

    def of_home(self, tenant: str) -> OwnBound:
        """Return the same for workers that a tenant has to itself, whose owners name none."""
        return lambda name, owner: self.most(name, Owner(owner.tenant or tenant, owner.caller))

    def take(self, settings: Settings) -> None:
        """Apply the settings of the file as it is now."""
        self.settings = settings

    def bounds_cpu(self, tenant: str) -> bool:
        """Return whether CPU seconds are to be counted in a tenant."""
        usual = self.settings.caller_cpu_seconds_per_day or self.settings.tenant_cpu_seconds_per_day
        return bool(usual) or any(each.tenant == tenant and each.name.endswith(KINDS[2]) for each in self._known)

    async def refreshed(self) -> None:
        """Read what is stored again where that was long ago, and wait for it for a moment."""
        if self._database is None or (self._read_at or 0.0) > time.monotonic() - REFRESH_SECONDS:
            return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(self._database))
        await asyncio.wait({self._reading}, timeout=_WAIT_SECONDS)

    async def _read(self, database: Callable[[], Database]) -> None:
        try:
            self._known = await in_thread(Kind.DATABASE, partial(_stored, database), charged=False)
            self._read_at = time.monotonic()
        except (SkillsDbError, HostWorkBusy) as error:
            _LOG.warning("The limits that `sealab limits set` gave are not known now: %s", error)


def _stored(database: Callable[[], Database]) -> Mapping[LimitOf, SetLimit]:
    from ....skills_db.tenants.tenant_store import LimitStore

    return LimitStore(database()).all()
