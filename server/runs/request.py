"""What a caller asks for when it has code run, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...sandbox.job import Json, Start
from ..caller import LOCAL, Caller
from .images import Picture
from .isolations import AUTO
from .report import Report


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """One `execute_code` as it was asked for; `None` stands for the operator's default."""

    code: str
    context_vars: Mapping[str, Json] = field(default_factory=dict)
    timeout_seconds: float | None = None
    memory_mb: int | None = None
    session: str | None = None
    isolation: str = AUTO
    dry_run: bool = False
    caller: Caller = LOCAL
    arguments: tuple[str, ...] = ()
    start: Start | None = None
    """That of an earlier run, to have its random numbers and its time again."""
    run_id: str | None = None
    """What the run is to be called, where its caller knows that already."""
    background: bool = False
    """Whether it is run for nobody who waits; the policy may say otherwise of such a run."""
    outlives_worker: bool = False
    """Whether its journal is left open, and `RunCut` raised, where its worker is lost: its caller goes on with it."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution: its report, and the images that the report's `images` speaks of."""

    report: Report
    images: tuple[Picture, ...] = ()
