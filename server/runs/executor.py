"""What running code takes: workers, the limits of the operator, the functions of the host, and who counts the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ..audit.trail import UNAUDITED, AuditTrail
from ..policy.access import NO_POLICY, Decider
from ..stats.run_stats import RunStats
from .cancelled_runs import CancelledRuns
from .last_runs import LastRuns

if TYPE_CHECKING:
    from ...sandbox.host.pools import Pools
    from ...workspace.store import Workspace
    from ..host_functions.broker import Handler
    from ..journal.journal import Journal
    from ..privacy.privacy import Privacy
    from ..settings import Settings
    from ..shares.shares import Shares
    from .archive import RunKeeper
    from .isolations import Offer
    from .places import Places


class RunRecorder(Protocol):
    """Keeps a record of each run that has ended."""

    def note(self, run_id: str, *, duration_ms: float, status: str, isolation: str, skills: Mapping[str, int]) -> None:
        """Record a run, and that it used these versions of skills; returns at once."""


WiderSkills = Callable[[Collection[str]], Awaitable[Collection[str]]]


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
    wider_skills: WiderSkills | None = None
    """Finds, of skills by their names, those that the dialect refuses, or that use one that it refuses."""
