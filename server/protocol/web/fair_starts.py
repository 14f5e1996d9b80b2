"""Begins a few HTTP requests at a time, those of each tenant and each of its callers in turns.

The work on a request is spread over rounds of the event loop, a dozen and more. Beginning a few in every round would
have dozens at work at once: each round is long then, and a call with many rounds waits for all that others begin
meanwhile. So a few begin, and the next few after as many rounds as those need. What waits here is shared by tenant.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from ....sandbox.job import Owner
from ...identity import identity_in
from .caller_turns import CallerTurns
from .callers import header, owner_of

_AT_ONCE = 4
"""Requests that begin in one round. The SDK works on each for about a millisecond before it waits for its run."""
ROUNDS = 16
"""Rounds of the event loop until the next few begin. In a loop that is idle they take a fraction of a millisecond."""


class FairStarts:
    """An ASGI app before another, which hundreds of requests at once would keep from everything else.

    Belongs to one event loop. Not a security boundary: `scopes` decides what a caller may read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = CallerTurns()
        self._begun = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, after those of other callers that have waited longer."""
        if scope["type"] == "http":
            await self._turn(scope)
        await self._app(scope, receive, send)

    async def _turn(self, scope: Scope) -> None:
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._watch, ROUNDS)
        self._begun += 1
        if self._begun > _AT_ONCE:
            await self._turns.wait(_owner_of(scope))

    def _watch(self, rounds: int) -> None:
        if rounds > 1:
            asyncio.get_running_loop().call_soon(self._watch, rounds - 1)
        else:
            self._next()

    def _next(self) -> None:
        self._begun = 0
        while self._begun < _AT_ONCE and self._turns.serve_next():
            self._begun += 1
        if self._turns:
            self._begun = _AT_ONCE  # who comes now is behind those that wait
        if self._begun:
            asyncio.get_running_loop().call_soon(self._watch, ROUNDS)


def _owner_of(scope: Scope) -> Owner:
    """Return whose request it is; callers without credentials differ by their MCP sessions here."""
    session = header(scope, b"mcp-session-id")
    if session is not None and identity_in(scope) is None and header(scope, b"authorization") is None:
        return Owner(caller=session.decode("latin-1"))
    return owner_of(scope)
