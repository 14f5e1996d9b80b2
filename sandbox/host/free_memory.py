"""How much memory is left: of the machine, and of each control group that this process is in.

Sources: proc(5), the kernel's Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..confine import cgroups

_FRESH_SECONDS = 0.1
_UNLIMITED_FROM_BYTES = 1 << 60
"""Version 1 writes a number close to the largest one where there is no limit."""


@dataclass(frozen=True, slots=True)
class _Files:
    limit: str
    used: str
    reclaimable: str
    """What the kernel takes back from files when it is short, as a key of `memory.stat`."""


_VERSION_1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = _Files("memory.max", "memory.current", "inactive_file")


class Memory:
    """Reads what is left; one reading serves for a tenth of a second."""

    def __init__(self) -> None:
        self._groups: Sequence[tuple[str, _Files]] = [
            (folder, files)
            for folder in cgroups.memory_folders()
            for files in (_VERSION_1, _VERSION_2)
            if os.path.exists(os.path.join(folder, files.limit))
        ]
        self._free_bytes = 0
        self._read_at = float("-inf")

    def limit_bytes(self) -> int:
        """Return how much all processes together can have at most."""
        limits = [_physical_bytes()]
        for folder, files in self._groups:
            with suppress(OSError, ValueError):
                limits.append(_number(folder, files.limit))
        return min(limits)

    def free_bytes(self) -> int:
        """Return how much can still be had, in the control group or the machine that has least."""
        now = time.monotonic()
        if now - self._read_at > _FRESH_SECONDS:
            self._read_at = now
            left = [_available_bytes()]
            for folder, files in self._groups:
                with suppress(OSError, ValueError):
                    left.append(_left_bytes(folder, files))
            self._free_bytes = max(0, min(left))
        return self._free_bytes


def _left_bytes(folder: str, files: _Files) -> int:
    limit = _number(folder, files.limit)
    if limit >= _UNLIMITED_FROM_BYTES:
        return limit
    reclaimable = 0
    with open(os.path.join(folder, "memory.stat"), encoding="ascii") as file:
        for line in file:
            key, _, value = line.partition(" ")
            if key == files.reclaimable:
                reclaimable = int(value)
                break
    return limit - _number(folder, files.used) + reclaimable


def _number(folder: str, name: str) -> int:
    with open(os.path.join(folder, name), encoding="ascii") as file:
        text = file.read().strip()
    return _UNLIMITED_FROM_BYTES if text == "max" else int(text)


def _available_bytes() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return _physical_bytes()


def _physical_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
