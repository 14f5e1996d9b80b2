"""A server whose wall clock can be set without touching the machine's: `clocked.py ARGUMENTS…` is `sealab ARGUMENTS…`.

The file that `CLOCK_VARIABLE` names holds by how many seconds it is off, as `set_clock` writes it. That is heard of by
what asks with `time.time` or `time.time_ns`, as all of the server does that computes with the time; `datetime.now`, which
only dates what is stored, and the kernel, which notes the times of files, do not hear of it.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from pathlib import Path

CLOCK_VARIABLE = "SEALABTEST_CLOCK"
_SECONDS = struct.Struct("=d")


def set_clock(file: Path, seconds: float) -> None:
    """Set the wall clock of the servers that watch this file so many seconds off."""
    file.touch()
    with file.open("r+b") as written:
        written.write(_SECONDS.pack(seconds))


def _watch(path: str) -> None:
    with open(path, "rb") as file:
        shared = mmap.mmap(file.fileno(), _SECONDS.size, access=mmap.ACCESS_READ)
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + _SECONDS.unpack(shared)[0]
    time.time_ns = lambda: now_ns() + int(_SECONDS.unpack(shared)[0] * 1e9)


if __name__ == "__main__":
    _watch(os.environ[CLOCK_VARIABLE])
    from sealab.server.cli import main

    sys.exit(main())
