"""Gives large messages to the SDK one after another, with time for everything else between two.

The SDK decodes and validates a message in the event loop. One within `message_bounds` takes up to a tenth of a second
there, and many in a row would keep a short call of another caller, which needs a dozen rounds of the loop, for seconds.
"""

from __future__ import annotations

import asyncio

from ...fair_line import Owner
from .caller_turns import CallerTurns

_ROUNDS = 8
"""Rounds of the event loop in which the work on one message is done."""
_SHARE_OF_OTHERS = 3
"""How long others have the loop after a message, as a multiple of the time that it took."""
_PAUSE_SECONDS_MAX = 1.0


class LargeBodies:
    """Turns to have a large message decoded. Belongs to one event loop."""

    def __init__(self) -> None:
        self._turns = CallerTurns()
        self._is_taken = False

    async def turn(self, owner: Owner) -> None:
        """Wait for the turn to go on with a large message, after those of other callers that have waited longer."""
        if self._is_taken:
            await self._turns.wait(owner)
        else:
            self._begin()

    def _begin(self) -> None:
        self._is_taken = True
        loop = asyncio.get_running_loop()
        loop.call_soon(self._watch, loop.time(), _ROUNDS)

    def _watch(self, since: float, rounds: int) -> None:
        loop = asyncio.get_running_loop()
        if rounds:
            loop.call_soon(self._watch, since, rounds - 1)
        else:
            loop.call_later(min((loop.time() - since) * _SHARE_OF_OTHERS, _PAUSE_SECONDS_MAX), self._next)

    def _next(self) -> None:
        self._is_taken = False
        if self._turns.serve_next():
            self._begin()
