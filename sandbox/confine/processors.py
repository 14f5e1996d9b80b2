"""Limits a zygote and all its workers to a number of processors, by a control group or by CPU affinity.

A control group takes any share. Where none can be made, the CPU affinity of the processes is set
(sched_setaffinity(2)): that takes whole numbers only, and holds where the workers' filter refuses the same call.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum

from ..errors import LevelMissing
from . import cgroups

LAYER = "cpus"
"""The name of the layer, in the reports of workers that have it."""


class HeldBy(StrEnum):
    """What keeps the processes to their processors."""

    GROUP = "a control group"
    AFFINITY = "affinity"


def hold(share: float, *, group: str | None = None) -> HeldBy:
    """Hold this process, and whatever it forks, to that many processors; 1.5 is one and half of another.

    It shares them with all zygotes of the same `group` (`cgroups.join`).

    Raises LevelMissing where neither a control group nor affinity can.
    """
    try:
        cgroups.share_processors(share, group=group)
    except OSError as error:
        _pin(share, error, of=os.getpid() if group is None else int(group.partition("-")[0]))
        return HeldBy.AFFINITY
    return HeldBy.GROUP


def _pin(share: float, reason: OSError, *, of: int) -> None:
    if sys.platform != "linux":
        raise LevelMissing(f"CPUS is {share:g}, and only Linux can hold code to a share of the processors. Remove it.")
    if share % 1:
        raise LevelMissing(
            f"CPUS is {share:g}, and a part of a processor can be held by a control group alone: {reason.strerror}. "
            "Make CPUS a whole number, or run the server where control groups can be written."
        ) from None
    present = sorted(os.sched_getaffinity(0))
    first = of % len(present)  # so that not all servers of a machine crowd the same ones
    try:
        os.sched_setaffinity(0, (present[first:] + present[:first])[: int(share)])
    except OSError as error:
        raise LevelMissing(
            f"CPUS is {share:g}, and cannot be held, neither by a control group ({reason.strerror}) nor by "
            f"sched_setaffinity(2) ({error.strerror}). Allow one of them to this process, or remove CPUS."
        ) from None
