"""Who is next of those that wait, each tenant in its turn, and in it each caller."""

from __future__ import annotations

import asyncio

from ....sandbox.job import Owner
from ...fair_line import FairLine


class CallerTurns:
    """Those that wait, by their callers. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: FairLine[asyncio.Future[None]] = FairLine()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self, owner: Owner) -> None:
        """Wait until `serve_next` comes to this one."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.put(owner, turn)
        await turn

    def serve_next(self) -> bool:
        """Let the next one go on; return whether there was one that still waited."""
        while self._waiting:
            turn = self._waiting.take()
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
                return True
        return False
