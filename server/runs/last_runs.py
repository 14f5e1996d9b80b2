"""Which run of each caller was the last, so that a skill can be saved from it without its identifier."""

from __future__ import annotations

import time
from typing import Final

from ..lru import Lru

LAST: Final = "last"
_CALLERS_MAX: Final = 1000


class LastRuns:
    """The last runs of the callers that ran code most recently."""

    def __init__(self) -> None:
        self._run_ids: Lru[str, tuple[str, float]] = Lru(_CALLERS_MAX)

    def note(self, scope: str, run_id: str) -> None:
        """Note that a caller's run has ended."""
        self._run_ids[scope] = run_id, time.monotonic()

    def of(self, scope: str) -> str | None:
        """Return the last run of a caller, where one is known."""
        known = self.aged(scope)
        return None if known is None else known[0]

    def aged(self, scope: str) -> tuple[str, float] | None:
        """Return the last run of a caller, and how many seconds ago it ended, where one is known."""
        known = self._run_ids.get(scope)
        return None if known is None else (known[0], time.monotonic() - known[1])
