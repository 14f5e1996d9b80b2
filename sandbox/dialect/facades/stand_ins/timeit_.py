"""`timeit` whose statements run under the dialect."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from ....guest import clock
from ....guest.guest import variables_of
from ...compiling import guarded_exec

__all__ = ["Timer", "default_timer", "repeat", "timeit"]

_Statement = str | Callable[[], object]
_Names = dict[str, Any] | None
default_timer = clock.monotonic
_LOOP = "def timed_loop(rounds):\n    for _ in rounds:\n{body}\n"
_RUNS_DEFAULT = 1_000_000


class Timer:
    """Times a statement, given as source or as a callable."""

    __slots__ = ("__dict__", "__weakref__", "_names", "_setup", "_statement", "_timer")

    def __init__(
        self,
        stmt: _Statement = "pass",
        setup: _Statement = "pass",
        timer: Callable[[], float] = default_timer,
        globals: _Names = None,  # noqa: A002 - Python's own parameter
    ) -> None:
        self._names = variables_of(sys._getframe()) if globals is None else globals
        self._setup = setup
        self._timer = timer
        self._statement = stmt

    def timeit(self, number: int = _RUNS_DEFAULT) -> float:
        """Return the seconds that `number` runs of the statement take; the setup runs once before, untimed."""
        rounds = itertools.repeat(None, number)
        names = dict(self._names)
        if callable(self._setup):
            self._setup()
        else:
            guarded_exec(self._setup, names)
        timer = self._timer
        if callable(self._statement):
            run = self._statement
            start = timer()
            for _ in rounds:
                run()
            return timer() - start
        body = "\n".join(f"        {line}" for line in self._statement.splitlines() or ["pass"])
        guarded_exec(_LOOP.format(body=body), names)
        loop: Callable[[object], object] = names["timed_loop"]
        start = timer()
        loop(rounds)
        return timer() - start

    def repeat(self, repeat: int = 5, number: int = _RUNS_DEFAULT) -> list[float]:
        """Return `timeit(number)`, `repeat` times."""
        return [self.timeit(number) for _ in range(repeat)]

    def autorange(self, callback: Callable[[int, float], object] | None = None) -> tuple[int, float]:
        """Raise the number of runs until they take 0.2 s; return the number and the seconds."""
        for number in (digit * 10**power for power in itertools.count() for digit in (1, 2, 5)):
            seconds = self.timeit(number)
            if callback is not None:
                callback(number, seconds)
            if seconds >= 0.2:  # noqa: PLR2004 - Python's own threshold
                return number, seconds
        raise AssertionError("counting never ends")


def timeit(
    stmt: _Statement = "pass",
    setup: _Statement = "pass",
    timer: Callable[[], float] = default_timer,
    number: int = _RUNS_DEFAULT,
    globals: _Names = None,  # noqa: A002 - Python's own parameter
) -> float:
    """Return the seconds that `number` runs of `stmt` take."""
    return Timer(stmt, setup, timer, globals).timeit(number)


def repeat(  # noqa: PLR0917 - Python's own signature
    stmt: _Statement = "pass",
    setup: _Statement = "pass",
    timer: Callable[[], float] = default_timer,
    repeat: int = 5,
    number: int = _RUNS_DEFAULT,
    globals: _Names = None,  # noqa: A002 - Python's own parameter
) -> list[float]:
    """Return `timeit(…)`, `repeat` times."""
    return Timer(stmt, setup, timer, globals).repeat(repeat, number)
