"""Whom the claims of a token stand for, and whether they let it in.

The claims of a JWT (RFC 7519) and of access tokens (RFC 9068); introspection answers with the same names (RFC 7662).

A security boundary: of a claim that is there, the type and the range are checked too, and one that is missing where it
decides lets nobody in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...base.errors import ServerError
from ...base.identity import DEFAULT_TENANT, Identity, Right
from .names import is_tenant_name

SKEW_SECONDS = 60.0
"""How far the clocks of the issuer and of this machine may be apart."""
_NAME_CHARS_MAX = 255
"""OpenID Connect Core 1.0, 2, of `sub`."""
_AUDIENCES_MAX = 50
_SCOPE_CHARS_MAX = 10_000
_SECONDS_MAX = 2.0**53
_SHOWN_CHARS_MAX = 200
_OF_OTHER_TOKENS = frozenset({"at_hash", "c_hash", "s_hash", "events"})
"""Claims of ID tokens (OpenID Connect Core 1.0, 3.3.2.11), logout tokens and security events, not of access tokens."""
_BEARER = "bearer"
_MEANT_FOR_ACCESS = frozenset({_BEARER, "access", "at+jwt"})


class TokenUnfit(ServerError):
    """A token lets nobody in; the message says why, for the log."""

    code = "token_unfit"


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What the operator says of tokens. `tenant_claim` is the name of a claim, or a path of names parted by dots."""

    DECISIVE: ClassVar[frozenset[str]] = frozenset({"iss", "exp"})

    issuer: str
    audience: str
    tenant_claim: str | None = None

    def identity(self, claims: Mapping[str, Any], now: float, *, signed: bool, credential: str) -> Identity:
        """Return whom claims stand for at `now`, in seconds since 1970. Raises `TokenUnfit`.

        `signed` says that they stand in the token itself: it must have all that decides. Of an answer of the issuer,
        who says that the token is active, `iss` and `exp` are checked where they are there (RFC 7662, 2.2).
        """
        missing = self.DECISIVE - claims.keys() if signed else frozenset[str]()
        if missing:
            raise TokenUnfit(f"it has no {' and no '.join(sorted(missing))}")
        self._check_kind(claims)
        if claims.get("iss", self.issuer) != self.issuer:
            raise TokenUnfit(f"its issuer is {_shown(claims['iss'])}, not {self.issuer!r}")
        self._check_audience(claims.get("aud"))
        _check_times(claims, now)
        return Identity(self._tenant(claims), self._principal(claims), _rights(claims), credential)

    @staticmethod
    def _check_kind(claims: Mapping[str, Any]) -> None:
        """Raise `TokenUnfit` for a token that is not for access, or that counts only with a proof (RFC 7800, RFC 9449).

        Keycloak names the kind in the claim `typ`, and introspection may in `token_type`.
        """
        if other := _OF_OTHER_TOKENS & claims.keys():
            raise TokenUnfit(f"it is not an access token, since it has {min(other)}")
        for name in ("typ", "token_type"):
            kind = claims.get(name, _BEARER)
            if not isinstance(kind, str) or kind.lower() not in _MEANT_FOR_ACCESS:
                raise TokenUnfit(f"it is not a bearer token, its {name} is {_shown(kind)}")
        if "cnf" in claims:
            raise TokenUnfit("it is bound to a key (cnf), whose proof is not asked for here")

    def _check_audience(self, given: object) -> None:
        audiences = given if isinstance(given, list) else [given]
        if len(audiences) > _AUDIENCES_MAX or not all(isinstance(each, str) for each in audiences):
            raise TokenUnfit("it has no audience" if given is None else "its audience is not a text or a list of texts")
        if self.audience not in audiences:
            raise TokenUnfit(f"it is for {_shown(given)}, not for {self.audience!r}")

    def _principal(self, claims: Mapping[str, Any]) -> str:
        """Return a name that is unique among all issuers; an issuer has neither a fragment nor a query."""
        if "sub" in claims:
            return f"{self.issuer}#{_name(claims, 'sub')}"
        if "client_id" in claims:
            return f"{self.issuer}?client_id={_name(claims, 'client_id')}"
        raise TokenUnfit("it has neither a sub nor a client_id")

    def _tenant(self, claims: Mapping[str, Any]) -> str:
        if self.tenant_claim is None:
            return DEFAULT_TENANT
        found: object = claims
        for name in (self.tenant_claim,) if self.tenant_claim in claims else self.tenant_claim.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        if not is_tenant_name(found):
            raise TokenUnfit(f"its claim {self.tenant_claim} is {_shown(found)}, which is not the name of a tenant")
        return str(found)


def expiry_of(claims: Mapping[str, Any]) -> float:
    """Return when checked claims expire at the latest; without end where they do not say."""
    return float(claims.get("exp", math.inf)) + SKEW_SECONDS


def is_plain(name: object) -> bool:
    """Return whether a name can be kept, shown and compared: printable, bounded, and without spaces around it.

    Control characters, surrogates and marks of direction are not printable (`str.isprintable`).
    """
    return isinstance(name, str) and 0 < len(name) <= _NAME_CHARS_MAX and name.isprintable() and name == name.strip()


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    times = {name: _seconds(claims, name) for name in ("exp", "nbf", "iat") if name in claims}
    if now >= times.get("exp", math.inf) + SKEW_SECONDS:
        raise TokenUnfit("it has expired")
    for name in ("nbf", "iat"):
        if now < times.get(name, 0) - SKEW_SECONDS:
            raise TokenUnfit(f"its {name} is in the future")


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    """Return a NumericDate (RFC 7519, 2)."""
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _SECONDS_MAX:
        raise TokenUnfit(f"its {name} is not a number of seconds")
    return float(value)


def _name(claims: Mapping[str, Any], claim: str) -> str:
    name = claims[claim]
    if not is_plain(name):
        raise TokenUnfit(f"its {claim} is not a printable text of at most {_NAME_CHARS_MAX} characters")
    return str(name)


def _rights(claims: Mapping[str, Any]) -> frozenset[Right]:
    """Return the rights among its scopes: `scope` (RFC 9068, 2.2.3), or `scp`, a text or a list, of other issuers."""
    given = claims.get("scope", claims.get("scp", ""))
    words = given if isinstance(given, list) else given.split(" ") if isinstance(given, str) else [None]
    if not all(isinstance(word, str) for word in words) or sum(map(len, words)) > _SCOPE_CHARS_MAX:
        raise TokenUnfit("its scope is not a text of words, or is too long")
    return frozenset(right for right in Right if right in words)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
