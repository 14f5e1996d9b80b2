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

from ..sql import sa
from ..vault_keys import SealBroken
from .sign_in_keys import SignInKeys, Told

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
    request: Told
    secrets: Told = field(default_factory=dict, repr=False)

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

    def open(self, link: str, person: str, server: str, request: Told, *, seconds: float) -> None:
        """Keep a sign-in that is asked for; `link` is the secret of its address."""
        now = time.time()
        owner = self._keys.owner(person, server)
        row = {
            "link": self._keys.secret("link", link),
            "owner": owner,
            "person": self._keys.person(person),
            "now": now,
            "expires": now + seconds,
            "sealed": self._keys.sealed(owner, _REQUEST, request),
        }
        with self._database.transaction() as session:
            session.execute(_DROP_EXPIRED, {"before": now - _KEPT_SECONDS})
            session.execute(_DROP_OLDEST, {"owner": owner, "most": FLOWS_MAX - 1})
            session.execute(_OPEN, row)

    def get(self, link: str) -> Flow | None:
        """Return the flow of a link, without its secrets; None where there is none."""
        with self._database.read() as session:
            row = session.execute(_GET, {"link": self._keys.secret("link", link)}).one_or_none()
        return None if row is None else self._flow(row)

    def begin(self, link: str, browser: str, state: str, secrets: Told) -> bool:
        """Give a flow to a browser that goes to the issuer with `state`; False where it is another's, or has ended."""
        flow = self.get(link)
        if flow is None:
            return False
        asked = {
            "link": self._keys.secret("link", link),
            "browser": self._keys.secret("browser", browser),
            "state": self._keys.secret("state", state),
            "sealed": self._keys.sealed(flow.owner, _SECRETS, secrets),
            "now": time.time(),
        }
        with self._database.transaction() as session:
            return session.execute(_BEGIN, asked).one_or_none() is not None

    def come_back(self, state: str, browser: str) -> tuple[str, Flow] | None:
        """Return the flow that a browser comes back with, and the key that `end` takes; a state is taken once."""
        asked = {
            "state": self._keys.secret("state", state),
            "browser": self._keys.secret("browser", browser),
            "now": time.time(),
        }
        with self._database.transaction() as session:
            row = session.execute(_COME_BACK, asked).one_or_none()
        flow = None if row is None else self._flow(row, secrets=row.sealed_secrets)
        return None if row is None or flow is None else (str(row.link), flow)

    def end(self, key: str, outcome: str) -> None:
        """Note what became of a flow, and forget its secrets."""
        with self._database.transaction() as session:
            session.execute(_END, {"link": key, "outcome": outcome})

    def _flow(self, row: sa.Row[tuple[object, ...]], secrets: object = None) -> Flow | None:
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


_COLUMNS = "link, owner, outcome, expires, sealed_request"
_OPEN = sa.text(
    "INSERT INTO sealab_sign_in_flow (link, owner, person, asked, expires, outcome, sealed_request) "
    "VALUES (:link, :owner, :person, :now, :expires, 'open', :sealed)"
)
_GET = sa.text(f"SELECT {_COLUMNS} FROM sealab_sign_in_flow WHERE link = :link")  # noqa: S608 - constants alone
_BEGIN = sa.text(
    "UPDATE sealab_sign_in_flow SET browser = :browser, state = :state, sealed_secrets = :sealed WHERE link = :link "
    "AND outcome = 'open' AND expires > :now AND (browser IS NULL OR browser = :browser) RETURNING link"
)
_COME_BACK = sa.text(
    "UPDATE sealab_sign_in_flow SET state = NULL WHERE state = :state AND browser = :browser AND outcome = 'open' "  # noqa: S608 - constants alone
    f"AND expires > :now RETURNING {_COLUMNS}, sealed_secrets"
)
_END = sa.text(
    "UPDATE sealab_sign_in_flow SET outcome = :outcome, state = NULL, sealed_secrets = NULL WHERE link = :link"
)
_DROP_EXPIRED = sa.text("DELETE FROM sealab_sign_in_flow WHERE expires < :before")
_DROP_OLDEST = sa.text(
    "DELETE FROM sealab_sign_in_flow WHERE owner = :owner AND link NOT IN (SELECT link FROM sealab_sign_in_flow "
    "WHERE owner = :owner ORDER BY asked DESC LIMIT :most)"
)
