"""Bounds a list that a server gives in pages: how many there are, how large they are together, and that they end."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel

from ..errors import AnswerRefused

PAGES_MAX = 1_000
"""Pages of one list."""
LISTED_CHARS_MAX = 32_000_000
"""Characters in all pages of one list together."""

_CURSOR_CHARS_MAX = 65_536
_VALUE_CHARS = 8
"""What a value counts beside its text, so that a list of empty ones is bounded too."""


class Pages:
    """Counts the pages of one list; `whose` names it for people."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._seen: set[bytes] = set()
        self._chars = 0

    @property
    def has_more(self) -> bool:
        """Whether the first page was not the last."""
        return bool(self._seen)

    def take(self, page: BaseModel, cursor: str | None) -> None:
        """Count a page and the cursor of the next, where there is one. Raises `AnswerRefused`."""
        self._chars += _chars_of(page)
        if self._chars > LISTED_CHARS_MAX:
            raise AnswerRefused(
                f"{self._whose} has more than {LISTED_CHARS_MAX:,} characters. Tell the server's author."
            )
        if not cursor:
            return
        seen = hashlib.sha256(cursor.encode("utf-8", "surrogatepass")).digest()
        if len(cursor) > _CURSOR_CHARS_MAX or seen in self._seen or len(self._seen) >= PAGES_MAX:
            raise AnswerRefused(f"{self._whose} never ends. Tell the server's author.")
        self._seen.add(seen)


def _chars_of(page: BaseModel) -> int:
    """Return about how long a page is; a page has a bounded number of values."""
    chars = 0
    waiting: list[object] = [page]
    while waiting:
        each = waiting.pop()
        chars += _VALUE_CHARS
        if isinstance(each, str):
            chars += len(each)
        elif isinstance(each, BaseModel):
            waiting += vars(each).values()
        elif isinstance(each, dict):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return chars
