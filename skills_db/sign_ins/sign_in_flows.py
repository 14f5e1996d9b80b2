"""Keeps the sign-ins that are under way in a browser, so that any process can serve the next step of one.

A security boundary. A flow begins with a link, which names it by a random secret. The first browser that begins it
keeps it: no other goes on with it. What comes back from the issuer is taken once, and only from that browser with the
state that was sent with it (RFC 6749, section 10.12; RFC 9700, section 4.7). The database holds keyed hashes of the
three secrets, of the link, of the browser and of the state.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..sql import Row, sa
from ..tables import SIGN_IN_FLOW
from ..vault_keys import SealBroken
from .sign_in_keys import SignInKeys, StoredTokens

if TYPE_CHECKING:
    from ..engine import Database

OPEN, SIGNED_IN, REFUSED = "open", "signed in", "refused"
"""What became of a flow."""

FLOWS_MAX = 8
"""Flows of one owner at once; with a further one the oldest ends."""
_REQUEST, _SECRETS = "request", "secrets"
_KEPT_SECONDS = 3600.0
"""How long the page of a flow that has ended says so."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in that was asked for; `secrets` are what it takes to end it, in the hands of its browser alone."""

    owner: str
    outcome: str
    expires: float
    request: StoredTokens
    secrets: StoredTokens = field(default_factory=dict, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether it can still be ended well."""
        return self.outcome == OPEN and time.time() < self.expires


class SignInFlows:
    """The flows of one database under one master key."""

    def __init__(self, database: Database, keys: SignInKeys) -> None:
        self._database = database
        self._keys = keys

    def new_secret(self, kind: str) -> str:
        """Return a secret for a `link` or a `state`, see `SignInKeys.new_secret`."""
        return self._keys.new_secret(kind)

    def open(self, link: str, person: str, server: str, request: StoredTokens, *, seconds: float) -> None:
        """Keep a sign-in that is asked for; `link` is the secret of its address."""
        now = time.time()
        owner = self._keys.owner(person, server)
        row = {
            "link": self._keys.secret("link", link),
            "owner": owner,
            "person": self._keys.person(person),
            "asked": now,
            "expires": now + seconds,
            "outcome": OPEN,
            "sealed_request": self._keys.sealed(owner, _REQUEST, request),
        }
        newest = sa.select(_FLOW.link).where(_FLOW.owner == owner).order_by(_FLOW.asked.desc()).limit(FLOWS_MAX - 1)
        with self._database.transaction() as connection:
            connection.execute(sa.delete(SIGN_IN_FLOW).where(_FLOW.expires < now - _KEPT_SECONDS))
            connection.execute(sa.delete(SIGN_IN_FLOW).where(_FLOW.owner == owner, _FLOW.link.not_in(newest)))
            connection.execute(SIGN_IN_FLOW.insert(), row)

    def get(self, link: str) -> Flow | None:
        """Return the flow of a link, without its secrets; None where there is none."""
        wanted = sa.select(SIGN_IN_FLOW).where(_FLOW.link == self._keys.secret("link", link))
        with self._database.read() as connection:
            row = connection.execute(wanted).one_or_none()
        return None if row is None else self._flow(row)

    def begin(self, link: str, browser: str, state: str, secrets: StoredTokens) -> bool:
        """Give a flow to a browser that goes to the issuer with `state`; False where it is another's, or has ended."""
        flow = self.get(link)
        if flow is None:
            return False
        values = {
            "browser": self._keys.secret("browser", browser),
            "state": self._keys.secret("state", state),
            "sealed_secrets": self._keys.sealed(flow.owner, _SECRETS, secrets),
        }
        is_its = _FLOW.browser.is_(None) | (_FLOW.browser == values["browser"])
        own = sa.update(SIGN_IN_FLOW).where(_FLOW.link == self._keys.secret("link", link), *_is_open(), is_its)
        with self._database.transaction() as connection:
            return connection.execute(own.values(values)).rowcount > 0

    def come_back(self, state: str, browser: str) -> tuple[str, Flow] | None:
        """Return the flow that a browser comes back with, and the key that `end` takes; a state is taken once."""
        own = sa.update(SIGN_IN_FLOW).where(
            _FLOW.state == self._keys.secret("state", state),
            _FLOW.browser == self._keys.secret("browser", browser),
            *_is_open(),
        )
        with self._database.transaction() as connection:
            row = connection.execute(own.values(state=None).returning(SIGN_IN_FLOW)).one_or_none()
        flow = None if row is None else self._flow(row, secrets=row.sealed_secrets)
        return None if row is None or flow is None else (row.link, flow)

    def end(self, key: str, outcome: str) -> None:
        """Note what became of a flow, and forget its secrets."""
        ended = sa.update(SIGN_IN_FLOW).where(_FLOW.link == key)
        with self._database.transaction() as connection:
            connection.execute(ended.values(outcome=outcome, state=None, sealed_secrets=None))

    def _flow(self, row: Row, secrets: bytes | None = None) -> Flow | None:
        try:
            return Flow(
                row.owner,
                row.outcome,
                row.expires,
                self._keys.opened(row.owner, _REQUEST, row.sealed_request),
                {} if secrets is None else self._keys.opened(row.owner, _SECRETS, secrets),
            )
        except SealBroken:
            return None  # of another master key, or changed: there is no such flow here


def _is_open() -> tuple[sa.ColumnElement[bool], ...]:
    return _FLOW.outcome == OPEN, _FLOW.expires > time.time()


_FLOW = SIGN_IN_FLOW.c
