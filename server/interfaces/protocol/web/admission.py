"""Security boundary: lets requests in, each in its turn, whole, within all bounds, and with the rights that it needs.

A few begin at a time, those of each tenant and each of its callers in turns. The work on a request is spread over
rounds of the event loop, a dozen and more, so the next few begin after as many. A body is received whole before
anything is done with it, within one bound on all bytes held at once; one that would cost too much to decode is refused
before the SDK sees it, and large ones are decoded in turns.

A message that needs a right which its sender lacks is answered 403. The body is read as the SDK reads it: by `json` for
a version of the protocol without sessions, by pydantic before. The last of duplicate keys counts in both. All messages
of a list are judged, though the SDK takes none. Nothing depends on this alone: tools and methods judge for themselves
what reaches them (`RightsOfMessages`, `StrictTool`), and sessions whose it is (`McpSessions`). It is here because only
an HTTP answer can tell an OAuth client which scope to ask for (RFC 6750, 3.1; MCP 2025-11-25, Scope Challenge
Handling).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import TypeAdapter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .....sandbox.job import Owner
from .....tools_registry.json_lines import LARGE_CHARS
from ....base.errors import HostWorkBusy
from ....base.fair_line import FairLine
from ....base.identity import ALL_RIGHTS, Right, identity_in
from ....governance.audit.trail import UNAUDITED, AuditTrail, DenialReason
from ....governance.rights import missing, needed_by, needed_to_answer
from ..client_messages import with_id
from ..message_bounds import checked_message
from .access_lines import denied
from .callers import header, owner_of
from .challenges import challenge
from .error_responses import refusal

BODY_BYTES_MAX = 4 * 1024 * 1024
"""The largest body of one request."""
ROUNDS = 16
"""Rounds of the event loop until the next few begin. In a loop that is idle they take a fraction of a millisecond."""
_AT_ONCE = 4
"""Requests that begin in one round. The SDK works on each for about a millisecond before it waits for its run."""
_LARGE_ROUNDS = 8
"""Rounds in which the work on a large message is done."""
_SHARE_OF_OTHERS = 3
"""How long others have the loop after a large message, as a multiple of the time that it took."""
_PAUSE_SECONDS_MAX = 1.0
_FREE_BYTES = 64 * 1024
"""What each request may hold uncounted: so many bytes of each connection are bounded by how many of these there are."""
_RETRY_SECONDS = 1
_ID, _VERSION = b"mcp-session-id", b"mcp-protocol-version"
_ANYTHING: TypeAdapter[object] = TypeAdapter(object)


class RequestTurns:
    """Lets `at_once` go on, and the next after so many rounds of the event loop, each tenant and caller in its turn.

    With `share_of_others` the loop is left to others for so long then, as a multiple of the time that the rounds took.
    Belongs to one event loop.
    """

    def __init__(self, at_once: int, rounds: int, share_of_others: float = 0.0) -> None:
        self._at_once = at_once
        self._rounds = rounds
        self._share_of_others = share_of_others
        self._begun = 0
        self._waiting: FairLine[asyncio.Future[None]] = FairLine()

    async def turn(self, owner: Owner) -> None:
        """Wait for the turn to go on, after those of other callers that have waited longer."""
        if not self._begun:
            self._begin()
        self._begun += 1
        if self._begun > self._at_once:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.put(owner, turn)
            await turn

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self._watch, loop.time(), self._rounds - 1)

    def _watch(self, since: float, rounds: int) -> None:
        loop = asyncio.get_running_loop()
        if rounds:
            loop.call_soon(self._watch, since, rounds - 1)
        elif self._share_of_others:
            loop.call_later(min((loop.time() - since) * self._share_of_others, _PAUSE_SECONDS_MAX), self._next)
        else:
            self._next()

    def _next(self) -> None:
        self._begun = 0
        while self._waiting and self._begun < self._at_once:
            turn = self._waiting.take()
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
                self._begun += 1
        if self._begun:
            self._begin()


class _Refused(Exception):
    """A request is not let in, and answered so."""

    def __init__(self, answer: ASGIApp) -> None:
        self.answer = answer


@dataclass(slots=True)
class _Held:
    """What one request holds of the bytes that are counted."""

    bytes: int = 0


class Admission:
    """An ASGI app before the tenants' own: it gives each request whole, and holds at most `total_bytes` of bodies.

    A body is held until its request is answered. A caller may hold as much as is still free (Choudhury and Hahne 1998,
    "Dynamic queue length thresholds for shared-memory packet switches"): alone a half, and however much others send,
    there is room for one that holds nothing yet. Of tenants each may hold as much as is still free, and each of its
    callers as much as its tenant may still take. `metadata_url` is OAuth's.
    """

    def __init__(
        self, app: ASGIApp, total_bytes: int, metadata_url: str | None = None, audit: AuditTrail = UNAUDITED
    ) -> None:
        self._app = app
        self._free = total_bytes
        self._held: Counter[Owner] = Counter()
        self._starts = RequestTurns(_AT_ONCE, ROUNDS)
        self._large = RequestTurns(1, _LARGE_ROUNDS, _SHARE_OF_OTHERS)
        self._metadata_url = metadata_url
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or refuse it. A peer that leaves before the end of its body gets no answer."""
        owner = owner_of(scope)
        await self._starts.turn(_who_begins(scope, owner))
        held, answer = _Held(), None
        try:
            body = await self._received(scope, receive, owner, held)
            if body is None:
                return
            if len(body) > LARGE_CHARS:
                await self._large.turn(owner)
            await self._check_rights(scope, body)
            received = giving(body, receive)
            del body
            await self._app(scope, received, send)
        except _Refused as refused:
            answer = refused.answer  # it is sent once what was received is not held any more
        finally:
            self._free += held.bytes
            for each in {owner, _group(owner)}:
                self._held[each] -= held.bytes
                if not self._held[each]:
                    del self._held[each]
        if answer is not None:
            await answer(scope, receive, send)

    async def _received(self, scope: Scope, receive: Receive, owner: Owner, held: _Held) -> bytes | None:
        """Return the body of a request, None where its peer leaves; what it holds is counted in `held`.

        Raises `_Refused`.
        """
        length = header(scope, b"content-length")
        if length is not None and length.isdigit() and int(length) > BODY_BYTES_MAX:
            raise await _too_large(scope, receive)
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > BODY_BYTES_MAX:
                raise await _too_large(scope, receive, more=more)
            needed = len(body) - _FREE_BYTES - held.bytes
            if needed > 0:
                self._reserve(owner, needed, held.bytes)
                held.bytes += needed
        whole = bytes(body)
        del body
        try:
            whole = await checked_message(whole)
        except ValueError as error:
            text = f"The request cannot be taken: {error}. Send large data as one text or in parts, with "
            raise _Refused(refusal(413, f"{text}write_workspace_file.")) from error
        except HostWorkBusy as error:
            raise _Refused(refusal(503, str(error), retry_after=_RETRY_SECONDS)) from error
        taken = with_id(whole)
        if not isinstance(taken, bytes):
            raise _Refused(refusal(400, taken.error.message))
        return taken

    def _reserve(self, owner: Owner, count: int, held: int) -> None:
        """Take so many bytes more for a request that has `held`. Raises `_Refused`."""
        group = _group(owner)
        left = self._free - count - (self._held[group] + count)
        if left >= 0 and (group == owner or self._held[owner] + count <= left):
            self._free -= count
            for each in {owner, group}:
                self._held[each] += count
            return
        for each, whose in ((owner, "caller"), (group, "tenant")):
            if self._held[each] > held:
                text = (
                    f"The other requests of this {whose} hold as many bytes as one {whose} may send at once. Send this "
                    "one again when they are answered, or less at a time."
                )
                raise _Refused(refusal(429, text, retry_after=_RETRY_SECONDS))
        text = "The server holds as many bytes of requests as it may. Send this one again in a moment."
        raise _Refused(refusal(503, text, retry_after=_RETRY_SECONDS))

    async def _check_rights(self, scope: Scope, body: bytes) -> None:
        """Raise `_Refused` for a body that needs a right which its sender lacks."""
        identity = identity_in(scope)
        if identity is None or identity.rights == ALL_RIGHTS or scope["method"] != "POST":
            return
        lacks = list(missing(identity, needed_in(body, header(scope, _VERSION))))
        if not lacks:
            return
        scopes = " ".join(lacks)
        said = challenge(error="insufficient_scope", rights=lacks, metadata_url=self._metadata_url)
        text = f"This needs the scope {scopes}, which the token does not have. Use one that was given it."
        answer = refusal(403, text, challenge=said)
        raise _Refused(
            await denied(self._audit, scope, answer, reason=DenialReason.SCOPE, identity=identity, lacks=scopes)
        )


def needed_in(body: bytes, version: bytes | None) -> tuple[Right, ...]:
    """Return the rights that the messages of a body need, which is sent with that header of a version, each once."""
    try:
        if version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS:
            read = json.loads(body)
        else:
            read = _ANYTHING.validate_json(body)
    except (ValueError, RecursionError):
        return ()
    messages = read if isinstance(read, list) else [read]
    needed = [
        right
        for message in messages
        if isinstance(message, dict)
        for right in (
            *needed_by(message.get("method"), message.get("params")),
            *needed_to_answer(message.get("result")),
        )
    ]
    return tuple(dict.fromkeys(needed))


async def whole(receive: Receive, bytes_max: int) -> bytes | None:
    """Return the body of a request; None where it is larger, or its peer leaves."""
    body = bytearray()
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or len(body) > bytes_max:
            return None
        more = message.get("more_body", False)
    return bytes(body)


def giving(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already as one message, and then what `receive` gives."""
    message: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return message.pop() if message else await receive()

    return received


async def left(receive: Receive) -> None:
    """Return once the peer has gone whose body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _who_begins(scope: Scope, owner: Owner) -> Owner:
    """Return whose turn it is to begin; callers without credentials differ by their MCP sessions here."""
    session = header(scope, _ID)
    if session is not None and identity_in(scope) is None and header(scope, b"authorization") is None:
        return Owner(caller=session.decode("latin-1"))
    return owner


def _group(owner: Owner) -> Owner:
    """Return what shares the bytes with others alike: a tenant, or the caller itself where there is only one."""
    return Owner(owner.tenant) if owner.tenant else owner


async def _too_large(scope: Scope, receive: Receive, *, more: bool = True) -> _Refused:
    """Return the refusal of a body, once what is left of it has come, up to as much again, and was thrown away.

    Who still sends when the connection closes gets a reset in place of the answer (RFC 9112, 9.6), and a proxy says
    502. One that asks before it sends (`Expect: 100-continue`) is answered at once.
    """
    to_come = 0 if header(scope, b"expect") is not None else BODY_BYTES_MAX
    while more and to_come > 0:
        message = await receive()
        to_come -= len(message.get("body", b"")) + 1
        more = message.get("more_body", False)
    text = (
        f"The request is larger than {BODY_BYTES_MAX >> 20} MiB. Send large data in parts, with write_workspace_file."
    )
    return _Refused(refusal(413, text))
