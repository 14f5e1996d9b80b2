"""Keeps the end of what a server writes to its stderr, without ever letting the server wait for a reader."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

KEPT_BYTES = 64 * 1024
_READ_BYTES = 64 * 1024


class StderrTail:
    """The last `KEPT_BYTES` bytes over all starts of one server."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.written = 0

    @property
    def text(self) -> str:
        """What is kept, as text."""
        return self._kept.decode(errors="replace")

    def last_line_since(self, written: int) -> str:
        """Return the last line that says something, of those that came after `written` bytes; else an empty text."""
        new = min(self.written - written, len(self._kept))
        lines = self._kept[len(self._kept) - new :].decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @contextmanager
    def pipe(self) -> Iterator[TextIO]:
        """Give the end of a pipe to write to; what arrives is kept while the loop runs, and read out at the end."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(reading, self._read, reading, loop)
        try:
            with os.fdopen(writing, "w") as stream:
                yield stream
        finally:
            for _ in range(KEPT_BYTES // 4096):
                if not self._read(reading, loop):
                    break
            loop.remove_reader(reading)
            os.close(reading)

    def _read(self, reading: int, loop: asyncio.AbstractEventLoop) -> bool:
        """Keep what has arrived; say whether there may be more."""
        try:
            chunk = os.read(reading, _READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            loop.remove_reader(reading)
            return False
        self.written += len(chunk)
        self._kept += chunk
        del self._kept[:-KEPT_BYTES]
        return True
