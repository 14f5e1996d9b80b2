"""Reports the progress of a run to a client: what its code says, else the time it has taken and what its tools say.

The value never goes back (MCP, "Progress": the value must increase). Until the code says how far it is, the value is
seconds of all that the run may take. From then on it is the code's own share of a total that is 1, or more where
seconds were sent before.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

from ...governance.caller import RUNNING, OnProgress

EVERY_SECONDS = 1.0
_AT_LEAST_SECONDS = 0.1
_STEP = 0.001


@dataclass(slots=True)
class ProgressReporter:
    """Sends about once a second, from `begin` to `end`, and on `report_message`; without `to`, nothing.

    Most runs end before the first second does: for them it is a timer that is set and cancelled.
    """

    to: OnProgress | None
    timeout_seconds: float
    _began: float = field(default_factory=time.monotonic)
    _sent_at: float = 0.0
    _timer: asyncio.TimerHandle | None = None
    _elapsed: asyncio.Task[None] | None = None
    _value: float = 0.0
    _total: float | None = None
    _fraction: float = -1.0
    _latest: tuple[float, str] | None = None
    _sending: asyncio.Task[None] | None = None
    _flushing: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """Send about once a second from now on."""
        if self.to is not None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._start_sending)

    def end(self) -> None:
        """Send nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._elapsed, self._sending):
            if task is not None:
                task.cancel()
        # A task that was cancelled refers to its frame, and so to this: in a circle all of the request would live on
        # until the oldest objects are collected, which is rare under load.
        self._timer = self._elapsed = self._sending = None

    def report_progress(self, fraction: float, message: str) -> None:
        """Send how far the code says that it is; of several within a short time only the latest."""
        if self.to is None or fraction <= max(self._fraction, self._latest[0] if self._latest else -1.0):
            return
        self._latest = fraction, message
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_latest())

    async def flush(self) -> None:
        """Send at once what waits to be sent: the code has ended."""
        self._flushing.set()
        if self._sending is not None:
            await self._sending

    async def _send_latest(self) -> None:
        while self._latest is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._sent_at + _AT_LEAST_SECONDS - time.monotonic()):
                    await self._flushing.wait()
            await self._send_fraction()

    async def _send_fraction(self) -> None:
        if self.to is None or self._latest is None:
            return
        (self._fraction, message), self._latest = self._latest, None
        if self._total is None:
            # The least total of which this share is more than the seconds that were sent.
            self._total = 1.0 if not self._value else (self._value + _STEP) / max(self._fraction, _STEP)
        self._sent_at = time.monotonic()
        self._value = max(self._fraction * self._total, self._value)
        await self.to(self._value, self._total, message or RUNNING)

    async def report_message(self, message: str) -> None:
        """Send a message; what follows another too soon is left out."""
        now = time.monotonic()
        if self.to is not None and self._total is None and now - self._sent_at >= _AT_LEAST_SECONDS:
            self._sent_at = now
            await self._send_elapsed(message)

    def _start_sending(self) -> None:
        self._elapsed = asyncio.create_task(self._send_each_second())

    async def _send_each_second(self) -> None:
        while self._total is None:
            await self._send_elapsed(RUNNING)
            await asyncio.sleep(EVERY_SECONDS)

    async def _send_elapsed(self, message: str) -> None:
        if self.to is not None:
            self._value = round(time.monotonic() - self._began, 3)
            await self.to(self._value, self.timeout_seconds, message)
