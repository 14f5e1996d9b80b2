"""What is decided once, in the zygote, about how each of its workers will be confined."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from ..run import Isolation
from . import privileges
from .levels import Level, Probe, require


@dataclass(frozen=True, slots=True)
class Plan:
    """How to confine one worker: made once per zygote, used by every fork.

    `layers` are the names of the layers that each worker will report once they are active. Every step of the plan
    must succeed in the worker, or the worker ends.
    """

    isolation: Isolation
    layers: tuple[str, ...]
    zygote_pidfd: int | None = None


def prepare(
    probe: Probe,
    *,
    isolation: Isolation = Isolation.RESTRICTED,
    required: Level = Level.LIMITS,
) -> Plan:
    """Settle this process as a zygote and say how its workers will be confined.

    Call it once, with one thread, after everything was imported. It cannot be undone: a root user is left for good.
    Raises LevelMissing when the machine does not reach `required`.
    """
    require(required, probe)
    privileges.leave_root()
    pidfd = os.pidfd_open(os.getpid()) if sys.platform == "linux" else None
    return Plan(isolation=isolation, layers=("process",), zygote_pidfd=pidfd)
