"""How many runs of one caller, and of one tenant, may be alive at once, in all pools together."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..job import Job
    from .fair_queue import Owner, Turns


class RunBounds:
    """Bounds for the runs of all schedulers that share it; 0 is no bound. Belongs to one event loop."""

    def __init__(self, caller_max: int = 0, tenant_max: int = 0) -> None:
        self.caller_max = caller_max
        self.tenant_max = tenant_max
        self._all: weakref.WeakSet[Turns[Job]] = weakref.WeakSet()

    def share(self, turns: Turns[Job]) -> None:
        """Count the runs of one more scheduler."""
        self._all.add(turns)

    def runs_of(self, owner: Owner) -> int:
        """Return how many runs of that caller have begun and not ended."""
        return sum(turns.begun_by(owner) for turns in self._all)

    def runs_of_tenant(self, tenant: str) -> int:
        """Return how many runs of that tenant have begun and not ended."""
        return sum(turns.begun_by_tenant(tenant) for turns in self._all)

    def refusal(self, owner: Owner) -> str | None:
        """Return why no more run of that caller may begin now, or None."""
        if self.caller_max and self.runs_of(owner) >= self.caller_max:
            return f"this caller has {self.caller_max} runs at once already, as many as one may (CALLER_RUNS_MAX)"
        if self.tenant_max and self.runs_of_tenant(owner.tenant) >= self.tenant_max:
            return f"this tenant has {self.tenant_max} runs at once already, as many as one may (TENANT_RUNS_MAX)"
        return None
