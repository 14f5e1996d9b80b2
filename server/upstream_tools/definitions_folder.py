"""Notices that a definition below `tools/` was added, removed or written."""

from __future__ import annotations

import time
from pathlib import Path

_SHARE = 0.1
"""How much of the time each kind of look may take: a home may have thousands of categories and definitions."""


class DefinitionsFolder:
    """The folder of definitions, looked at so seldom that looking takes no more than its share of the time."""

    def __init__(self, path: Path) -> None:
        self._looks = (_Scan(path, depth=0), _Scan(path, depth=1), _Scan(path, depth=2))

    def last_change(self) -> int:
        """Return when a file below it was last added, removed or written, in nanoseconds, as far as was looked."""
        return max(look.last_change() for look in self._looks)


class _Scan:
    """Looks that go so deep: the deeper, the longer they take and the more seldom they are."""

    def __init__(self, path: Path, *, depth: int) -> None:
        self._path = path
        self._depth = depth
        self._found = 0
        self._next = 0.0

    def last_change(self) -> int:
        from ...tools_registry.definitions import last_change

        began = time.monotonic()
        if began >= self._next:
            self._found = last_change(self._path, depth=self._depth)
            ended = time.monotonic()
            self._next = ended + (ended - began) / _SHARE
        return self._found
