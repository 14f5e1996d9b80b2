"""Cursors, states and numbers that a client gives back as they are.

A security boundary. What is personal in them is hidden as everywhere. What the server gets back is what it gave,
whatever `restore` says, and only that: a token within another text stays one.
"""

from __future__ import annotations

from ..lru import Lru
from ..privacy.tokens.parts import Exchange, Text

KEPT_MAX = 10_000
"""Handles that were changed and are remembered: the newest."""


class OpaqueHandles:
    """The handles of one server that were not shown as they are."""

    def __init__(self) -> None:
        self._given: Lru[str, str] = Lru(KEPT_MAX)

    def shown(self, handle: str, exchange: Exchange) -> str:
        """Return a handle as the client gets it."""
        shown = str(exchange(Text(handle)))
        if shown != handle:
            self._given[shown] = handle
        return shown

    def given(self, shown: str) -> str:
        """Return a handle as the server gave it."""
        return self._given.get(shown, shown)
