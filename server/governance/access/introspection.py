"""Asks the issuer whether a token is active: token introspection (RFC 7662).

Answers are kept for `FRESH_SECONDS`, so that a token which was revoked is taken no longer than that. Answers on tokens
that were active and on others have places of their own, and so have the questions under way: whoever sends any number
of invented tokens takes no place of a token that is known. Each principal has a bounded number of places.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote_plus

from ...base.identity import Identity
from ...base.lru import Lru
from .claims import ClaimRules, TokenUnfit, expiry_of
from .issuer import Issuer
from .issuer_link import IssuerLink
from .verifier import VerifierUnavailable

_LOG = logging.getLogger(__name__)

FRESH_SECONDS = 10.0
"""How long an answer is used, and so how long a revoked token is taken at most."""
_KNOWN_SECONDS = 3600.0
"""How long a token that was active counts as known."""
TOKENS_MAX = 10_000
TOKENS_OF_ONE_MAX = 100
QUESTIONS_MAX = 32
"""Questions under way on tokens that are known, and as many on tokens that are not."""


@dataclass(frozen=True, slots=True)
class _ActiveToken:
    identity: Identity
    until: float
    known_until: float


class Introspection:
    """The tokens asked about, by `user`: this server's id and secret at its issuer.

    `url` is None where the issuer's metadata names it. Belongs to one event loop; `monotonic` never goes back, `now` is
    the time of the day.
    """

    def __init__(
        self,
        link: IssuerLink,
        issuer: Issuer,
        rules: ClaimRules,
        *,
        user: tuple[str, str],
        url: str | None = None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._link = link
        self._issuer = issuer
        self._user = user
        self._url = url
        self._rules = rules
        self._now = now
        self._monotonic = monotonic
        self._active: OrderedDict[bytes, _ActiveToken] = OrderedDict()
        self._inactive: Lru[bytes, float] = Lru(TOKENS_MAX)
        self._of: dict[tuple[str, str], OrderedDict[bytes, None]] = {}
        self._failure: str | None = None
        self._questions: dict[bytes, tuple[bool, asyncio.Task[Identity | None]]] = {}

    async def identity_of(self, token: str) -> Identity | None:
        """Return the identity of an active token, None for any other. Raises `VerifierUnavailable`."""
        mark = hashlib.sha256(token.encode()).digest()  # the token itself is not kept
        at = self._monotonic()
        known = self._active.get(mark)
        if known is not None:
            if at < known.until:
                self._active.move_to_end(mark)
                return known.identity
            if at >= known.known_until:
                self._forget(mark)
                known = None
        if self._inactive.get(mark, 0.0) > at:
            return None
        return await self._asked(mark, token, is_known=known is not None)

    async def close(self) -> None:
        """End the questions under way."""
        tasks = [task for _known, task in self._questions.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _asked(self, mark: bytes, token: str, *, is_known: bool) -> Identity | None:
        if mark not in self._questions:
            if sum(known == is_known for known, _task in self._questions.values()) >= QUESTIONS_MAX:
                raise VerifierUnavailable("The issuer of tokens is asked about many at once. Try again in a moment.")
            task = asyncio.create_task(self._ask(mark, token))
            self._questions[mark] = (is_known, task)
            task.add_done_callback(lambda done: self._answered(mark, done))
        _is_known, task = self._questions[mark]
        await asyncio.wait({task})  # one who waits and goes away does not end it for the others
        if task.cancelled():
            raise VerifierUnavailable("The server is stopping. Try again when it is back.")
        failure = task.exception()
        if failure is not None:
            raise VerifierUnavailable(str(failure)) from failure
        return task.result()

    def _answered(self, mark: bytes, task: asyncio.Task[Identity | None]) -> None:
        del self._questions[mark]
        if task.cancelled():
            return
        failure = task.exception()
        said = None if failure is None else str(failure)
        if failure is not None and said != self._failure:  # once, not for each token
            known = isinstance(failure, VerifierUnavailable)
            _LOG.warning("A token could not be introspected. %s", said, exc_info=None if known else failure)
        self._failure = said

    async def _ask(self, mark: bytes, token: str) -> Identity | None:
        url, form, user = await self._question(token)
        begun = self._monotonic()
        answer = await self._link.post(url, form, user)
        if answer.is_refusal and not answer.is_about_the_form:
            raise VerifierUnavailable(
                f"The introspection endpoint {url.partition('?')[0]} refuses this server. Check OAUTH_CLIENT_ID and "
                "OAUTH_CLIENT_SECRET."
            )
        identity, reason, now = None, "the issuer says that it is not active", self._now()
        if not answer.is_refusal and answer.content.get("active") is True:
            try:
                identity = self._rules.identity(answer.content, now, signed=False, credential=mark.hex()[:16])
            except TokenUnfit as unfit:
                reason = str(unfit)
        if identity is None:
            _LOG.info("A token was refused: %s.", reason)
            self._forget(mark)
            self._inactive[mark] = begun + FRESH_SECONDS
            return None
        self._keep(mark, identity, begun, expiry_of(answer.content) - now)
        return identity

    async def _question(self, token: str) -> tuple[str, dict[str, str], tuple[str, str] | None]:
        """Return where to ask, the form, and the user for HTTP Basic (RFC 7662, 2.1; RFC 6749, 2.3.1)."""
        client_id, secret = self._user
        form = {"token": token, "token_type_hint": "access_token"}
        basic = (quote_plus(client_id), quote_plus(secret))
        if self._url is not None:
            return self._url, form, basic
        metadata = (await self._issuer.facts()).metadata
        if metadata.introspection_url is None:
            raise VerifierUnavailable("The issuer has no introspection endpoint. Set OAUTH_INTROSPECTION_URL.")
        if metadata.posts_secret:
            return metadata.introspection_url, form | {"client_id": client_id, "client_secret": secret}, None
        return metadata.introspection_url, form, basic

    def _keep(self, mark: bytes, identity: Identity, begun: float, seconds: float) -> None:
        self._forget(mark)
        self._inactive.pop(mark, None)
        own = self._of.setdefault(_owner(identity), OrderedDict())
        if len(own) >= TOKENS_OF_ONE_MAX:
            self._forget(next(iter(own)))
        elif len(self._active) >= TOKENS_MAX:
            self._forget(next(iter(self._active)))
        self._active[mark] = _ActiveToken(identity, begun + min(FRESH_SECONDS, seconds), begun + _KNOWN_SECONDS)
        self._of.setdefault(_owner(identity), OrderedDict())[mark] = None

    def _forget(self, mark: bytes) -> None:
        kept = self._active.pop(mark, None)
        if kept is not None:
            own = self._of[_owner(kept.identity)]
            del own[mark]
            if not own:
                del self._of[_owner(kept.identity)]


def _owner(identity: Identity) -> tuple[str, str]:
    return identity.tenant, identity.principal
