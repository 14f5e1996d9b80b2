"""Bounds the pools of threads that libraries make for computing, and their memory: BLAS, polars, Arrow, DuckDB.

A zygote has one thread, so it loads BLAS with one. In a worker, which knows how many runs compute beside it, there may
be more: OpenBLAS is set by its own function, the others read the environment when they make their pool, at first use.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

VARIABLES: Final = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
    "SLURM_CPUS_ON_NODE",
)
"""Each library reads its own; Arrow reads that of OpenMP, and joblib that of loky.

DuckDB has no variable of its own. For the setting `threads` of a database it takes what a batch system gave, else all
processors that it sees (its source, `DBConfig::GetSystemMaxThreads`).
"""
MEMORY_VARIABLES: Final = ("SLURM_MEM_PER_NODE", "POLARS_OVERRIDE_TOTAL_MEMORY_MB")
"""Megabytes, of which DuckDB (`DBConfig::GetSystemAvailableMemory`) and polars hold a part before they use the disk.

DuckDB goes by the memory of the machine without it, and a sort of more than a run's memory ends in an error.
"""
_OWN_BYTES: Final = 160 * 1024 * 1024
"""What they take beside what they count: their data, stacks of their threads, pieces of blocks."""

_OPENBLAS: Final = tuple(
    f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "", "_64")
)
"""The names that builds give the function `openblas_set_num_threads` (its README, "Setting the number of threads")."""


class ThreadPools:
    """The pools of one process."""

    def __init__(self) -> None:
        self._blas: list[Callable[[int], object]] = []
        self._bounds = (1, 0)

    def find(self) -> None:
        """Find the BLAS libraries that are loaded, while /proc can be read (proc(5), maps)."""
        if sys.platform != "linux":
            return
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            files = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "openblas" in line}
        for file in sorted(files):
            with suppress(OSError):
                library = ctypes.CDLL(file)
                self._blas += [getattr(library, name) for name in _OPENBLAS if hasattr(library, name)][:1]

    def bound(self, threads: int, memory_bytes: int) -> None:
        """Let each pool have at most so many threads, and hold what fits a run's memory.

        A pool that was made already keeps the threads that it has.
        """
        if (threads, memory_bytes) == self._bounds:
            return
        self._bounds = threads, memory_bytes
        megabytes = max(memory_bytes // 4, memory_bytes - _OWN_BYTES) // 1_000_000
        os.environ.update(dict.fromkeys(VARIABLES, str(threads)))
        os.environ.update(dict.fromkeys(MEMORY_VARIABLES, str(megabytes)))
        for set_threads in self._blas:
            set_threads(threads)
        with suppress(Exception):  # whatever the code has made of the modules
            if (arrow := sys.modules.get("pyarrow")) is not None:
                arrow.set_cpu_count(threads)
        with suppress(Exception):
            if (config := sys.modules.get("polars.config")) is not None:
                config.plr.config_reload_env_vars()  # it read them when the zygote imported it
