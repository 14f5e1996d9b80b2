"""Request bodies: received whole before anything is done with them, within one bound on all bytes held at once.

One that would cost too much to decode is refused before the SDK sees it.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....sandbox.job import Owner
from ....tools_registry.json_lines import LARGE_CHARS
from ...errors import HostWorkBusy
from ..message_bounds import check_message
from .caller_turns import CallerTurns
from .callers import header, owner_of
from .error_responses import refusal

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


BODY_BYTES_MAX = 4 * 1024 * 1024
"""The largest body of one request."""
_FREE_BYTES = 64 * 1024
"""What each request may hold uncounted: so many bytes of each connection are bounded by how many of these there are."""
_RETRY_SECONDS = 1


class Bodies:
    """An ASGI app before another: it gives each request whole, and holds at most `total_bytes` of bodies.

    A body is held until its request is answered. A caller may hold as much as is still free (Choudhury and Hahne 1998,
    "Dynamic queue length thresholds for shared-memory packet switches"): alone a half, and however much others send,
    there is room for one that holds nothing yet. Of tenants each may hold as much as is still free, and each of its
    callers as much as its tenant may still take.
    """

    def __init__(self, app: ASGIApp, total_bytes: int) -> None:
        self._app = app
        self._free = total_bytes
        self._held: Counter[Owner] = Counter()
        self._large = LargeBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive the body of one request and pass it on. A peer that leaves before its end gets no answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return None
        owner = owner_of(scope)
        held = 0
        try:
            if _declared(scope) > BODY_BYTES_MAX:
                return await _too_large(scope, receive, send)
            body = bytearray()
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > BODY_BYTES_MAX:
                    return await _too_large(scope, receive, send, more=more)
                needed = len(body) - _FREE_BYTES - held
                if needed > 0:
                    if not self._reserve(owner, needed):
                        del body
                        return await self._too_much(owner, held)(scope, receive, send)
                    held += needed
            text = bytes(body)
            del body
            try:
                await check_message(text)
            except ValueError as error:
                return await _unfit(str(error))(scope, receive, send)
            except HostWorkBusy as error:
                return await refusal(503, str(error), retry_after=_RETRY_SECONDS)(scope, receive, send)
            if len(text) > LARGE_CHARS:
                await self._large.turn(owner)
            received = giving(text, receive)
            del text
            await self._app(scope, received, send)
        finally:
            self._give_back(owner, held)

    def _reserve(self, owner: Owner, count: int) -> bool:
        group = _group(owner)
        left = self._free - count - (self._held[group] + count)
        if left < 0 or (group != owner and self._held[owner] + count > left):
            return False
        self._free -= count
        for each in {owner, group}:
            self._held[each] += count
        return True

    def _give_back(self, owner: Owner, count: int) -> None:
        self._free += count
        for each in {owner, _group(owner)}:
            self._held[each] -= count
            if not self._held[each]:
                del self._held[each]

    def _too_much(self, owner: Owner, held: int) -> ASGIApp:
        for each, whose in ((owner, "caller"), (_group(owner), "tenant")):
            if self._held[each] > held:
                return refusal(
                    429,
                    f"The other requests of this {whose} hold as many bytes as one {whose} may send at once. Send this "
                    "one again when they are answered, or less at a time.",
                    retry_after=_RETRY_SECONDS,
                )
        return refusal(
            503,
            "The server holds as many bytes of requests as it may. Send this one again in a moment.",
            retry_after=_RETRY_SECONDS,
        )


def giving(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already as one message, and then what `receive` gives."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return whole.pop() if whole else await receive()

    return received


async def left(receive: Receive) -> None:
    """Return once the peer has gone whose body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _group(owner: Owner) -> Owner:
    """Return what shares the bytes with others alike: a tenant, or the caller itself where there is only one."""
    return Owner(owner.tenant) if owner.tenant else owner


def _declared(scope: Scope) -> int:
    length = header(scope, b"content-length")
    return int(length) if length is not None and length.isdigit() else 0


async def _too_large(scope: Scope, receive: Receive, send: Send, *, more: bool = True) -> None:
    """Refuse a body, once what is left of it has come, up to as much again, and was thrown away.

    Who still sends when the connection closes gets a reset in place of the answer (RFC 9112, 9.6), and a proxy says
    502. One that asks before it sends (`Expect: 100-continue`) is answered at once.
    """
    left = 0 if header(scope, b"expect") is not None else BODY_BYTES_MAX
    while more and left > 0:
        message = await receive()
        left -= len(message.get("body", b"")) + 1
        more = message.get("more_body", False)
    text = (
        f"The request is larger than {BODY_BYTES_MAX >> 20} MiB. Send large data in parts, with write_workspace_file."
    )
    await refusal(413, text)(scope, receive, send)


def _unfit(why: str) -> ASGIApp:
    return refusal(
        413, f"The request cannot be taken: {why}. Send large data as one text or in parts, with write_workspace_file."
    )
