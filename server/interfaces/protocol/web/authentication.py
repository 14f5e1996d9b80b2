"""Security boundary: who sends an HTTP request, by its bearer token; one without a valid token goes no further.

RFC 6750 with its safest choices: the token stands in one `Authorization` header and nowhere else. What is behind this
layer sees the `Identity` and not the token; under `AUTH=oauth` what exchanges it at its issuer (RFC 8693) finds it at
`BEARER`, see `identity`. A request that goes on for long, a stream above all, is judged again every `RECHECK_SECONDS`,
and ends once its token is revoked or has expired.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ....base.errors import AuditUnwritten
from ....base.identity import BEARER, IDENTITY, Identity, Right, identity_in
from ....base.lru import Lru
from ....governance.access.code_grant import CodeGrant
from ....governance.access.guesses import Guesses
from ....governance.access.names import DEFAULT_RIGHTS
from ....governance.access.verifier import Verifier, VerifierUnavailable
from ....governance.audit.trail import UNAUDITED, AuditTrail, DenialReason
from ....governance.rights import LINKS, WITHOUT_TOKEN
from .access_lines import denied, unkept
from .callers import address_of, header
from .challenges import challenge
from .error_responses import Answering, refusal

TOKEN_CHARS_MAX = 8192
RECHECK_SECONDS = 2.0
"""How often the token of an open request is judged again."""
UNKNOWN_SECONDS_MAX = 60.0
"""How long an open request goes on while it is unknown whether its token is still valid."""
ACCEPTED_MAX = 10_000
"""Tokens that were valid once: they are judged from whatever address they come, and their sign-in is not noted again.

Of more, those used longest ago are forgotten.
"""
_RETRY_SECONDS = 2
# RFC 6750, 2.1: a scheme, which is not case-sensitive (RFC 9110, 11.1), spaces, and a b64token.
_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_T = TypeVar("_T")
_INVALID_REQUEST, _INVALID_TOKEN = "invalid_request", "invalid_token"
_HOW_BY_ISSUER = (
    "Send a token of the issuer that is valid, as `Authorization: Bearer …`; the metadata names the issuer."
)
_HOW = "Send a token that is valid, as `Authorization: Bearer …`; `sealab tokens create` makes one."


class Authentication:
    """An ASGI app before another, which gets requests of those whom `verifier` knows.

    With `metadata_url` it is OAuth's. Belongs to one event loop.
    """

    def __init__(
        self, app: ASGIApp, verifier: Verifier, metadata_url: str | None = None, audit: AuditTrail = UNAUDITED
    ) -> None:
        self._app = app
        self._verifier = verifier
        self._metadata_url = metadata_url
        self._how = _HOW if metadata_url is None else _HOW_BY_ISSUER
        self._method = "token" if metadata_url is None else "oauth"
        self._audit = audit
        self._guesses = Guesses()
        self._accepted: Lru[bytes, bool] = Lru(ACCEPTED_MAX)
        """By digest: whether the line of its sign-in is kept."""

    @property
    def code_grant(self) -> CodeGrant | None:
        """What signs people in by their browsers, where the issuer of tokens has that."""
        return getattr(self._verifier, "code_grant", None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or say how to authenticate."""
        if scope["path"].startswith(LINKS):
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(WITHOUT_TOKEN):  # what there is has been answered before
            await refusal(404, "There is nothing at this address. MCP is served at /mcp.")(scope, receive, send)
            return
        is_given = any(key == b"authorization" for key, _value in scope["headers"])
        token = bearer_of(scope)
        refused = _misplaced(scope)
        if refused is not None:
            answer = await self._refused(scope, 400, refused, _INVALID_REQUEST, DenialReason.MISPLACED)
        elif token is None:
            error = _INVALID_TOKEN if is_given else None  # a request without a token gets no error code (RFC 6750, 3.1)
            reason = DenialReason.INVALID if is_given else DenialReason.NO_TOKEN
            answer = await self._refused(scope, 401, f"The request has no token. {self._how}", error, reason)
        else:
            judged = await self.judged(scope, token)
            if isinstance(judged, Identity):
                await self._served(self._with_identity(scope, judged, token), receive, send, token)
                return
            answer = judged
        await answer(scope, receive, send)

    async def judged(self, scope: Scope, token: str) -> Identity | Response:
        """Return whom a token stands for, or the answer to one that is not valid, or cannot be judged."""
        mark = hashlib.sha256(token.encode("ascii")).digest()
        is_known = self._accepted.get(mark, False)
        identity = await self.in_turn(scope, partial(self._verifier.identity_of, token), is_known=is_known)
        if identity is None:
            self._accepted.pop(mark, None)
            text = f"The token is not valid, or no longer. {self._how}"
            return await self._refused(scope, 401, text, _INVALID_TOKEN, DenialReason.INVALID)
        if isinstance(identity, Response):
            return identity
        try:
            await self._signed_in(mark, identity)
        except AuditUnwritten as error:
            return unkept(error)
        return identity

    async def in_turn(
        self, scope: Scope, judge: Callable[[], Awaitable[_T | None]], *, is_known: bool = False
    ) -> _T | Response | None:
        """Return what `judge` finds when it is the turn of a request's address; None counts as a guess.

        Return the answer where the address sent too many guesses, or what `judge` asks is not available.
        """
        address = address_of(scope)
        if not is_known and (wait := await self._guesses.turn(address)):
            text = f"Too many tokens that are not valid came from this address. Send a valid one in {wait} seconds."
            return await self._denied(scope, refusal(429, text, retry_after=wait), DenialReason.TOO_MANY)
        found, is_guess, failure = None, False, ""
        try:
            found = await judge()
            is_guess = found is None
        except VerifierUnavailable as error:
            failure = str(error)
        finally:
            if not is_known:
                self._guesses.judged(address, is_guess=is_guess)
        if failure:
            return await self._denied(scope, refusal(503, failure, retry_after=_RETRY_SECONDS), DenialReason.UNJUDGED)
        return found

    async def _signed_in(self, mark: bytes, identity: Identity) -> None:
        """Note that a token was accepted, unless that was noted before; `mark` is a digest of it.

        Raises `AuditUnwritten` where the line is required and cannot be kept.
        """
        if mark not in self._accepted:
            self._audit.signed_in(identity, self._method)
            self._accepted[mark] = False
        if not self._accepted[mark]:
            try:
                await self._audit.kept()
            except BaseException:
                self._accepted.pop(mark, None)
                raise
            self._accepted[mark] = True
        self._accepted.used(mark)

    async def _served(self, scope: Scope, receive: Receive, send: Send, token: str) -> None:
        """Serve a request whose token is valid, for as long as it is."""
        task = asyncio.current_task()
        assert task is not None
        answer = Answering(send)
        judging: list[asyncio.Task[None]] = []
        is_over = False

        async def end_with_token() -> None:
            nonlocal is_over
            await self._invalid(token)
            is_over = True
            task.cancel()

        def judge_on() -> None:
            judging.append(asyncio.create_task(end_with_token()))

        timer = asyncio.get_running_loop().call_later(RECHECK_SECONDS, judge_on)
        try:
            await self._app(scope, receive, answer.send)
        except asyncio.CancelledError:
            if not is_over:
                raise
            task.uncancel()
            text = f"The token was revoked or expired, and the request was ended. {self._how}"
            ended = await self._refused(scope, 401, text, _INVALID_TOKEN, DenialReason.ENDED)
            await answer.end(ended, scope, receive)
        finally:
            timer.cancel()
            for each in judging:
                each.cancel()

    async def _invalid(self, token: str) -> None:
        """Return once a token is not valid any more, or has been unknown for too long."""
        loop = asyncio.get_running_loop()
        known_at = loop.time()
        while True:
            try:
                valid = await self._verifier.identity_of(token) is not None
                known_at = loop.time()
            except VerifierUnavailable:
                valid = loop.time() - known_at < UNKNOWN_SECONDS_MAX
            if not valid:
                return
            await asyncio.sleep(RECHECK_SECONDS)

    def _with_identity(self, scope: Scope, identity: Identity, token: str) -> Scope:
        """Return a request with its identity and without the header of its token."""
        headers = [(key, value) for key, value in scope["headers"] if key != b"authorization"]
        given = {**scope, "headers": headers, IDENTITY: identity}
        if self._metadata_url is not None:
            given[BEARER] = token
        return given

    async def _refused(self, scope: Scope, status: int, text: str, error: str | None, reason: DenialReason) -> Response:
        """Note that a request is not let in, and return the answer to it."""
        # What an OAuth client asks its issuer for (MCP 2025-11-25, Protected Resource Metadata Discovery Requirements).
        rights = [] if self._metadata_url is None else [right for right in Right if right in DEFAULT_RIGHTS]
        said = challenge(error=error, rights=rights, metadata_url=self._metadata_url)
        return await self._denied(scope, refusal(status, text, challenge=said), reason)

    async def _denied(self, scope: Scope, answer: Response, reason: DenialReason) -> Response:
        return await denied(self._audit, scope, answer, reason=reason, identity=identity_in(scope))


def bearer_of(scope: Scope) -> str | None:
    """Return the token of a request, None where it has none that could be one."""
    given = header(scope, b"authorization")
    bearer = None if given is None or len(given) > TOKEN_CHARS_MAX else _BEARER.fullmatch(given)
    return None if bearer is None else bearer[1].decode("ascii")


def _misplaced(scope: Scope) -> str | None:
    """Return what is wrong with where the token of a request stands, or None."""
    if sum(key == b"authorization" for key, _value in scope["headers"]) > 1:
        return "The request has more than one Authorization header. Send one."
    query = scope.get("query_string", b"")
    if b"access_token" in query.lower() or any(
        name.lower() == "access_token" for name, _value in parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    ):
        return "A token in an address ends up in logs, so none is taken from there. Send it as a header, and revoke it."
    return None
