"""What the processes of a worker do and hold at the moment, and how to stop them for a while (proc(5)).

Nothing here rests on what a worker says of itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

_COMPUTING = frozenset(b"RD")
"""States of a thread that uses a processor, waits for one, or waits for a disk."""
_AT_REST = frozenset(b"TtZXx")
"""States of a thread that is stopped or has ended."""
_STOPPED = frozenset(b"Tt")
_ENDED = frozenset(b"ZXx")
_BLOCK_BYTES = 512  # of st_blocks, stat(2)
_DELETED = b" (deleted)"


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """What a stopped process holds of files below some places, by their inode numbers.

    `removed` has no name any more: how many bytes each takes on disk, None where that cannot be seen. `mapped` is
    shared memory that can be written. `locks` counts the record locks of the process (fcntl(2), F_SETLK), anywhere.
    """

    removed: dict[int, int | None] = field(default_factory=dict)
    mapped: set[int] = field(default_factory=set)
    locks: int = 0


def cpu_seconds(pid: int) -> float | None:
    """Read the CPU clock of a process: clock_getcpuclockid(3), as the kernel's posix-timers.h encodes it."""
    if sys.platform != "linux":
        return None
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return None


def first_child(pid: int) -> int | None:
    """Return the child of a process that has one, or None."""
    return next(_children(pid), None)


def family(pid: int) -> list[int]:
    """Return a process and all below it."""
    found = [pid]
    for each in found:
        found.extend(_children(each))
    return found


def computes(pid: int) -> bool | None:
    """Return whether a process with one thread computes now, or None where that cannot be seen."""
    return _computes(f"/proc/{pid}/stat")


def family_computes(pid: int) -> bool | None:
    """Return whether any thread of a process or of one below it computes now, or None where that cannot be seen."""
    seen = False
    for each in family(pid):
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{each}/task"):
                state = _computes(f"/proc/{each}/task/{thread}/stat")
                if state:
                    return True
                seen = seen or state is not None
    return False if seen else None


def has_stopped(pid: int) -> bool:
    """Return whether the first thread of a process is stopped, or has ended."""
    return _state(f"/proc/{pid}/stat") in _AT_REST


def family_has_stopped(pid: int) -> bool:
    """Return whether every thread of a process and of those below it is stopped, or has ended."""
    for each in family(pid):
        try:
            threads = os.listdir(f"/proc/{each}/task")
        except FileNotFoundError:
            continue
        for thread in threads:
            state = _state(f"/proc/{each}/task/{thread}/stat")
            if state is not None and state not in _AT_REST:
                return False
    return True


def held_files(pid: int, places: tuple[str, ...], locks_max: int) -> HeldFiles:
    """Look at what a stopped process holds below `places` of its own root.

    A file is kept by a descriptor, by a mapping, and by a call that waits while another thread closes its descriptor:
    of the calls of full Python that is flock(2) alone, and who waits for a lock waits for another descriptor of its
    file. The size of what only a mapping keeps is seen with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. Locks are counted
    to `locks_max` and one more. Raises OSError.
    """
    thread = _living_thread(pid)
    if thread is None:
        return HeldFiles()
    try:
        return _held_files(thread, pid, places, locks_max)
    except (FileNotFoundError, ProcessLookupError):
        if _state(f"{thread}/stat") in _STOPPED:
            raise
        return HeldFiles()  # it is being ended


def _held_files(thread: str, pid: int, places: tuple[str, ...], locks_max: int) -> HeldFiles:
    removed: dict[int, int | None] = {}
    devices = {os.stat(f"{thread}/root{place}").st_dev for place in places}
    for name in os.listdir(f"{thread}/fd"):
        status = os.stat(f"{thread}/fd/{name}")
        if status.st_dev in devices and not status.st_nlink:
            removed[status.st_ino] = status.st_blocks * _BLOCK_BYTES
    mapped: set[int] = set()
    below = tuple(os.fsencode(f"{place}/") for place in places)
    with open(f"{thread}/maps", "rb") as maps:
        for line in maps:
            area, rights, _offset, _device, inode, *path = line.rstrip(b"\n").split(maxsplit=5)
            if not path or not path[0].startswith(below):
                continue
            if rights[1:2] == b"w" and rights[3:4] == b"s":
                mapped.add(int(inode))
            if path[0].endswith(_DELETED) and int(inode) not in removed:
                removed[int(inode)] = _removed_bytes(thread, area)
    return HeldFiles(removed, mapped, _record_locks(pid, locks_max))


def _record_locks(pid: int, most: int) -> int:
    """Count the record locks of a process, to `most` and one more: to list them all keeps all others from locking."""
    count = 0
    with open("/proc/locks", "rb") as locks:
        for line in locks:
            # "7: POSIX  ADVISORY  WRITE 812 00:32:2335489 0 EOF", with an arrow before what waits.
            if b"POSIX" in line and int(line.split()[-4]) == pid:
                count += 1
                if count > most:
                    break
    return count


def _living_thread(pid: int) -> str | None:
    """Return the place of a thread that has the files of its process yet: the first one may end before the others."""
    with suppress(FileNotFoundError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            state = _state(f"/proc/{thread}/stat")
            if state is not None and state not in _ENDED:
                return f"/proc/{thread}"
    return None


def _removed_bytes(thread: str, area: bytes) -> int | None:
    """Return what a removed file takes that is mapped at an area, or None where this process may not see it."""
    name = "-".join(f"{int(end, 16):x}" for end in area.split(b"-"))
    try:
        status = os.stat(f"{thread}/map_files/{name}")
    except PermissionError:
        return None
    return 0 if status.st_nlink else status.st_blocks * _BLOCK_BYTES


def signal_family(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and all below it; those that have ended are left out."""
    for each in family(pid):
        with suppress(OSError):
            descriptor = os.pidfd_open(each)
            try:
                signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def _computes(stat: str) -> bool | None:
    state = _state(stat)
    return None if state is None else state in _COMPUTING


def _state(stat: str) -> int | None:
    """Return the letter that says what a thread does, or None where it has ended."""
    try:
        descriptor = os.open(stat, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, 512)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    # "pid (comm) state …", where the name may hold anything, a parenthesis too.
    after = data.rpartition(b") ")[2]
    return after[0] if after else None


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                yield from map(int, file.read().split())
