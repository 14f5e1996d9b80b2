"""Who sends a request, and what they may do: the tenant, the principal within it, and their rights.

A security boundary: what a request may do follows from its identity alone, which the connection has and never what was
sent over it says. Without authentication there is one identity, the user's own, with every right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ...sandbox.job import Json
from .errors import RightMissing

DEFAULT_TENANT = "default"
"""The tenant whose state lies in the home itself: that of stdio, of the command line, and of tokens that name none."""
IDENTITY = "sealab.identity"
"""The key of a request's `Identity` in its ASGI scope."""
BEARER = "sealab.bearer"
"""The key of the token of an issuer that a request was authenticated by, as it was sent, in its ASGI scope.

It is there under `AUTH=oauth` alone, for the issuer's own token endpoint (RFC 8693), and goes nowhere else.
"""


class Right(StrEnum):
    """What a token may carry as its scope (RFC 6749, 3.3); each allows one kind of thing."""

    RUN = "run"
    RUN_PROCESS = "run:process"
    RUN_CONTAINER = "run:container"
    SKILLS_READ = "skills:read"
    SKILLS_WRITE = "skills:write"
    TOOLS_READ = "tools:read"
    TOOLS_WRITE = "tools:write"
    FILES = "files"
    PRIVACY_RESTORE = "privacy:restore"
    APPROVE = "approve"
    ADMIN = "admin"


ALL_RIGHTS = frozenset(Right)


@dataclass(frozen=True, slots=True)
class Identity:
    """A principal of a tenant. `principal` is unique within the tenant, `credential` names the token for the audit."""

    tenant: str
    principal: str
    rights: frozenset[Right]
    credential: str = ""

    def may(self, right: Right) -> bool:
        """Return whether it has a right."""
        return right in self.rights

    def stands_for(self, other: Identity) -> bool:
        """Return whether it is the same principal with at least the rights of another, and so may answer for it."""
        return (self.tenant, self.principal) == (other.tenant, other.principal) and self.rights >= other.rights

    def require(self, right: Right) -> None:
        """Raise `RightMissing` unless it has a right."""
        if right not in self.rights:
            raise RightMissing(
                f"This needs the scope {right}, which the token does not have. Use a token that was given it."
            )


def identity_json(identity: Identity) -> dict[str, Json]:
    """Return an identity as JSON, to be kept with what it began."""
    return {
        "tenant": identity.tenant,
        "principal": identity.principal,
        "rights": sorted(identity.rights),
        "credential": identity.credential,
    }


def identity_from(stored: object) -> Identity | None:
    """Return what `identity_json` made JSON of, without rights that this version does not know; None for all else."""
    match stored:
        case {
            "tenant": str(tenant),
            "principal": str(principal),
            "rights": list(rights),
            "credential": str(credential),
        }:
            known = frozenset(right for right in Right if right.value in rights)
            return Identity(tenant, principal, known, credential)
    return None


LOCAL_IDENTITY = Identity(DEFAULT_TENANT, "local", ALL_RIGHTS)
"""The user who started the process: the command line, the client on the standard streams, HTTP without `AUTH`."""


def identity_in(scope: Mapping[str, Any]) -> Identity | None:
    """Return the identity of a request from its ASGI scope; None where the server authenticates nobody."""
    found = scope.get(IDENTITY)
    return found if isinstance(found, Identity) else None
