"""Proves limits by running into them: in a throw-away child, which tries to have more than it may.

The same trials are made twice: of the container engine's limits, in a container of their own that has small ones, and
of the resource limits that each worker gets inside. This module imports nothing of sealab, as it also runs as a script
in images that hold nothing but Python.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

MIB = 1024 * 1024
TRIAL_MEMORY_MB = 64
TRIAL_PROCESSES = 16
TRIAL_CPUS = 0.1
ANSWER_HERE = b"answer here"

_SPAN_BYTES = 2 * TRIAL_MEMORY_MB * MIB
_FORKS = 2 * TRIAL_PROCESSES
_WAIT_SECONDS = 20.0
_CONTROL_FD = 3
"""As in `messages`, which this script cannot import."""
_BUSY_SECONDS = 0.03
"""More than TRIAL_CPUS has in one period of the kernel's, a tenth of a second; little, as others may be busy too."""
_STATISTICS = ("cpu.stat", "cpu/cpu.stat", "cpu,cpuacct/cpu.stat")
"""Below /sys/fs/cgroup, where a container sees its own control group (cgroups(7), version 2 and 1)."""


def inner_limits() -> dict[str, bool]:
    """Try resource limits as workers have them: which of "memory" and "processes" hold in this container."""
    return {"memory": not _can(_map_above_limit), "processes": not _can(_fork_above_limit)}


def engine_limits() -> dict[str, bool]:
    """Try the limits of a container that has those of the names above: which of them hold."""
    return {
        "memory": not _can(_touch_too_much),
        "processes": not _can(_fork_too_often),
        "cpus": _is_held_back_when_busy(),
    }


def _can(attempt: Callable[[], None]) -> bool:
    """Do it in a child: True if it succeeded, False if it was refused or killed for it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            attempt()
            os.write(writing, b"+")
        except (OSError, MemoryError):
            os.write(writing, b"-")
        finally:
            os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], _WAIT_SECONDS)
        # No answer in time is not proof that it was refused.
        return not ready or os.read(reading, 1) == b"+"
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _touch_too_much() -> None:
    with mmap.mmap(-1, _SPAN_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(0, _SPAN_BYTES, mmap.PAGESIZE):
            memory[page] = 1


def _fork_too_often() -> None:
    for _number in range(_FORKS):
        if os.fork() == 0:
            signal.pause()


def _is_held_back_when_busy() -> bool:
    """Return whether the kernel says that this container had to wait for processors."""
    until = time.process_time() + _BUSY_SECONDS
    while time.process_time() < until:
        pass
    for file in _STATISTICS:
        with suppress(OSError, KeyError, ValueError), open(f"/sys/fs/cgroup/{file}", encoding="ascii") as statistics:
            return int(dict(line.split() for line in statistics)["nr_throttled"]) > 0
    return False


def _map_above_limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_SPAN_BYTES, _SPAN_BYTES))
    mmap.mmap(-1, 2 * _SPAN_BYTES).close()


def _fork_above_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.fork() == 0:
        os._exit(0)


def _answer(text: str) -> None:
    """Write to a descriptor that the host has sent over the socket which it passed in, if there is one."""
    try:
        control = socket.socket(fileno=_CONTROL_FD)
    except OSError:
        print(text)  # noqa: T201 - its answer to the host
        return
    _data, (descriptor,), _flags, _address = socket.recv_fds(control, len(ANSWER_HERE), 1, socket.MSG_DONTWAIT)
    os.write(descriptor, text.encode())


if __name__ == "__main__":
    _answer(json.dumps(engine_limits()))
