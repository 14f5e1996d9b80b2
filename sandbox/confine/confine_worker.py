"""Security boundary: from a fork of the zygote to a worker that may read hostile code.

The order of the steps is that of what each needs from the one before: ids before mounts, mounts while there are still
capabilities, the filter last, since it forbids the other steps.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Collection
from typing import NoReturn

from . import landlock, layout, namespaces, overlay, privileges, root
from .plan import SIGNALLED, Plan

_STDERR = 2


def fork(plan: Plan) -> int:
    """Fork a worker: its pid in the zygote, 0 in the worker, which must call `enter` before anything else.

    Where the plan has namespaces, the worker is in all of them from its first instruction, by one clone(2), or by birth
    in a network namespace that it shares with the zygote (`plan.own_network`). Raises OSError. A worker that a signal
    ends is reported by wait(2) as such, except under `plan.own_init`: then the exit status is 128 + the signal, and the
    returned pid is that of the first process, whose death ends them all.
    """
    if not plan.namespaced:
        return os.fork()
    return namespaces.fork_into(namespaces.ALL if plan.own_network else namespaces.ALL_BUT_NET)


def enter(
    plan: Plan, *, keep_fds: Collection[int], run_folder: str = "", overlay_to: socket.socket | None = None
) -> tuple[str, ...]:
    """Confine this worker as planned, for good, and return the names of the layers now active.

    Under `plan.overlays` it writes to the workspace through its `run_folder`, where it is given one, and sends the
    descriptor for `overlay.see_anew` through `overlay_to`. Only the descriptors in `keep_fds` stay open. Raises
    OSError, naming the call, when a step fails, after writing the same to standard error: the worker must then end
    without reading its code (fail closed).
    """
    kept = frozenset(keep_fds)
    try:
        if sys.platform == "linux":
            writes = plan.overlays and bool(run_folder)
            _give_up_privileges(plan, run_folder if writes else "", overlay_to)
            _forbid(plan, kept, (layout.WORKSPACE,) if writes else ())
        else:
            privileges.close_others(kept)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(_STDERR, f"A worker could not be confined: {error}\n".encode())
        raise
    return plan.layers


def _give_up_privileges(plan: Plan, run_folder: str, overlay_to: socket.socket | None) -> None:
    privileges.die_with_parent()
    if plan.scratch_bytes:
        # A file system needs an owner. Without one, a worker is nobody even in its own namespace, as getuid(2) says of
        # users that have no place there (user_namespaces(7)).
        privileges.set_dumpable(True)  # else this process's own /proc files belong to root
        namespaces.map_ids(plan.proc_fd, plan.uid, plan.gid)
        if run_folder:
            picked_fd = overlay.mount(run_folder, plan.readable)
            if overlay_to is not None:
                socket.send_fds(overlay_to, [b"o"], [picked_fd])
            os.close(picked_fd)
        else:
            root.mount_scratch(layout.SCRATCH, plan.scratch_bytes, plan.readable)
        if plan.has_run_folders:
            overlay.cover()
    if plan.own_init:
        worker = os.fork()
        if worker:
            _be_first_process(plan, worker)
        privileges.die_with_parent()
    privileges.drop_capabilities()
    privileges.no_new_privileges()


def _forbid(plan: Plan, keep_fds: frozenset[int], also_changeable: tuple[str, ...] = ()) -> None:
    if plan.landlock_abi:
        rules = plan.ruleset_fd
        landlock.restrict(
            landlock.ruleset(plan.landlock_abi, plan.readable, (*plan.changeable, *also_changeable))
            if rules is None
            else rules
        )
    # Its host has to see which removed files it holds: where that is no root, by the right of its owner (proc(5)).
    privileges.set_dumpable(plan.seen_by_owner and bool(also_changeable))
    privileges.close_others(keep_fds)
    if plan.filter is not None:
        plan.filter.load()


def _be_first_process(plan: Plan, worker: int) -> NoReturn:
    """Be process 1 of the namespace: adopt and reap orphans, and end as the worker ends."""
    status = 1
    try:
        privileges.drop_capabilities()
        privileges.no_new_privileges()
        _forbid(plan, frozenset())
        ended = 0
        while ended != worker:
            ended, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        status = code if code >= 0 else SIGNALLED - code
    finally:
        os._exit(status)
