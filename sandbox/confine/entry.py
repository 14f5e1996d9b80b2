"""Security boundary: from a fork of the zygote to a worker that may read hostile code."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

from . import privileges
from .plan import Plan


def fork(plan: Plan) -> int:
    """Fork a worker: its pid in the zygote, 0 in the worker, which must call `enter` before anything else."""
    del plan
    return os.fork()


def enter(plan: Plan, *, keep_fds: Collection[int]) -> tuple[str, ...]:
    """Confine this worker as planned, for good, and return the names of the layers now active.

    Only the descriptors in `keep_fds` stay open. Raises OSError, naming the call, when a step fails: the worker must
    then end without reading its code (fail closed).
    """
    if sys.platform == "linux":
        privileges.die_with_parent(plan.zygote_pidfd)
        privileges.no_new_privileges()
        privileges.set_dumpable(False)
    privileges.close_others(frozenset(keep_fds))
    return plan.layers
