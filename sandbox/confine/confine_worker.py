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

from . import landlock, layout, libc, namespaces, overlay, privileges, root
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
            if plan.scratch_bytes:
                _mount(plan, run_folder if writes else "", overlay_to)
            if plan.own_init:
                _be_second_process(plan)
            _forbid(plan, kept, plan.calls or calls(plan, (layout.WORKSPACE,) if writes else ()))
        else:
            privileges.close_others(kept)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(_STDERR, f"A worker could not be confined: {error}\n".encode())
        raise
    return plan.layers


def calls(plan: Plan, also_changeable: tuple[str, ...] = ()) -> tuple[libc.Call, ...]:
    """Make ready what a worker does once it has its files, from dying with its parent to not being dumpable."""
    made: tuple[libc.Call, ...] = privileges.GIVE_UP
    if plan.landlock_abi:
        rules = plan.ruleset_fd
        if rules is None:
            rules = landlock.ruleset(plan.landlock_abi, plan.readable, (*plan.changeable, *also_changeable))
        made = (*made, landlock.ready(rules))
    # Its host has to see which removed files it holds: where that is no root, by the right of its owner (proc(5)).
    return (*made, privileges.ready_dumpable(plan.seen_by_owner and bool(also_changeable)))


def _mount(plan: Plan, run_folder: str, overlay_to: socket.socket | None) -> None:
    privileges.die_with_parent()
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


def _forbid(plan: Plan, keep_fds: frozenset[int], ready: tuple[libc.Call, ...]) -> None:
    libc.make(ready)
    privileges.close_others(keep_fds)
    if plan.filter is not None:
        plan.filter.load()


def _be_second_process(plan: Plan) -> None:
    """Go on as the child of a process that is the first of the namespace."""
    privileges.die_with_parent()
    worker = os.fork()
    if worker:
        _be_first_process(plan, worker)


def _be_first_process(plan: Plan, worker: int) -> NoReturn:
    """Be process 1 of the namespace: adopt and reap orphans, and end as the worker ends."""
    status = 1
    try:
        _forbid(plan, frozenset(), calls(plan))
        ended = 0
        while ended != worker:
            ended, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        status = code if code >= 0 else SIGNALLED - code
    finally:
        os._exit(status)
