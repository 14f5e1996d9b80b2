"""Notices that a definition below `tools/` was added, removed or replaced."""

from __future__ import annotations

import time
from pathlib import Path

_LOOKING_SHARE = 0.1
"""How much of the time may go into looking: a home may have thousands of categories."""


class DefinitionsFolder:
    """The folder of definitions, looked at so seldom that looking takes no more than its share of the time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = 0
        self._next_look = 0.0

    def last_change(self) -> int:
        """Return when a file below it was last added, removed or replaced, as far as was looked."""
        from ..tools_registry.definitions import last_change  # noqa: PLC0415 - nothing of it is needed to start

        began = time.monotonic()
        if began >= self._next_look:
            self._found = last_change(self._path)
            ended = time.monotonic()
            self._next_look = ended + (ended - began) / _LOOKING_SHARE
        return self._found
