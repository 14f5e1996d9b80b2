"""HTTP requests and their answers: who awaits each, and an answer for each that is still open when the server ends.

`/healthz` is answered 200 while the process runs, `/readyz` 200 when a call would be taken, else 503 with the reason;
`/readyz?verbose` says how the upstream servers stand too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....governance.rights import REPLICA_PATH
from ..draining import PEER, STOPPING, Peer
from .error_responses import Answering, refusal

LAST_ANSWERS_SECONDS = 1.0
_RETRY_SECONDS = 5
_ENDED = "The server is stopping and ended this request. Send it again when it is back."


@dataclass(eq=False, slots=True)
class _Exchange:
    """One request that is not answered whole."""

    task: asyncio.Task[None]
    received: bool = False
    peer: Peer = field(default_factory=Peer)


class Exchanges:
    """An ASGI app before all others: it keeps every open request and can end them.

    `why_not_ready` says why a call would not be taken now, or None; `warning` what an operator should look at, or None;
    `upstreams` how the upstream servers stand.

    A request whose connection closes before its answer ends what is worked on for it, but for runs: these go on for
    `LASTING_SECONDS`, so that the call can be sent again. In 2026-07-28 a client cancels by closing the stream, which
    nothing tells from a stream that broke; MCP 2025-11-25 has a message for it, and a lost connection is none.
    """

    def __init__(
        self,
        app: ASGIApp,
        why_not_ready: Callable[[], str | None] = lambda: None,
        warning: Callable[[], str | None] = lambda: None,
        upstreams: Callable[[], Awaitable[Mapping[str, object]]] | None = None,
    ) -> None:
        self._app = app
        self._upstreams = upstreams
        self._warning = warning
        self._why_not_ready = why_not_ready
        self._open: set[_Exchange] = set()
        self._stopping = False
        self._ending = False

    def stop(self) -> None:
        """Open no more sessions."""
        self._stopping = True

    async def end(self, seconds: float, hurry: asyncio.Future[None]) -> None:
        """Let answers that are on their way be sent, for so long, and end whatever is open then.

        Hurried or not, they have `LAST_ANSWERS_SECONDS`.
        """
        answering = asyncio.gather(*(each.task for each in self._open if each.received), return_exceptions=True)
        either: set[asyncio.Future[Any]] = {answering, hurry}
        await asyncio.wait({answering}, timeout=LAST_ANSWERS_SECONDS)
        left = max(0.0, seconds - LAST_ANSWERS_SECONDS)
        await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self._ending = True
        for each in self._open:
            each.task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] == "/healthz":
            await Response(status_code=200)(scope, receive, send)
        elif scope["path"] == "/readyz":
            reason = STOPPING if self._stopping else self._why_not_ready()
            body: dict[str, object] = {"ready": True} if reason is None else {"ready": False, "reason": reason}
            if reason is None and (warning := self._warning()) is not None:
                body["warning"] = warning
            if self._upstreams is not None and scope["query_string"].partition(b"=")[0] == b"verbose":
                body["upstreams"] = await self._upstreams()
            status = 200 if reason is None else 503
            await Response(json.dumps(body), status, media_type="application/json")(scope, receive, send)
        elif self._ending or (self._stopping and _begins(scope)):
            await refusal(503, STOPPING, retry_after=_RETRY_SECONDS)(scope, receive, send)
        else:
            await self._exchange(scope, receive, send)

    async def _exchange(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None
        exchange = _Exchange(task)
        scope[PEER] = exchange.peer
        self._open.add(exchange)
        answer = Answering(send)

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                exchange.received = scope["method"] == "POST"
            if message["type"] == "http.disconnect" and not answer.is_complete:
                await exchange.peer.broken()
            return message

        try:
            await self._app(scope, received, answer.send)
        except asyncio.CancelledError:
            if not self._ending:
                raise
            await answer.end(refusal(503, _ENDED, retry_after=_RETRY_SECONDS), scope, receive)
        finally:
            self._open.discard(exchange)
            exchange.peer.leave()


def _begins(scope: Scope) -> bool:
    """Return whether a request would open an MCP session."""
    names = {key for key, _value in scope["headers"]}
    own = scope["method"] == "POST" and not names & {b"mcp-session-id", b"mcp-protocol-version"}
    return own and scope["path"] != REPLICA_PATH  # a request of another server is refused by what answers there
