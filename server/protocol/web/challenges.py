"""The `WWW-Authenticate` header of 401 and 403: how to ask again (RFC 6750, 3; RFC 9728, 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.types import Scope

from ...identity import Right

MetadataUrl = Callable[[Scope], str]
"""Gives the address of the metadata of this protected resource, as the sender of a request reaches it."""


def challenge(
    scope: Scope,
    *,
    error: str | None = None,
    rights: Iterable[Right] = (),
    metadata: MetadataUrl | None = None,
) -> str:
    """Return the header for a request; `error` is a code of RFC 6750, 3.1, and `rights` are the scopes it needs."""
    said = ['realm="sealab"']
    if error is not None:
        said.append(f'error="{error}"')
    if needed := " ".join(rights):
        said.append(f'scope="{needed}"')
    if metadata is not None:
        said.append(f'resource_metadata="{metadata(scope)}"')
    return f"Bearer {', '.join(said)}"
