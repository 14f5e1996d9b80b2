"""Security boundary: who looks at the console, known by the session of a browser or by a link that opens one.

A session begins with a valid token, and is as wide as that: the token is judged again at each request, so the session
ends with it. Or it begins with a link, made by a command in the operator's home and taken once; then it is the
operator's own. The browser has a random secret in a cookie, the database its SHA-256 digest and, encrypted under the
vault's key, the token. Forms carry a value that only this secret gives (OWASP, HMAC-based CSRF tokens).

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ....skills_db.shared_state.documents import DocumentStore
from ....skills_db.vault_keys import Seal, SealBroken
from ...base.identity import LOCAL_IDENTITY, Identity

if TYPE_CHECKING:
    from ....skills_db.engine import Database

SESSION_SECONDS = 8 * 3600
"""How long a session lasts at most."""
LINK_SECONDS = 300
"""How long a link can be taken."""
SIGN_IN_SECONDS = 600
"""How long a browser has to come back from the issuer."""
SESSIONS_MAX = 1000
"""Sessions, and links, at once; with a further one the oldest ends."""
SESSIONS_OF_ONE_MAX = 20
"""Sessions of one principal at once; with a further one the principal's oldest ends."""
_DOCUMENT = "console"
_EXPIRES = re.compile("[0-9]{1,15}")
_SECRET = re.compile(r"[\w-]{43}")


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A browser that is known: by `token`, or without one as the operator, who took a link."""

    secret: str
    token: str | None
    expires: float

    @property
    def form_mark(self) -> str:
        """What each form of this session carries."""
        return hmac.digest(self.secret.encode(), b"sealab console form", hashlib.sha256).hex()

    def sent_form(self, mark: str) -> bool:
        """Return whether a form with this mark was given out to this session."""
        return hmac.compare_digest(self.form_mark.encode(), mark.encode("utf-8", "surrogatepass"))


class ConsoleSessions:
    """The sessions and links of one home, in the operator's database, so that any server of it knows them."""

    def __init__(self, database: Callable[[], Database], key: Callable[[], bytes]) -> None:
        self._database = database
        self._key = key

    def new_link(self) -> str:
        """Return the secret of a link that opens one session."""
        secret = secrets.token_urlsafe(32)
        with self._editing() as kept:
            kept["links"][_digest(secret)] = {"expires": time.time() + LINK_SECONDS}
        return secret

    def taken(self, link: str) -> ConsoleSession | None:
        """Return the operator's session for the secret of a link, which ends with that; None where it is none."""
        if _SECRET.fullmatch(link) is None or self._kept("links", link) is None:
            return None
        with self._editing() as kept:
            is_open = kept["links"].pop(_digest(link), None) is not None
        return self.begun(None) if is_open else None

    def begun(self, token: str | None, identity: Identity = LOCAL_IDENTITY) -> ConsoleSession:
        """Return a new session of whom the token stands for."""
        session = ConsoleSession(secrets.token_urlsafe(32), token, time.time() + SESSION_SECONDS)
        digest = _digest(session.secret)
        whose = _digest(json.dumps([identity.tenant, identity.principal]))
        entry: dict[str, object] = {"expires": session.expires, "whose": whose}
        if token is not None:
            entry["token"] = b64encode(self._seal().sealed(token.encode(), digest)).decode()
        with self._editing() as kept:
            sessions = kept["sessions"]
            sessions[digest] = entry
            own = [each for each, other in sessions.items() if other.get("whose") == whose]
            for oldest in own[:-SESSIONS_OF_ONE_MAX]:
                del sessions[oldest]
        return session

    def found(self, secret: str) -> ConsoleSession | None:
        """Return the session of a browser, None where it has none, or it ended."""
        if _SECRET.fullmatch(secret) is None:
            return None
        entry = self._kept("sessions", secret)
        if entry is None:
            return None
        sealed = entry.get("token")
        try:
            token = None if sealed is None else self._seal().opened(b64decode(str(sealed)), _digest(secret)).decode()
        except SealBroken:
            return None
        return ConsoleSession(secret, token, cast("float", entry["expires"]))

    def end(self, session: ConsoleSession) -> None:
        """End a session."""
        with self._editing() as kept:
            kept["sessions"].pop(_digest(session.secret), None)

    def sign_in(self, secret: str, expires: int) -> str:
        """Return the state with which a browser that has `secret` may come back from the issuer until `expires`."""
        mark = hmac.digest(self._key(), f"sealab console|sign-in|{secret}|{expires}".encode(), hashlib.sha256)
        return f"{expires}.{mark.hex()}"

    def is_sign_in(self, secret: str, state: str) -> bool:
        """Return whether a browser was sent to the issuer with this state, and its time is not over."""
        expires = state.partition(".")[0]
        if not (_SECRET.fullmatch(secret) and _EXPIRES.fullmatch(expires)) or time.time() >= int(expires):
            return False
        return hmac.compare_digest(state.encode(), self.sign_in(secret, int(expires)).encode())

    def _kept(self, kind: str, secret: str) -> Mapping[str, object] | None:
        """Return what is kept of a secret, unless its time is over; this reads alone."""
        _, content = self._store().read([_DOCUMENT]).get(_DOCUMENT, (0, b"{}"))
        entry: Mapping[str, object] | None = json.loads(content).get(kind, {}).get(_digest(secret))
        return None if entry is None or time.time() >= cast("float", entry["expires"]) else entry

    @contextmanager
    def _editing(self) -> Iterator[dict[str, dict[str, dict[str, object]]]]:
        """Give what is kept, without what is over, to be changed."""
        with self._store().editing(_DOCUMENT) as draft:
            stored = {} if draft.data is None else json.loads(draft.data)
            now = time.time()
            kept = {
                kind: {
                    digest: each
                    for digest, each in stored.get(kind, {}).items()
                    if now < cast("float", each["expires"])
                }
                for kind in ("links", "sessions")
            }
            yield kept
            draft.data = json.dumps(
                {kind: dict([*entries.items()][-SESSIONS_MAX:]) for kind, entries in kept.items()}
            ).encode()

    def _store(self) -> DocumentStore:
        return DocumentStore(self._database())

    def _seal(self) -> Seal:
        return Seal(hmac.digest(self._key(), b"sealab console|sessions", hashlib.sha256))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
