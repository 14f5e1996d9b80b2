"""A share of the processors for each replica, by the kernel's control groups: so that one more replica adds some."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .report import LeftOutError

_PERIOD_US = 100_000
_ROOT = Path("/sys/fs/cgroup")


@contextmanager
def share_of_processors(name: str, processors: float) -> Iterator[list[str]]:
    """Make a control group and give the command that runs its arguments in it (cgroups(7), version 1 or 2).

    Raises `LeftOutError` where none can be made.
    """
    unified = (_ROOT / "cgroup.controllers").exists()
    group = (_ROOT if unified else _ROOT / "cpu") / f"sealab-{os.getpid()}-{name}"
    quota = int(processors * _PERIOD_US)
    try:
        group.mkdir()
    except OSError as error:
        raise LeftOutError(f"no control group can be made here: {error}") from None
    try:
        try:
            if unified:
                (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
        except OSError as error:
            raise LeftOutError(f"no control group with a quota can be made here: {error}") from None
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        # A group goes when its last process is reaped; one that cannot go now holds nothing but its name.
        with suppress(OSError):
            group.rmdir()
