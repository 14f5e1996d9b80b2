"""What the processes of a worker do at the moment, and how to stop them for a while, seen from the host (proc(5)).

Nothing here rests on what a worker says of itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

_COMPUTING = frozenset(b"RD")
"""States of a thread that uses a processor, waits for one, or waits for a disk."""
_AT_REST = frozenset(b"TtZXx")
"""States of a thread that is stopped or has ended."""


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
