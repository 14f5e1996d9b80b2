"""Bounds on the memory, the processes and the processor time of a pool's zygotes and all their workers together.

They hold where control groups are writable. Each worker is limited by its own resource limits already; the bound on
memory and processes is the net below them, and it also counts what they do not see: kernel memory, page tables, the
files of a scratch directory. Sources: cgroups(7), the kernel's Documentation/admin-guide/cgroup-v1/memory.rst,
cgroup-v2.rst and scheduler/sched-bwc.rst.

A group cannot be removed by who is in it: its host removes it when the last zygote is gone. Host and zygote may be
killed at any time, so each new zygote removes the empty groups of earlier ones too.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_PREFIX = "sealab-"
_MEMBERS = "cgroup.procs"
_PROCESSORS_STATISTICS = "cpu.stat"
_PERIOD_MICROSECONDS = 100_000
"""In which a share of the processors may be used up: the kernel's own default, which is not changed."""
_LEAVING_SECONDS = 1.0
_TRIAL_LIMIT_BYTES = 4 << 20
_TRIAL_BYTES = 16 << 20
_TRIAL_SHARE = 0.05
_TRIAL_SECONDS = 0.015

# The file of each controller that holds its limit, by version.
_VERSION_1 = {"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpu": "cpu.cfs_quota_us"}
_VERSION_2 = {"memory": "memory.max", "pids": "pids.max", "cpu": "cpu.max"}


@dataclass(frozen=True, slots=True)
class _Place:
    """One directory in which groups can be made, and the file of each limit that they have: memory, pids, cpu."""

    folder: str
    limits: Mapping[str, str]


def join(memory_bytes: int, processes: int, *, group: str | None = None) -> None:
    """Put this process, and whatever it forks, into a group with these limits, once they were seen to hold.

    `group` is its name, beginning with the pid of the process that removes it; another zygote may be in it already. By
    default it is a new one. `processes` counts threads too. Raises OSError where no group can be made, or its limits
    hold nothing back.
    """
    if where() is None:
        raise OSError(errno.ENOENT, "no control groups for memory and processes can be made")
    remove_empty()
    for place in _places("memory", "pids"):
        _try(place)
        _enter(place, {"memory": str(memory_bytes), "pids": str(processes)}, group)


def share_processors(share: float, *, group: str | None = None) -> None:
    """Put this process, and whatever it forks, into a group that gets `share` processors, once that was seen to hold.

    1.5 is one processor and half of another, in each tenth of a second. Takes `group` and raises OSError as `join`.
    """
    places = _places("cpu")
    if not places:
        raise OSError(errno.ENOENT, "no control group for processors can be made")
    remove_empty()
    for place in places:
        _try_processors(place)
        _enter(place, {"cpu": _quota(place, share)}, group)


def where() -> str | None:
    """Return in which directories groups for memory and processes can be made, or None where they cannot."""
    places = _places("memory", "pids")
    if {"memory", "pids"} - {kind for place in places for kind in place.limits}:
        return None
    return ", ".join(place.folder for place in places)


def where_processors() -> str | None:
    """Return in which directory groups for processors can be made, or None where they cannot."""
    return ", ".join(place.folder for place in _places("cpu")) or None


def memory_folders() -> Sequence[str]:
    """Return the folders of all groups that bound this process's memory, its own first; none where none can be seen."""
    found: list[str] = []
    with contextlib.suppress(OSError):  # a kernel without control groups, or another system
        for own in _own_groups():
            folder = own.folder
            while (own.kinds is None or "memory" in own.kinds) and folder.startswith(own.mount_point):
                found.append(folder)
                folder = os.path.dirname(folder)
    return found


def remove_empty() -> None:
    """Remove the groups whose processes are all gone, as far as possible."""
    for place in _places():
        for entry in os.scandir(place.folder):
            if entry.name.startswith(_PREFIX) and not _is_being_made(entry.name):
                with contextlib.suppress(OSError):  # EBUSY: another zygote is in it
                    os.rmdir(entry.path)


def _is_being_made(group: str) -> bool:
    """Return whether the process that a group is named for runs: then a zygote may be about to enter it."""
    return os.path.exists(f"/proc/{group.removeprefix(_PREFIX).partition('-')[0]}")


def remove(name: str) -> None:
    """Remove the groups of this name, once the children of a zygote in them, which end with it, have ended too."""
    with contextlib.suppress(OSError):
        groups = [os.path.join(place.folder, f"{_PREFIX}{name}") for place in _places()]
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


def _places(*kinds: str) -> Sequence[_Place]:
    """Find where groups with any of these limits can be made (with all, if none is named).

    In version 1 that is beneath this process's own group of each controller, else in version 2.
    """
    wanted = set(kinds or _VERSION_1)
    found: list[_Place] = []
    unified: str | None = None
    for own in _own_groups():
        if own.kinds is None:
            unified = own.folder
        elif (its := own.kinds & wanted) and os.access(own.folder, os.W_OK):
            found.append(_Place(own.folder, {name: _VERSION_1[name] for name in sorted(its)}))
    missing = wanted - {kind for place in found for kind in place.limits}
    if missing and unified is not None:
        # Only where the parent already hands controllers down: it may, or its processes would have to leave it.
        for folder in (unified, os.path.dirname(unified)):
            with contextlib.suppress(OSError), open(os.path.join(folder, "cgroup.subtree_control")) as file:
                handed = missing & set(file.read().split())
                if handed and os.access(folder, os.W_OK):
                    return [*found, _Place(folder, {name: _VERSION_2[name] for name in sorted(handed)})]
    return found


@dataclass(frozen=True, slots=True)
class _Own:
    """A group of this process, where it is mounted, and its controllers; version 2 lists them elsewhere (None)."""

    folder: str
    mount_point: str
    kinds: frozenset[str] | None


def _own_groups() -> Iterator[_Own]:
    """Give the groups that this process is in. Raises OSError."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = {names: path for _number, names, path in (line.rstrip("\n").split(":", 2) for line in file)}
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            before, after = line.rstrip("\n").split(" - ", 1)
            kind, _source, options = after.split(" ", 2)
            mounted_root, mount_point = before.split(" ")[3:5]
            if kind == "cgroup2":
                yield _Own(_beneath(mount_point, mounted_root, own.get("", "/")), mount_point, None)
            elif kind == "cgroup":
                for names, path in own.items():
                    its = frozenset(names.split(",")) & frozenset(options.split(","))
                    if its:
                        yield _Own(_beneath(mount_point, mounted_root, path), mount_point, its)


def _beneath(mount_point: str, mounted_root: str, path: str) -> str:
    relative = path.removeprefix(mounted_root.rstrip("/"))
    return os.path.join(mount_point, relative.lstrip("/")).rstrip("/")


def _enter(place: _Place, limits: Mapping[str, str], name: str | None) -> None:
    """Join the group of this name there, or this process's own: in version 2 it is one for all limits."""
    group = _group(place, name or str(os.getpid()))
    for kind in place.limits:
        _write(group, place.limits[kind], limits[kind])
    _write(group, _MEMBERS, str(os.getpid()))


def _quota(place: _Place, share: float) -> str:
    microseconds = round(share * _PERIOD_MICROSECONDS)
    return str(microseconds) if place.limits["cpu"] == _VERSION_1["cpu"] else f"{microseconds} {_PERIOD_MICROSECONDS}"


def _group(place: _Place, name: str) -> str:
    group = os.path.join(place.folder, _PREFIX + name)
    os.makedirs(group, exist_ok=True)
    return group


def _write(group: str, file: str, value: str) -> None:
    with open(os.path.join(group, file), "w", encoding="ascii") as limit:
        limit.write(value)


def _try(place: _Place) -> None:
    """Raise OSError unless a group there really holds back the memory and the processes of a trial process."""
    group = _group(place, f"{os.getpid()}-trial")
    try:
        if "pids" in place.limits:
            _write(group, place.limits["pids"], "1")
            if _ended(group, _fork_once) != 0:
                raise OSError(errno.EPERM, "the control group for processes limits nothing")
            _write(group, place.limits["pids"], "10")
        if "memory" in place.limits:
            _write(group, place.limits["memory"], str(_TRIAL_LIMIT_BYTES))
            if _ended(group, _use_memory) != -signal.SIGKILL:
                raise OSError(errno.EPERM, "the control group for memory limits nothing")
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(group)


def _try_processors(place: _Place) -> None:
    """Raise OSError unless the kernel says that it made a busy process wait there for its share to be renewed."""
    group = _group(place, f"{os.getpid()}-trial")
    try:
        _write(group, place.limits["cpu"], _quota(place, _TRIAL_SHARE))
        if _ended(group, _be_busy) != 0 or not times_held_back(os.path.join(group, _PROCESSORS_STATISTICS)):
            raise OSError(errno.EPERM, "the control group for processors limits nothing")
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(group)


def times_held_back(statistics_file: str) -> int:
    """Read how often the processes of a group had to wait for their share of the processors.

    Raises OSError where that is not said.
    """
    with open(statistics_file, encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, value = line.strip().partition(" ")
            if name == "nr_throttled" and value.isdecimal():
                return int(value)
    raise OSError(errno.EINVAL, f"{statistics_file} does not say how often processes had to wait")


def _ended(group: str, action: Callable[[], int]) -> int:
    """Do it in a child process inside the group, and say how that ended: its exit code, or minus the signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _write(group, _MEMBERS, str(os.getpid()))
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


def _be_busy() -> int:
    until = time.process_time() + _TRIAL_SECONDS
    while time.process_time() < until:
        pass
    return 0
