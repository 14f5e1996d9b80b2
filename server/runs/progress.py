"""Tells a client how a run is getting on: the time it has taken, and what the tools it called say of themselves."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from ..caller import RUNNING, Progress

EVERY_SECONDS = 1.0
_AT_LEAST_SECONDS = 0.1


@dataclass(slots=True)
class ProgressReporter:
    """Tells about once a second, for as long as the context lasts, and when `tell` is called; without `to`, nobody.

    Most runs are over long before the first second is: to them it is a timer that is set and taken back.
    """

    to: Progress | None
    timeout_seconds: float
    _began: float = field(default_factory=time.monotonic)
    _told: float = 0.0
    _timer: asyncio.TimerHandle | None = None
    _telling: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        if self.to is not None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._telling is not None:
            self._telling.cancel()

    async def tell(self, message: str) -> None:
        """Tell what is going on; what comes too thick and fast is left out."""
        now = time.monotonic()
        if self.to is not None and now - self._told >= _AT_LEAST_SECONDS:
            self._told = now
            await self.to(round(now - self._began, 3), self.timeout_seconds, message)

    def _begin(self) -> None:
        self._telling = asyncio.create_task(self._go_on())

    async def _go_on(self) -> None:
        while self.to is not None:
            await self.to(round(time.monotonic() - self._began, 3), self.timeout_seconds, RUNNING)
            await asyncio.sleep(EVERY_SECONDS)
