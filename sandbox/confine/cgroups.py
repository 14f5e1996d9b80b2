"""A bound on the memory and the processes of a zygote and all its workers together, where control groups are writable.

Each worker is limited by its own resource limits already; this is the net below them, and it also counts what they do
not see: kernel memory, page tables, the files of a scratch directory. Sources: cgroups(7), the kernel's
Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.

A group cannot be removed by who is in it: its host removes it when the zygote is gone. Host and zygote may be killed at
any time, so each new zygote removes the empty groups of earlier ones too.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

_PREFIX = "sealab-"
_MEMBERS = "cgroup.procs"
_LEAVING_SECONDS = 1.0
_TRIAL_LIMIT_BYTES = 4 << 20
_TRIAL_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class _Controller:
    """One directory in which groups for `name` can be made; the files that hold its limits."""

    name: str
    folder: str
    memory_file: str | None
    processes_file: str | None


def join(memory_bytes: int, processes: int) -> None:
    """Put this process, and whatever it forks, into a new group with these limits, once they were seen to hold.

    `processes` counts threads too. Raises OSError where no group can be made, or its limits hold nothing back.
    """
    if where() is None:
        raise OSError(errno.ENOENT, "no control groups for memory and processes can be made")
    remove_empty()
    for controller in _controllers():
        _try(controller)
        group = _new_group(controller, str(os.getpid()))
        if controller.memory_file:
            _write(group, controller.memory_file, memory_bytes)
        if controller.processes_file:
            _write(group, controller.processes_file, processes)
        _write(group, _MEMBERS, os.getpid())


def where() -> str | None:
    """Say in which directories groups can be made, or None where they cannot."""
    controllers = _controllers()
    if not all(any(getattr(one, kind) for one in controllers) for kind in ("memory_file", "processes_file")):
        return None
    return ", ".join(controller.folder for controller in controllers)


def remove_empty() -> None:
    """Remove the groups whose processes are all gone, as far as possible."""
    for controller in _controllers():
        for entry in os.scandir(controller.folder):
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):  # EBUSY: another zygote lives in it
                    os.rmdir(entry.path)


def remove_of(pid: int) -> None:
    """Remove the groups of a process that has ended, once its children, which end with it, have ended too."""
    with contextlib.suppress(OSError):
        groups = [os.path.join(controller.folder, f"{_PREFIX}{pid}") for controller in _controllers()]
        until = time.monotonic() + _LEAVING_SECONDS
        while groups := [group for group in groups if os.path.isdir(group) and not _removed(group)]:
            if time.monotonic() > until:
                return  # the next zygote removes them
            time.sleep(_LEAVING_SECONDS / 100)


def _removed(group: str) -> bool:
    try:
        os.rmdir(group)
    except OSError:
        return False
    return True


def _controllers() -> list[_Controller]:
    """Find where groups can be made: of version 1 for each controller beneath this process's own, else version 2."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = {names: path for _number, names, path in (line.rstrip("\n").split(":", 2) for line in file)}
    found: list[_Controller] = []
    unified: str | None = None
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            before, after = line.rstrip("\n").split(" - ", 1)
            kind, _source, options = after.split(" ", 2)
            mounted_root, mount_point = before.split(" ")[3:5]
            if kind == "cgroup2":
                unified = _beneath(mount_point, mounted_root, own.get("", "/"))
            elif kind == "cgroup":
                for names, path in own.items():
                    its = set(names.split(",")) & {"memory", "pids"} & set(options.split(","))
                    folder = _beneath(mount_point, mounted_root, path)
                    if its and os.access(folder, os.W_OK):
                        memory = "memory.limit_in_bytes" if "memory" in its else None
                        pids = "pids.max" if "pids" in its else None
                        found.append(_Controller("+".join(sorted(its)), folder, memory, pids))
    if not found and unified is not None:
        # Only where the parent already hands both controllers down: it may, or its processes would have to leave it.
        for folder in (unified, os.path.dirname(unified)):
            with contextlib.suppress(OSError), open(os.path.join(folder, "cgroup.subtree_control")) as file:
                if {"memory", "pids"} <= set(file.read().split()) and os.access(folder, os.W_OK):
                    return [_Controller("unified", folder, "memory.max", "pids.max")]
    return found


def _beneath(mount_point: str, mounted_root: str, path: str) -> str:
    relative = path.removeprefix(mounted_root.rstrip("/"))
    return os.path.join(mount_point, relative.lstrip("/")).rstrip("/")


def _new_group(controller: _Controller, name: str) -> str:
    group = os.path.join(controller.folder, _PREFIX + name)
    os.mkdir(group)
    return group


def _write(group: str, file: str, value: int) -> None:
    with open(os.path.join(group, file), "w", encoding="ascii") as limit:
        limit.write(str(value))


def _try(controller: _Controller) -> None:
    """Raise OSError unless a group of this controller really holds a trial process back."""
    group = _new_group(controller, f"{os.getpid()}-trial")
    try:
        if controller.processes_file:
            _write(group, controller.processes_file, 1)
            if _ended(group, _fork_once) != 0:
                raise OSError(errno.EPERM, "the control group for processes holds nothing back")
            _write(group, controller.processes_file, 10)
        if controller.memory_file:
            _write(group, controller.memory_file, _TRIAL_LIMIT_BYTES)
            if _ended(group, _use_memory) != -signal.SIGKILL:
                raise OSError(errno.EPERM, "the control group for memory holds nothing back")
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(group)


def _ended(group: str, action: Callable[[], int]) -> int:
    """Do it in a child process inside the group, and say how that ended: its exit code, or minus the signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _write(group, _MEMBERS, os.getpid())
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _fork_once() -> int:
    try:
        pid = os.fork()
    except OSError:
        return 0
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return 1


def _use_memory() -> int:
    with mmap.mmap(-1, _TRIAL_BYTES) as memory:
        for offset in range(0, _TRIAL_BYTES, mmap.PAGESIZE):
            memory[offset] = 1
    return 0
