"""Who sends a request, and what they may do: the tenant, the principal within it, and their rights.

A security boundary: what a request may do follows from its identity alone, which the connection has and never what was
sent over it says. Without authentication there is one identity, the user's own, with every right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .errors import RequestRefused, RightMissing

DEFAULT_TENANT = "default"
"""The tenant whose state lies in the home itself: that of stdio, of the command line, and of tokens that name none."""
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
IDENTITY = "sealab.identity"
"""The key of a request's `Identity` in its ASGI scope."""


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

    def require(self, right: Right) -> None:
        """Raise `RightMissing` unless it has a right."""
        if right not in self.rights:
            raise RightMissing(
                f"This needs the scope {right}, which the token does not have. Use a token that was given it."
            )


def judged_tenant(name: str) -> str:
    """Return the id of a tenant as it is: one that names a folder, a schema and a path as it stands.

    There is one spelling of each, so that no two collide on a file system or in a URL. Raises `RequestRefused`.
    """
    if _TENANT.fullmatch(name) is None:
        raise RequestRefused(
            f"{name[:80]!r} cannot be a tenant. Give 1 to 63 of a to z, 0 to 9 and dashes, which begin with no dash."
        )
    return name


LOCAL_IDENTITY = Identity(DEFAULT_TENANT, "local", ALL_RIGHTS)
"""The user who started the process: the command line, the client on the standard streams, HTTP without `AUTH`."""


def identity_in(scope: Mapping[str, Any]) -> Identity | None:
    """Return the identity of a request from its ASGI scope; None where the server authenticates nobody."""
    found = scope.get(IDENTITY)
    return found if isinstance(found, Identity) else None
