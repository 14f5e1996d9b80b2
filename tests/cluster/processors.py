"""A share of the processors for each replica, by the kernel's control groups: so that one more replica adds some."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .report import LeftOutError

_PERIOD_US = 100_000
_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Share:
    """A control group: the command that runs its arguments in it, and what they and all below them have used."""

    launcher: tuple[str, ...]
    _usage: Path

    def used_seconds(self) -> float:
        """Return the CPU seconds of all that ever ran in it."""
        told = self._usage.read_text().split()
        return int(told[1]) / 1e6 if told[0] == "usage_usec" else int(told[0]) / 1e9


@contextmanager
def share_of_processors(name: str, processors: float) -> Iterator[Share]:
    """Make a control group with a part of the processors (cgroups(7), version 1 or 2).

    Raises `LeftOutError` where none can be made.
    """
    unified = (_ROOT / "cgroup.controllers").exists()
    group, *counted = (
        (_ROOT if unified else _ROOT / kind) / f"sealab-{os.getpid()}-{name}"
        for kind in (("",) if unified else ("cpu", "cpuacct"))
    )
    quota = int(processors * _PERIOD_US)
    groups = list(dict.fromkeys(each.resolve() for each in (group, *counted)))  # both may be one hierarchy
    try:
        try:
            for each in groups:
                each.mkdir()
        except OSError as error:
            raise LeftOutError(f"no control group can be made here: {error}") from None
        try:
            if unified:
                (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
        except OSError as error:
            raise LeftOutError(f"no control group with a quota can be made here: {error}") from None
        enter = " && ".join(f"echo $$ > {each}/cgroup.procs" for each in groups)
        usage = group / "cpu.stat" if unified else groups[-1] / "cpuacct.usage"
        yield Share(("sh", "-c", f'{enter} && exec "$@"', "sh"), usage)
    finally:
        # A group goes when its last process is reaped; one that cannot go now holds nothing but its name.
        for each in groups:
            with suppress(OSError):
                each.rmdir()
