"""Security boundary: who sends an HTTP request, told by its bearer token; one without a valid token goes no further.

RFC 6750 with its safest choices: the token stands in one `Authorization` header and nowhere else. What is behind this
layer sees the `Identity` and not the token; under `AUTH=oauth` what exchanges it at its issuer (RFC 8693) finds it at
`BEARER`, see `identity`. A request that goes on for long, a stream above all, is judged again every `RECHECK_SECONDS`,
and ends once its token is revoked or has expired.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...access.guesses import Guesses
from ...access.names import DEFAULT_RIGHTS
from ...access.verifier import Verifier, VerifierUnavailable
from ...audit.trail import UNAUDITED, AuditTrail, DenialReason
from ...errors import AuditUnwritten
from ...identity import BEARER, IDENTITY, Identity, Right, identity_in
from ...lru import Lru
from ...rights import LINKS, WITHOUT_TOKEN
from .access_lines import AccessLines, address_of, unkept
from .challenges import MetadataUrl, challenge
from .error_responses import refusal

TOKEN_CHARS_MAX = 8192
RECHECK_SECONDS = 2.0
"""How often the token of an open request is judged again."""
UNKNOWN_SECONDS_MAX = 60.0
"""How long an open request goes on while it cannot be told whether its token is still valid."""
ACCEPTED_MAX = 10_000
"""Tokens that were valid once, which are judged from whatever address they come."""
_RETRY_SECONDS = 2
# RFC 6750, 2.1: a scheme, which is not case-sensitive (RFC 9110, 11.1), spaces, and a b64token.
_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_INVALID_REQUEST, _INVALID_TOKEN = "invalid_request", "invalid_token"
_HOW_BY_ISSUER = (
    "Send a token of the issuer that is valid, as `Authorization: Bearer …`; the metadata names the issuer."
)
_HOW = "Send a token that is valid, as `Authorization: Bearer …`; `sealab tokens create` makes one."


@dataclass(slots=True)
class _Answer:
    """How far a request is answered, and whether its token has come to be invalid meanwhile."""

    started: bool = False
    completed: bool = False
    ended: bool = False


class Authentication:
    """An ASGI app before another, which gets requests of those whom `verifier` knows; with `metadata` it is OAuth's."""

    def __init__(
        self, app: ASGIApp, verifier: Verifier, metadata: MetadataUrl | None = None, audit: AuditTrail = UNAUDITED
    ) -> None:
        self._app = app
        self._verifier = verifier
        self._metadata = metadata
        self._how = _HOW if metadata is None else _HOW_BY_ISSUER
        self._method = "token" if metadata is None else "oauth"
        self._lines = AccessLines(audit)
        self._guesses = Guesses()
        self._accepted: Lru[bytes, None] = Lru(ACCEPTED_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or say how to authenticate."""
        if scope["type"] != "http" or scope["path"].startswith(LINKS):
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(WITHOUT_TOKEN):  # what there is has been answered before
            await refusal(404, "There is nothing at this address. MCP is served at /mcp.")(scope, receive, send)
            return
        refused = _misplaced(scope)
        if refused is not None:
            answer = await self._refused(scope, 400, refused, _INVALID_REQUEST, DenialReason.MISPLACED)
            await answer(scope, receive, send)
            return
        given = [value for key, value in scope["headers"] if key == b"authorization"]
        bearer = _BEARER.fullmatch(given[0]) if given and len(given[0]) <= TOKEN_CHARS_MAX else None
        if bearer is None:
            error = _INVALID_TOKEN if given else None  # who sends nothing is told no error (RFC 6750, 3.1)
            reason = DenialReason.INVALID if given else DenialReason.NO_TOKEN
            answer = await self._refused(scope, 401, f"The request has no token. {self._how}", error, reason)
            await answer(scope, receive, send)
            return
        token = bearer[1].decode("ascii")
        try:
            judged = await self._judged(scope, token)
        except VerifierUnavailable as error:
            answer = refusal(503, str(error), retry_after=_RETRY_SECONDS)
            answer = await self._lines.denied(scope, answer, status=503, reason=DenialReason.UNJUDGED)
            await answer(scope, receive, send)
            return
        if isinstance(judged, Identity):
            await self._served(self._with_identity(scope, judged, token), receive, send, token)
        else:
            await judged(scope, receive, send)

    async def _judged(self, scope: Scope, token: str) -> Identity | ASGIApp:
        """Return whom a token stands for, or the answer to one that is not valid. Raises `VerifierUnavailable`."""
        address = address_of(scope)
        mark = hashlib.sha256(token.encode("ascii")).digest()
        is_known = mark in self._accepted
        if not is_known and (wait := await self._guesses.turn(address)):
            text = f"Too many tokens that are not valid came from this address. Send a valid one in {wait} seconds."
            answer = refusal(429, text, retry_after=wait)
            return await self._lines.denied(scope, answer, status=429, reason=DenialReason.TOO_MANY)
        is_guess = False
        try:
            identity = await self._verifier.identity_of(token)
            is_guess = identity is None
        finally:
            if not is_known:
                self._guesses.judged(address, is_guess=is_guess)
        if identity is None:
            self._accepted.pop(mark, None)
            text = f"The token is not valid, or no longer. {self._how}"
            return await self._refused(scope, 401, text, _INVALID_TOKEN, DenialReason.INVALID)
        try:
            await self._lines.signed_in(mark, identity, self._method)
        except AuditUnwritten as error:
            return unkept(error)
        self._accepted[mark] = None
        return identity

    async def _served(self, scope: Scope, receive: Receive, send: Send, token: str) -> None:
        """Serve a request whose token is valid, for as long as it is."""
        task = asyncio.current_task()
        assert task is not None
        answer = _Answer()
        judging: set[asyncio.Task[None]] = set()

        def judge_on() -> None:
            judging.add(asyncio.create_task(self._end_with_token(token, task, answer)))

        async def sent(message: Message) -> None:
            answer.started = True
            answer.completed = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        timer = asyncio.get_running_loop().call_later(RECHECK_SECONDS, judge_on)
        try:
            await self._app(scope, receive, sent)
        except asyncio.CancelledError:
            if not answer.ended:
                raise
            task.uncancel()
            text = f"The token was revoked or expired, and the request was ended. {self._how}"
            ended = await self._refused(scope, 401, text, _INVALID_TOKEN, DenialReason.ENDED)
            if not answer.started:
                await ended(scope, receive, send)
            elif not answer.completed:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            timer.cancel()
            for each in judging:
                each.cancel()

    async def _end_with_token(self, token: str, request: asyncio.Task[None], answer: _Answer) -> None:
        """End a request once its token is not valid any more, or has been unknown for too long."""
        loop = asyncio.get_running_loop()
        known_at = loop.time()
        while True:
            try:
                valid = await self._verifier.identity_of(token) is not None
                known_at = loop.time()
            except VerifierUnavailable:
                valid = loop.time() - known_at < UNKNOWN_SECONDS_MAX
            if not valid:
                answer.ended = True
                request.cancel()
                return
            await asyncio.sleep(RECHECK_SECONDS)

    def _with_identity(self, scope: Scope, identity: Identity, token: str) -> Scope:
        """Return a request with its identity and without the header of its token."""
        headers = [(key, value) for key, value in scope["headers"] if key != b"authorization"]
        given = {**scope, "headers": headers, IDENTITY: identity}
        if self._metadata is not None:
            given[BEARER] = token
        return given

    async def _refused(self, scope: Scope, status: int, text: str, error: str | None, reason: DenialReason) -> ASGIApp:
        """Note that a request is not let in, and return the answer to it."""
        # What an OAuth client asks its issuer for (MCP 2025-11-25, Protected Resource Metadata Discovery Requirements).
        rights = [] if self._metadata is None else [right for right in Right if right in DEFAULT_RIGHTS]
        said = challenge(scope, error=error, rights=rights, metadata=self._metadata)
        answer = refusal(status, text, challenge=said)
        return await self._lines.denied(scope, answer, status=status, reason=reason, identity=identity_in(scope))


def _misplaced(scope: Scope) -> str | None:
    """Say what is wrong with where the token of a request stands, or None."""
    if sum(key == b"authorization" for key, _value in scope["headers"]) > 1:
        return "The request has more than one Authorization header. Send one."
    query = scope.get("query_string", b"")
    if b"access_token" in query.lower() or any(
        name.lower() == "access_token" for name, _value in parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    ):
        return "A token in an address ends up in logs, so none is taken from there. Send it as a header, and revoke it."
    return None
