"""What tells whom a bearer token stands for."""

from __future__ import annotations

from typing import Protocol

from ...base.errors import ServerError
from ...base.identity import Identity


class VerifierUnavailable(ServerError):
    """Whether a token is valid cannot be determined now: the database or the issuer does not answer."""

    code = "verifier"


class Verifier(Protocol):
    """Finds whom a bearer token stands for."""

    async def identity_of(self, token: str) -> Identity | None:
        """Return the identity of a valid token, None for any other. Raises `VerifierUnavailable`."""
        ...

    async def close(self) -> None:
        """Let go of what it holds, when the server ends."""
        ...
