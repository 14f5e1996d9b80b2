"""The requests that are being worked on: each for its owner, refused at a stop, ended when no longer awaited.

A middleware of the SDK, the outermost one, over both transports and in both protocol eras.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anyio import CancelScope
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED

from ...base.host_work import OWNER
from ...governance.scopes import owner_of

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

PEER = "sealab.peer"
"""Where the ASGI scope of an HTTP request has its `Peer`."""
STOPPING = "The server is stopping and takes no new work. Call again when it is back."
_END_SECONDS = 1.0
"""How long work that was ended may take to let go."""
_CALL = "tools/call"
_ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that end only when their caller or the server does; nothing waits for them."""
_RESULT_TYPE_SINCE = "2026-07-28"
"""The first version of the protocol in which a result says of what type it is."""


LASTING_SECONDS = 60.0
"""How long a run goes on whose stream broke, and how long a call sent again joins it."""


@dataclass(slots=True, eq=False)
class Peer:
    """A waiting request, and the work that is done for it. `runs` are those that outlast a break of its stream.

    `broke_at` is when its stream broke before its answer was sent, in seconds of the event loop.
    """

    gone: bool = False
    works: set[CancelScope] = field(default_factory=set)
    runs: set[asyncio.Future[Any]] = field(default_factory=set)
    broke_at: float | None = None
    left: list[Callable[[], None]] = field(default_factory=list)
    """Called once it has left."""

    @classmethod
    def of(cls, request: object) -> Peer:
        """Return that of an HTTP request; what came over the standard streams has one that never breaks."""
        peer = getattr(request, "scope", {}).get(PEER)
        return peer if isinstance(peer, cls) else cls(gone=True)

    async def broken(self) -> None:
        """Note that the stream broke, and return once its runs have ended, or `LASTING_SECONDS` later."""
        now = asyncio.get_running_loop().time()
        self.broke_at = now if self.broke_at is None else self.broke_at
        if self.runs:
            await asyncio.wait(set(self.runs), timeout=max(self.broke_at + LASTING_SECONDS - now, 0))

    def leave(self) -> None:
        """End the work: its answer can no longer be delivered. May be called twice."""
        self.gone = True
        for work in self.works:
            work.cancel()
        while self.left:
            self.left.pop()()


@dataclass(eq=False, slots=True)
class _Open:
    """One message that is being worked on."""

    awaited: bool
    work: CancelScope = field(default_factory=CancelScope)


class OpenRequests:
    """Counts the messages that are being worked on, and ends requests whose caller has gone or whose time is up."""

    def __init__(self) -> None:
        self._open: set[_Open] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._ended_after: float | None = None
        self._draining = False

    def idle(self) -> bool:
        """Return whether there is none."""
        return not self._open

    async def drain(self, seconds: float, hurry: asyncio.Future[None]) -> None:
        """Take no more calls, wait for the requests at work, at most so long or until hurried, and end what is left.

        Calls that come back with a user's answer go on: they are at work already.
        """
        self._draining = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        quiet = asyncio.ensure_future(self._quiet.wait())
        either: set[asyncio.Future[Any]] = {quiet, hurry}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        self._ended_after = loop.time() - began
        for each in self._open:
            each.work.cancel()
        await asyncio.wait({quiet}, timeout=_END_SECONDS)
        quiet.cancel()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Work on one message."""
        params = ctx.params or {}
        if ctx.method == _CALL and (self._ended_after is not None or (self._draining and "requestState" not in params)):
            return _answer(ctx, STOPPING)
        peer: Peer | None = None if ctx.request_id is None else getattr(ctx.request, "scope", {}).get(PEER)
        one = _Open(awaited=ctx.request_id is not None and ctx.method not in _ENDLESS)
        self._open.add(one)
        if one.awaited:
            self._quiet.clear()
        if peer is not None:
            peer.works.add(one.work)
            if peer.gone:
                one.work.cancel()
        owner = OWNER.set(owner_of(ctx))
        try:
            with one.work:
                return await call_next(ctx)
        finally:
            OWNER.reset(owner)
            self._open.discard(one)
            if not any(each.awaited for each in self._open):
                self._quiet.set()
            if peer is not None:
                peer.works.discard(one.work)
        if self._ended_after is None:
            return _answer(ctx, "The connection was closed and the call ended. Call again.")
        return _answer(
            ctx,
            f"The server is stopping and ended this call after {self._ended_after:.0f} s more. What it had done by "
            "then, calls of other tools included, may stand: look before you call again.",
        )


def _answer(ctx: ServerRequestContext[Any, Any], text: str) -> dict[str, Any]:
    """Return a tool error, or raise `MCPError` where the request is not a call of a tool."""
    if ctx.method != _CALL:
        raise MCPError(CONNECTION_CLOSED, text)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    return {**result, "resultType": "complete"} if ctx.protocol_version >= _RESULT_TYPE_SINCE else result
