"""Bounds a list that a server gives in pages: how many there are, how large they are together, and that they end."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ..errors import AnswerRefused
from ..threads import Checkpoint

PAGES_MAX = 1_000
"""Pages of one list."""
LISTED_CHARS_MAX = 32_000_000
"""Characters in all pages of one list together."""

_CURSOR_CHARS_MAX = 65_536
_VALUES_PER_CHECKPOINT = 1_000
_VALUE_CHARS = 8
"""What a value counts beside its text, so that a list of empty ones is bounded too."""


class PageCounter:
    """Counts the pages of one list; `whose` names it for people."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._seen: set[bytes] = set()
        self._chars = 0

    @property
    def has_more(self) -> bool:
        """Whether the first page was not the last."""
        return bool(self._seen)

    def take(self, page: Mapping[str, object], cursor: str | None, checkpoint: Checkpoint) -> str | None:
        """Count a page; return the cursor of the next, or None: one that was there before ends the list.

        An empty text is a cursor too, though many servers mean the end by it. Raises `AnswerRefused`.
        Source: https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination
        """
        self._chars += _chars_of(page, checkpoint)
        if self._chars > LISTED_CHARS_MAX:
            raise AnswerRefused(
                f"{self._whose} has more than {LISTED_CHARS_MAX:,} characters. Tell the server's author."
            )
        if cursor is None:
            return None
        seen = hashlib.sha256(cursor.encode("utf-8", "surrogatepass")).digest()
        if len(cursor) > _CURSOR_CHARS_MAX or len(self._seen) >= PAGES_MAX:
            raise AnswerRefused(f"{self._whose} never ends. Tell the server's author.")
        if seen in self._seen:
            return None
        self._seen.add(seen)
        return cursor


def _chars_of(page: Mapping[str, object], checkpoint: Checkpoint) -> int:
    """Return about how long a page is."""
    chars = counted = 0
    waiting: list[object] = [page]
    while waiting:
        each = waiting.pop()
        counted += 1
        if not counted % _VALUES_PER_CHECKPOINT:
            checkpoint()
        chars += _VALUE_CHARS
        if isinstance(each, str):
            chars += len(each)
        elif isinstance(each, dict):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return chars
