"""How full a workspace is that several servers write to: the interface of what counts it for all of them.

A write first claims the room that it may need, then does its work, then says what it really took. So two servers that
write at once never pass the quota together. What a server claimed that died counts until the claim expires.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

Used: TypeAlias = tuple[int, int, int, bool]
"""Bytes and objects, claims included; a version, which each change makes another; whether they were ever listed."""


class Counts(Protocol):
    """Counts one workspace for all servers. Every method blocks, and may be called from any thread."""

    def used(self) -> Used:
        """Return what is there and what is claimed."""

    def claim(self, more_bytes: int, more_entries: int, *, bytes_max: int, entries_max: int) -> int | None:
        """Claim room, and return the claim; None where there is not so much, of what is more than nothing."""

    def finish(self, claim: int | None, more_bytes: int, more_entries: int) -> None:
        """End a claim, if there was one, and count what was really done, which may be less than nothing."""

    def named(self, name: str, seconds: int) -> AbstractContextManager[bool]:
        """Hold a name against every other server, at most so long; give whether it was had in time."""

    def recounted(self, version: int, used_bytes: int, entries: int) -> bool:
        """Take what a listing found, unless something changed since `version`; return whether it did."""
