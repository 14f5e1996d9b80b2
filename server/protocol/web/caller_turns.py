"""Who is next of those that wait, each caller in turns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable


class CallerTurns:
    """Those that wait, by their callers. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}  # who is next first

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self, caller: Hashable) -> None:
        """Wait until `serve_next` comes to this one."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        await turn

    def serve_next(self) -> bool:
        """Let the next one go on; return whether there was one that still waited."""
        while self._waiting:
            caller = next(iter(self._waiting))
            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
                return True
        return False
