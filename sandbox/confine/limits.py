"""What a worker may use of the machine, as resource limits of its process (setrlimit(2)).

A spare is made before its job is known: `bequeath` and `Bounds.stand` set what the operator allows at most, and
`Bounds.lower` goes down to what the job asked for; nothing here can raise a hard limit. Memory is RLIMIT_AS, counted
above the address space that the warm zygote itself has, since it is the one limit that turns every memory bomb into a
clean MemoryError.
"""

from __future__ import annotations

import mmap
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass, replace

from ..errors import LevelMissing
from ..job import Isolation, Json, Limits

MIB = 1024 * 1024

STACK_BYTES = 256 * MIB
"""The stack of the zygote and its workers: room for the deepest recursion that the dialect allows."""

REPORT_RESERVE_BYTES = 32 * MIB
RESERVE_SHARE = 10
"""What stays between the soft and the hard memory limit, so that a run out of memory can still be reported: at most the
one, and a tenth of the memory, since native code can raise the soft limit to the hard one."""

CONTAINED_PROCESSES_MAX = 1024
"""The resource limit of processes and threads in a container, below which the container's own limit lies."""

NOT_SETTABLE = (
    "The layer limits cannot be set up: setrlimit(2) says {}. Allow setrlimit and prlimit64 to this process, for "
    "instance in the seccomp profile that it runs under."
)

_OOM_SCORE = 800
"""Of 1,000, which the kernel ends first (proc(5), oom_score_adj)."""
_UNLIMITED = resource.RLIM_INFINITY
_OPENED: list[tuple[int, int]] = []
"""The memory limit to set when the reserve is needed, as setrlimit wants it: then no byte may be left to make it of."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one process may use, as numbers for the kernel; `memory_bytes` counts above the zygote's own.

    `cpu_seconds` is None in a session, where one process serves many calls and the parent meters each.
    """

    memory_bytes: int
    processes: int
    open_files: int
    file_bytes: int
    output_bytes: int
    cpu_seconds: int | None = None

    @classmethod
    def of(cls, limits: Limits, *, session: bool, processes: int = 0) -> Allowance:
        """Return what a job's limits mean for its process.

        `processes` is 0 where code cannot start any. The CPU time is a net below the wall clock, which stops a run
        earlier.
        """
        return cls(
            memory_bytes=limits.memory_mb * MIB,
            processes=processes,
            open_files=limits.open_files_max,
            file_bytes=limits.file_size_mb * MIB,
            output_bytes=limits.output_bytes_max,
            cpu_seconds=None if session else int(limits.timeout_seconds) + 2,
        )

    def to_json(self) -> dict[str, Json]:
        """Write it for a frame."""
        return {name: getattr(self, name) for name in self.__slots__}


def processes_of(isolation: Isolation, limits: Limits) -> int:
    """Return how many processes and threads code may have: none of its own where the dialect has no threads.

    A container's own limit counts those in it alone, while the kernel counts a resource limit over all containers of
    the same user; so there it only stands in where the container has no limit, and is set when that is made.
    """
    match isolation:
        case Isolation.RESTRICTED:
            return 0
        case Isolation.PROCESS:
            return limits.pids_max
        case Isolation.CONTAINER:
            return CONTAINED_PROCESSES_MAX


class AddressSpace:
    """Measures the address space of this process (proc(5), statm), also after it has lost sight of /proc."""

    def __init__(self) -> None:
        self._file = open("/proc/self/statm", "rb", buffering=0) if sys.platform == "linux" else None  # noqa: SIM115

    def bytes(self) -> int | None:
        """Give its size now, or None where the system does not say."""
        if self._file is None:
            return None
        self._file.seek(0)
        return int(self._file.read().split()[0]) * mmap.PAGESIZE


def reserve_bytes(memory_bytes: int) -> int:
    """Return how much memory beyond its own a job with so much has for its report."""
    return min(REPORT_RESERVE_BYTES, memory_bytes // RESERVE_SHARE)


def bequeath(most: Allowance, own_bytes: int | None, output_bytes: int, *, native: bool) -> Bounds:
    """Set, in the zygote, those limits of a spare that a zygote can live with too, so that its workers inherit them.

    `most` is what a job may ask for at most. `own_bytes` is the address space that this process has now, or None where
    it cannot be limited, and `output_bytes` what a worker maps of its output. `native` says that code can make system
    calls of its own.

    Raises `LevelMissing` where this process may not even lower a limit: then no worker of it would have any.
    """
    try:
        _set(resource.RLIMIT_CORE, 0)
    except (OSError, ValueError) as error:
        raise LevelMissing(NOT_SETTABLE.format(error)) from None
    _set(resource.RLIMIT_STACK, STACK_BYTES)
    standing = replace(
        most,
        processes=_at_most(most.processes, resource.getrlimit(resource.RLIMIT_NPROC)[1]),
        open_files=_at_most(most.open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        file_bytes=_set(resource.RLIMIT_FSIZE, most.file_bytes),
    )
    base_bytes = None if own_bytes is None else own_bytes + output_bytes
    _set_memory(standing, base_bytes)
    return Bounds(standing, base_bytes, native)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What holds in one worker: `standing` until it has a job, and then what that asked for.

    `base_bytes` is the address space that the process has before any job, or None where it cannot be limited. `native`
    code can raise each soft limit to the hard one.
    """

    standing: Allowance
    base_bytes: int | None
    native: bool

    def apply(self) -> None:
        """Set those limits of a spare that it did not inherit."""
        processes, open_files = self.standing.processes, self.standing.open_files
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))

    def lower(self, allowance: Allowance, *, session: bool, first: bool = True) -> None:
        """Go down to what a job asked for.

        In a session only the soft memory limit goes down, as the next call may ask for more; but with native code the
        first call settles the hard limit too.
        """
        if session:
            _set_memory(allowance, self.base_bytes, keep_hard=not (self.native and first))
            return
        if allowance.processes < self.standing.processes:
            _set(resource.RLIMIT_NPROC, allowance.processes)
        if allowance.open_files < self.standing.open_files:
            _set(resource.RLIMIT_NOFILE, allowance.open_files)
        if allowance.file_bytes < self.standing.file_bytes:
            _set(resource.RLIMIT_FSIZE, allowance.file_bytes)
        _set_memory(allowance, self.base_bytes)
        if allowance.cpu_seconds is not None:
            # Soft and hard are the same: PID 1 of a pid namespace ignores SIGXCPU, which comes at the soft one.
            _set(resource.RLIMIT_CPU, allowance.cpu_seconds)


def prefer_for_oom_kill() -> None:
    """Make the kernel end this process, and those that it forks, before their host when memory runs out (proc(5))."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
        if int(file.read()) < _OOM_SCORE:
            file.seek(0)
            file.write(str(_OOM_SCORE))


def open_reserve() -> None:
    """Let this process use its last memory, to report that the rest is used up. Needs none itself."""
    if _OPENED:
        resource.setrlimit(resource.RLIMIT_AS, _OPENED[0])


def _set_memory(allowance: Allowance, base_bytes: int | None, *, keep_hard: bool = False) -> None:
    if base_bytes is None:
        return
    old_hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = _at_most(base_bytes + allowance.memory_bytes, old_hard)
    hard = old_hard if keep_hard else _at_most(soft + reserve_bytes(allowance.memory_bytes), old_hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    _OPENED[:] = [(hard, hard)]


def _set(limit: int, value: int) -> int:
    if value:
        value = _at_most(value, resource.getrlimit(limit)[1])
    resource.setrlimit(limit, (value, value))
    return value


def _at_most(value: int, hard: int) -> int:
    return value if hard == _UNLIMITED else min(value, hard)
