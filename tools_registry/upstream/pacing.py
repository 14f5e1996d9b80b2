"""Paces the event streams of one server: however many lines it sends, the event loop is there for others.

Each line of a stream takes work in the event loop, blank ones and comments too. A server may send a burst; beyond it
its streams together are read no faster than `LINES_PER_SECOND`, so that TCP makes the server wait.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator

LINES_PER_SECOND = 5_000
LINES_AT_ONCE = 20_000
"""A burst: what a server that was silent may send without a pause."""

_PIECE_LINES = 250
"""Lines that are given on in one step of the event loop: a hundredth of a second of work."""
_LINE_END = re.compile(rb"[\r\n]")


class Pace:
    """How many lines the streams of one server may still bring. Belongs to one event loop."""

    def __init__(self) -> None:
        self._left = float(LINES_AT_ONCE)
        self._at = time.monotonic()

    async def of(self, stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Give what a stream brings, in pieces of few lines, when there is room for them."""
        async for chunk in stream:
            for piece in _pieces(chunk):
                await self._take(piece.count(b"\n") + piece.count(b"\r"))
                yield piece

    async def _take(self, lines: int) -> None:
        now = time.monotonic()
        self._left = min(float(LINES_AT_ONCE), self._left + (now - self._at) * LINES_PER_SECOND) - lines
        self._at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / LINES_PER_SECOND)
        elif lines >= _PIECE_LINES:
            await asyncio.sleep(0)


def _pieces(chunk: bytes) -> Iterator[bytes]:
    start = 0
    for end in itertools.islice(_LINE_END.finditer(chunk), _PIECE_LINES - 1, None, _PIECE_LINES):
        yield chunk[start : end.end()]
        start = end.end()
    if start < len(chunk):
        yield chunk[start:]
