"""Which run of each caller was the last, so that a skill can be saved from it without its identifier."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

LAST: Final = "last"
_CALLERS_MAX: Final = 1000


class LastRuns:
    """The last runs of the callers that ran code most recently."""

    def __init__(self) -> None:
        self._run_ids: OrderedDict[str, str] = OrderedDict()

    def note(self, scope: str, run_id: str) -> None:
        """Note that a caller's run has ended."""
        self._run_ids[scope] = run_id
        self._run_ids.move_to_end(scope)
        if len(self._run_ids) > _CALLERS_MAX:
            self._run_ids.popitem(last=False)

    def of(self, scope: str) -> str | None:
        """Return the last run of a caller, where one is known."""
        return self._run_ids.get(scope)
