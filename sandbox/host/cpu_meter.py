"""What the workers of one run, and of what was run before it to rebuild its session, computed: cancelled or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class CpuUse:
    """CPU time in milliseconds; wall-clock time where the machine does not say."""

    ms: float = 0.0


_USE: ContextVar[CpuUse | None] = ContextVar("_USE", default=None)


@contextmanager
def metered() -> Iterator[CpuUse]:
    """Count what workers compute for the block."""
    use = CpuUse()
    before = _USE.set(use)
    try:
        yield use
    finally:
        _USE.reset(before)


def note_cpu(cpu_ms: float | None, duration_ms: float) -> None:
    """Note what one worker computed for one job, and how long that took."""
    use = _USE.get()
    if use is not None:
        use.ms += duration_ms if cpu_ms is None else cpu_ms
