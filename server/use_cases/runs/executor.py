"""What code is run with: workers, limits of the operator, functions of the host, records, and where sessions are."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from ....sandbox.job import Json
from ...base.lru import Lru
from ...base.stats.run_stats import RunStats
from ...governance.audit.trail import UNAUDITED, AuditTrail
from ...governance.caller import Caller, OnProgress
from ...governance.policy.access import NO_POLICY, Decider
from ...governance.provenance.sightings import Conversations
from .cancelled_runs import CancelledRuns
from .request import CodeRequest, Execution

if TYPE_CHECKING:
    from ....sandbox.host.pools import Pools
    from ....skills_db.tenants.used import Use
    from ....workspace.store import Workspace
    from ...base.settings import Settings
    from ...governance.shares.shares import Shares
    from ...privacy.privacy import Privacy
    from ..host_functions.broker import Handler
    from ..journal.journal import Journal
    from .archive import RunKeeper
    from .isolations import Offer

LAST: Final = "last"
_CALLERS_MAX: Final = 1000


class LastRuns:
    """The last runs of the callers that ran code most recently."""

    def __init__(self) -> None:
        self._run_ids: Lru[str, tuple[str, float]] = Lru(_CALLERS_MAX)

    def note(self, scope: str, run_id: str) -> None:
        """Note that a caller's run has ended."""
        self._run_ids[scope] = run_id, time.monotonic()

    def of(self, scope: str) -> str | None:
        """Return the last run of a caller, where one is known."""
        known = self.aged(scope)
        return None if known is None else known[0]

    def aged(self, scope: str) -> tuple[str, float] | None:
        """Return the last run of a caller, and how many seconds ago it ended, where one is known."""
        known = self._run_ids.get(scope)
        return None if known is None else (known[0], time.monotonic() - known[1])


class RunRecorder(Protocol):
    """Keeps a record of each run that has ended."""

    def note(
        self,
        run_id: str,
        *,
        owner: str,
        duration_ms: float,
        status: str,
        isolation: str,
        skills: Mapping[str, int],
        use: Use | None = None,
    ) -> None:
        """Record a run of a scope, that it used these versions of skills, and its use; returns at once."""


Here = Callable[[], Awaitable[Execution]]
"""Runs a program on this server."""
WiderSkills = Callable[[Collection[str]], Awaitable[Collection[str]]]


class Places(Protocol):
    """The sessions of one tenant, where several servers are one sealab (`replicas`).

    A session is named as the sandbox names it, with its owner.
    """

    async def execute(
        self, executor: Executor, request: CodeRequest, here: Here, progress: OnProgress | None
    ) -> Execution:
        """Run a program where its session is, and return its report."""
        ...

    async def confirm(self, session: str) -> None:
        """Raise `SessionElsewhere` unless this server still has the session in which it has run a program."""

    async def listed(self, scope: str) -> Sequence[Mapping[str, Json]]:
        """Return the sessions that the callers of a scope have on the other servers. Raises `SessionElsewhere`."""
        ...

    async def close(self, session: str) -> bool:
        """End a session that another server may have; return whether one had it. Raises `SessionElsewhere`."""
        ...

    async def store_journals(self) -> None:
        """Ask the other servers that can be reached to write what they have recorded of runs."""

    async def last_run(self, scope: str) -> tuple[str, float] | None:
        """Return the last run of a scope on the other servers, and how many seconds ago it ended."""
        ...


class Hints(Protocol):
    """Says what a program that ran well could have been."""

    def of(self, caller: Caller, run_id: str, code: str) -> str | None:
        """Return one hint for a caller whose program ran well once more, or None."""
        ...

    def saved(self, scope: str, code: str, name: str) -> None:
        """Note that a program of a caller was saved as a skill."""


@dataclass(frozen=True, slots=True)
class Executor:
    """What `execute` runs code with."""

    settings: Settings
    pools: Pools
    offer: Offer
    host_functions: Mapping[str, Handler]
    privacy: Privacy
    archive: RunKeeper
    recorder: RunRecorder
    journal: Journal
    shares: Shares
    policy: Decider = NO_POLICY
    stats: RunStats = field(default_factory=RunStats)
    last_runs: LastRuns = field(default_factory=LastRuns)
    cancelled: CancelledRuns = field(default_factory=CancelledRuns)
    audit: AuditTrail = UNAUDITED
    takes_queued: bool = False
    """Whether it runs what was queued, and so was admitted before."""
    workspace: Workspace | None = None
    """Where files go that full Python writes by itself; without it they are dropped."""
    places: Places | None = None
    """Where sessions are, where several servers are one sealab."""
    hints: Hints | None = None
    """Says of programs that ran well which skill would have done."""
    conversations: Conversations = field(default_factory=Conversations)
    """What callers read, and where it stood."""
    definitions_counted: Lru[tuple[str, str], bool] = field(default_factory=lambda: Lru(_CALLERS_MAX))
    """The callers and the servers whose definitions the ledger has counted for them."""
    wider_skills: WiderSkills | None = None
    """Finds, of skills by their names, those that the dialect refuses, or that use one that it refuses."""
