"""Turns to run, shared fairly between callers: who has the fewest is served next, whoever else waits."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """At most `maximum` turns at once.

    A free turn goes to the waiting caller that has the fewest turns now, of equals to the one that had none for the
    longest time. So a caller with hundreds of jobs delays the one job of another until the first running one ends. The
    jobs of one caller are served in their order. Belongs to one event loop.
    """

    def __init__(self, maximum: int) -> None:
        self.free = maximum
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the caller that had none for longest first

    @property
    def running(self) -> int:
        """How many turns are taken."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return sum(not each.done() for queue in self._waiting.values() for each in queue)

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        await self._take(caller)
        try:
            yield
        finally:
            self._give_back(caller)

    async def _take(self, caller: str) -> None:
        if self.free:
            self.free -= 1
            self._running[caller] += 1
            return
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(served)
        try:
            await served
        except asyncio.CancelledError:
            if served.cancelled():
                self._leave(caller, served)
            else:  # the turn came in the same moment
                self._give_back(caller)
            raise

    def _leave(self, caller: str, served: asyncio.Future[None]) -> None:
        queue = self._waiting.get(caller)
        if queue is not None and served in queue:
            queue.remove(served)
            if not queue:
                del self._waiting[caller]

    def _give_back(self, caller: str) -> None:
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        self.free += 1
        if caller in self._waiting:
            self._waiting[caller] = self._waiting.pop(caller)
        self._serve()

    def _serve(self) -> None:
        """Hand the free turn to who is next, if anybody waits."""
        for caller in sorted(self._waiting, key=self._running.__getitem__):
            queue = self._waiting.pop(caller)
            while queue:
                served = queue.popleft()
                if not served.done():  # else it was cancelled a moment ago
                    self.free -= 1
                    self._running[caller] += 1
                    served.set_result(None)
                    if queue:
                        self._waiting[caller] = queue
                    return
