"""The processor time of a server and of all processes that it starts, whoever waits for them.

Where a control group can be made (cgroups(7): version 2, or cpuacct of version 1), a server runs in one of its own,
whose time counts what has ended too. Elsewhere it is summed over the processes that run and what they waited for
(proc(5), stat: in ticks of 10 ms, and without a process whose parent ended first).
"""

from __future__ import annotations

import itertools
import os
import time
from contextlib import suppress
from pathlib import Path

import psutil

_ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
_REST_SECONDS = 0.02
_REST_SHARE = 0.02
_END_SECONDS = 5.0
_numbers = itertools.count()


def own_seconds(pid: int) -> float:
    """Return the processor seconds of one process with all its threads: its clock, as in clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def _parent() -> tuple[Path, str] | None:
    """Return a folder of control groups in which this process may make some, and the file in which their time stands."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _number, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _device, folder, kind, options, *_rest = line.split()
        for wanted, controller, file in (("cgroup2", "", "cpu.stat"), ("cgroup", "cpuacct", "cpuacct.usage")):
            if kind != wanted or (controller and controller not in options.split(",")):
                continue
            for parent in (Path(folder, own.get(controller, "")), Path(folder)):
                probe = parent / f"gate-{os.getpid()}-probe"
                with suppress(OSError):
                    probe.mkdir()
                    try:
                        if (probe / file).exists():
                            return parent, file
                    finally:
                        probe.rmdir()
    return None


PARENT = _parent() if os.path.exists("/proc/self/cgroup") else None
HOW = "rusage and /proc of the process tree" if PARENT is None else f"a control group ({PARENT[1]})"


class Family:
    """The processes of one server. `pid` is set once it runs."""

    def __init__(self) -> None:
        self.pid = 0
        self._group = None
        if PARENT is not None:
            self._group = PARENT[0] / f"gate-{os.getpid()}-{next(_numbers)}"
            self._group.mkdir()

    def command(self, command: list[str]) -> list[str]:
        """Return the command that runs another one in this family."""
        return command if self._group is None else ["sh", "-c", _ENTER, str(self._group), *command]

    def seconds(self) -> float:
        """Return the processor seconds of all its processes so far."""
        if self._group is None or PARENT is None:
            return self._by_processes()
        text = (self._group / PARENT[1]).read_text()
        if PARENT[1] == "cpuacct.usage":
            return int(text) / 1e9
        return int(text.split()[1]) / 1e6

    def _by_processes(self) -> float:
        total = 0.0
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.pid)
            for each in (root, *root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    total += sum(each.cpu_times()[:4])
        return total

    def rest(self, seconds_max: float = 1.0) -> float:
        """Wait until its processes have come to rest, for so long at most; return the processor seconds until then."""
        ends = time.monotonic() + seconds_max
        before = self.seconds()
        while time.monotonic() < ends:
            time.sleep(_REST_SECONDS)
            now = self.seconds()
            if now - before < _REST_SECONDS * _REST_SHARE:
                return now
            before = now
        return before

    def end(self) -> None:
        """Remove what it needed, once its processes have ended."""
        ends = time.monotonic() + _END_SECONDS
        while self._group is not None and time.monotonic() < ends:
            with suppress(OSError):
                self._group.rmdir()
                return
            time.sleep(_REST_SECONDS)
