"""What the guarded server writes to its standard error: filtered as its answers are, line by line, for the user's log.

The server never waits for it: what comes faster than it can be looked through is left out, and it is said how much.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TextIO

from ....tools_registry.json_lines import Lines, TooLong
from ...base.errors import PrivacyFailed
from ...governance.caller import LOCAL
from ...privacy.privacy import Privacy

LINE_BYTES_MAX = 64 * 1024
WAITING_BYTES_MAX = 1 << 20
_READ_BYTES = 64 * 1024
_LAST_SECONDS = 1.0


class StderrLines:
    """Reads a pipe and writes its lines, with tokens in them, to this process's standard error."""

    def __init__(self, privacy: Privacy, write: Callable[[str], object]) -> None:
        self._privacy = privacy
        self._write = write
        self._cut = Lines(LINE_BYTES_MAX)
        self._waiting: list[str] = []
        self._waiting_bytes = self._left_out = 0
        self._more = asyncio.Event()
        self._ended = False

    def take(self, data: bytes) -> None:
        """Take what was read."""
        for line in self._cut.feed(data):
            self._take_line(line)
        self._more.set()

    def end(self) -> None:
        """Take the end of the input."""
        if (rest := self._cut.rest()) is not None:
            self._take_line(rest)
        self._ended = True
        self._more.set()

    async def write_on(self) -> None:
        """Write what comes, until its end."""
        while self._waiting or self._left_out or not self._ended:
            self._more.clear()
            if not self._waiting and not self._left_out:
                await self._more.wait()
            lines, left_out = self._waiting, self._left_out
            self._waiting, self._waiting_bytes, self._left_out = [], 0, 0
            if lines:
                self._write(await self._shown("".join(lines)))
            if left_out:
                self._write(
                    f"sealab: {left_out} lines of the server's stderr were left out: they are too many or long.\n"
                )

    async def _shown(self, text: str) -> str:
        try:
            return await self._privacy.hide_text(LOCAL.scope, text)
        except PrivacyFailed:
            return (
                f"sealab: {text.count(chr(10))} lines of the server's stderr are withheld: they cannot be filtered.\n"
            )

    def _take_line(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong) or self._waiting_bytes > WAITING_BYTES_MAX:
            self._left_out += 1
            return
        self._waiting_bytes += len(line)
        self._waiting.append(line.decode("utf-8", "replace") + "\n")


@asynccontextmanager
async def filtered_stderr(privacy: Privacy) -> AsyncIterator[TextIO]:
    """Give the end of a pipe to write to, whose lines go to standard error once they are filtered."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reading, False)
    loop = asyncio.get_running_loop()
    lines = StderrLines(privacy, _write)

    def read() -> bool:
        """Take what is there; return whether there may be more."""
        try:
            data = os.read(reading, _READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            lines.take(data)
        else:
            loop.remove_reader(reading)
        return bool(data)

    loop.add_reader(reading, read)
    writer = asyncio.create_task(lines.write_on())
    try:
        with os.fdopen(writing, "w") as stream:
            yield stream
    finally:
        for _ in range(WAITING_BYTES_MAX // _READ_BYTES):
            if not read():
                break
        loop.remove_reader(reading)
        os.close(reading)
        lines.end()
        await asyncio.wait({writer}, timeout=_LAST_SECONDS)
        writer.cancel()


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
