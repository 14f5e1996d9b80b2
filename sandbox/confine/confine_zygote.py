"""Makes this process a zygote whose workers will be confined: moves it and drops what it holds."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from ..errors import LevelMissing
from ..job import Isolation
from ..levels import Level, Probe, require
from . import cgroups, confine_worker, landlock, layout, namespaces, privileges, processors, root
from .plan import Plan
from .system_calls import allow_list, seccomp

SCRATCH_BYTES = 64 * 1024 * 1024
"""How much the scratch directory of full Python holds: it is memory that no resource limit counts."""


def prepare(
    probe: Probe,
    *,
    isolation: Isolation = Isolation.RESTRICTED,
    required: Level = Level.LIMITS,
    workspace: str | None = None,
    scratch_bytes: int = SCRATCH_BYTES,
    run_folders: str | None = None,
    group: str | None = None,
    group_limits: tuple[int, int] | None = None,
    cpus: float | None = None,
    packages: bool = False,
) -> Plan:
    """Settle this process as a zygote and say how its workers will be confined.

    Call it once, with one thread, after everything was imported and run once. It cannot be undone: a root user is left
    for good, and where there are namespaces the process moves into the root in which its workers will live, without
    /proc and without the packages that `restricted` code never sees. `workspace` is shown read-only at /workspace to
    full Python only, which may be let write through a folder of each worker's own below `run_folders` (`overlay`);
    whether that works is for `self_test.with_overlay` to find out. `group` names the control group that it shares with
    other zygotes; `group_limits` are bytes of memory, and processes and threads, for this process and all its workers
    together; they hold (the layer "cgroup") where control groups are writable, and nothing is said where they are not.
    `cpus` is how many processors all of them may use together (the layer "cpus"). With `packages` a `restricted` worker
    sees the packages of this process, as a reader does.

    Raises LevelMissing when the machine does not reach `required`, a layer that was found cannot be set up, or `cpus`
    cannot be held. That the layers hold is for `self_test.prove` to show, once the zygote is as its workers will find
    it.
    """
    require(required, probe)
    held = None if cpus is None else _hold_cpus(cpus, group, isolation, probe)
    if sys.platform != "linux":
        privileges.leave_root()
        return Plan(isolation=isolation, layers=("process",))
    full_python = isolation is not Isolation.RESTRICTED
    grouped = group_limits is not None and _join_group(*group_limits, group)
    try:
        plan = _confine(
            probe,
            isolation,
            workspace if full_python else None,
            scratch_bytes if full_python else 0,
            run_folders if full_python and workspace is not None and probe.has("namespaces") else None,
            pinned=held is processors.HeldBy.AFFINITY,
            packages=packages,
        )
        ready = () if plan.scratch_bytes else confine_worker.calls(plan)
    except OSError as error:
        raise LevelMissing(
            f"A worker cannot be confined as planned: {error}. Run `sealab doctor` to see what this machine offers."
        ) from error
    more = (*(("cgroup",) if grouped else ()), *((processors.LAYER,) if held else ()))
    if plan.filter is not None:
        plan.filter.make_ahead()
    return replace(plan, layers=(*plan.layers, *more), calls=ready)


def _hold_cpus(cpus: float, group: str | None, isolation: Isolation, probe: Probe) -> processors.HeldBy:
    held = processors.hold(cpus, group=group)
    if held is processors.HeldBy.AFFINITY and isolation is not Isolation.RESTRICTED and not probe.has("seccomp"):
        raise LevelMissing(
            f"CPUS is {cpus:g}, and could be held by affinity alone, which full Python can change where no filter of "
            "system calls can be set. Allow control groups or seccomp to this process, or remove CPUS."
        )
    return held


def _join_group(memory_bytes: int, processes: int, group: str | None) -> bool:
    try:
        cgroups.join(memory_bytes, processes, group=group)
    except OSError:
        return False
    return True


def _confine(
    probe: Probe,
    isolation: Isolation,
    workspace: str | None,
    scratch_bytes: int,
    run_folders: str | None,
    *,
    pinned: bool,
    packages: bool,
) -> Plan:
    files = layout.layout_for(isolation, workspace, run_folders, packages=packages)
    namespaced = probe.has("namespaces")
    proc_fd = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) if namespaced else -1
    notes = move_in(files, proc_fd) if namespaced else ()
    as_root = os.geteuid() == 0
    privileges.leave_root()
    privileges.drop_capabilities()
    privileges.set_dumpable(False)
    if not namespaced:
        os.chdir("/")
    abi = probe.landlock_abi if probe.has("landlock") else 0
    readable = _readable(files, workspace, namespaced=namespaced)
    names = ("seccomp", "landlock", "namespaces")
    # A container's scratch directory belongs to the one run in it, even where no other can be mounted.
    own_scratch = isolation is Isolation.CONTAINER or (namespaced and bool(scratch_bytes))
    return Plan(
        isolation=isolation,
        layers=("process", *(name for name in names if probe.has(name))),
        filter=seccomp.build(allow_list.policy_for(isolation, pinned=pinned)) if probe.has("seccomp") else None,
        landlock_abi=abi,
        # A scratch directory is another one in each worker, and so are the rules about it.
        ruleset_fd=landlock.ruleset(abi, readable, files.devices) if abi and not scratch_bytes else None,
        readable=readable,
        changeable=(*files.devices, *((layout.SCRATCH,) if own_scratch else ())),
        namespaced=namespaced,
        own_network=isolation is not Isolation.RESTRICTED or not probe.has("seccomp"),
        proc_fd=proc_fd,
        uid=os.geteuid(),
        gid=os.getegid(),
        scratch_bytes=scratch_bytes if namespaced else 0,
        notes=notes,
        own_init=namespaced and isolation is not Isolation.RESTRICTED,
        has_run_folders=bool(files.changeable),
        seen_by_owner=not as_root,
    )


def move_in(files: root.Layout, proc_fd: int) -> tuple[str, ...]:
    """Move this process into a root and an empty network of its own, and return what to note about it.

    As root it takes new namespaces for these alone, else a user namespace too. Raises OSError.
    """
    uid, gid = os.geteuid(), os.getegid()
    moved = namespaces.NEW_MOUNT | namespaces.NEW_UTS | namespaces.NEW_NET
    if uid != 0:
        namespaces.unshare(namespaces.NEW_USER | moved)
        privileges.set_dumpable(True)
        namespaces.map_ids(proc_fd, uid, gid)
        namespaces.set_host_name()
        root.move_in(files)
        return ()
    owner_map_fd = namespaces.owner_map(proc_fd, 0, privileges.NOBODY) if files.placed else None
    namespaces.unshare(moved)
    namespaces.set_host_name()
    unmapped = root.move_in(files, owner_map_fd=owner_map_fd)
    if owner_map_fd is not None:
        os.close(owner_map_fd)
    return tuple(
        f"{path} is on a file system that cannot show its files with another owner, so code sees only what all users "
        "may read there. Run the server as an ordinary user, or keep its home on another file system."
        for path in unmapped
    )


def _readable(files: root.Layout, workspace: str | None, *, namespaced: bool) -> tuple[str, ...]:
    placed = tuple(files.placed) if namespaced else ()
    outside = (workspace,) if workspace is not None and not namespaced else ()
    return (*files.readable, *placed, *outside)
