"""Lines on standard input and output: without threads or tasks between, and without changing the descriptors.

The event loop waits for the descriptors, and nothing blocks it. Neither is made non-blocking: that would change them
for every process that shares them (open(2), "open file description"). It reads what poll(2) reports as there, and
writes no more at once than poll(2) reports room for.

The end of the input ends the reading, but not at once: a script that pipes its requests in and closes the pipe gets its
answers, if they come within `GRACE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import select
from collections import deque
from collections.abc import Callable
from typing import Self

import anyio

from ...tools_registry.json_lines import Lines, TooLong

GRACE_SECONDS = 2.0
HURRY_SECONDS = 0.5
"""Short, since a client that sends SIGTERM waits a second or two before it sends SIGKILL."""
_LOOK_SECONDS = 0.05
_QUIET_LOOKS = 2
_READ_BYTES = 1 << 16
_WRITE_BYTES = select.PIPE_BUF
"""What can be written without blocking when poll(2) says that there is room (pipe(7))."""
_WRITES_AT_ONCE = 64
"""How often the event loop writes before it looks after others."""
_LINES_WAITING_MAX = 64
_BYTES_WAITING_MAX = 2 * _READ_BYTES
_LOG = logging.getLogger(__name__)


class InputLines:
    """The lines on standard input, for one reader. `idle` returns whether nothing that was read is being worked on.

    Takes descriptor 0 for itself: other readers of it find it empty.
    """

    def __init__(self, bytes_max: int, idle: Callable[[], bool]) -> None:
        self._idle = idle
        self._descriptor = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes | TooLong] = deque()
        self._waiting_bytes = 0
        self._cut = Lines(bytes_max)
        self._more: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended = False
        self._listening = False
        self._polled = True
        self._wait_for_input()

    def end(self) -> None:
        """Let the reader see the end of the input now, whatever is left of it. May be called twice."""
        self._stop_reading()
        self._ended = True
        self._wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | TooLong:
        while not self._lines:
            if self._ended:
                raise StopAsyncIteration
            self._wait_for_input()
            self._more = self._loop.create_future()
            await self._more
        line = self._lines.popleft()
        if not isinstance(line, TooLong):
            self._waiting_bytes -= len(line)
        return line

    def _wait_for_input(self) -> None:
        if self._listening or self._closing is not None or self._ended:
            return
        self._listening = True
        try:
            self._loop.add_reader(self._descriptor, self._read)
        except PermissionError:  # epoll(7) takes no regular file, whose next bytes are always there
            self._polled = False
            self._loop.call_soon(self._read)

    def _stop_reading(self) -> None:
        if self._listening and self._polled:
            self._loop.remove_reader(self._descriptor)
        self._listening = False

    def _read(self) -> None:
        if not self._listening:
            return
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self._stop_reading()
            if (rest := self._cut.rest()) is not None:
                self._queue_line(rest)
            self._closing = self._loop.create_task(self._end_when_quiet())
        else:
            for line in self._cut.feed(data):
                self._queue_line(line)
            if len(self._lines) > _LINES_WAITING_MAX or self._waiting_bytes > _BYTES_WAITING_MAX:
                self._stop_reading()
            elif not self._polled:
                self._loop.call_soon(self._read)
        if self._lines:
            self._wake()

    def _queue_line(self, line: bytes | TooLong) -> None:
        self._lines.append(line)
        if not isinstance(line, TooLong):
            self._waiting_bytes += len(line)

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    async def _end_when_quiet(self) -> None:
        """Wait until nothing was worked on for a moment: what was read has to begin, and answers to be written."""
        deadline = self._loop.time() + GRACE_SECONDS
        quiet = 0
        while quiet < _QUIET_LOOKS and self._loop.time() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            quiet = quiet + 1 if self._idle() and not self._lines else 0
        self.end()


class OutputLines:
    """Lines to standard output. Takes descriptor 1: what others print goes to standard error instead.

    A line that has begun is written to its end, even where its sender is cancelled: a piece would spoil the next.
    `lost` is called when the reader is gone.
    """

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        self._loop = asyncio.get_running_loop()
        self._room = select.poll()
        self._room.register(self._descriptor, select.POLLOUT)
        self._waiting: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._written = 0
        self._deadline = math.inf
        self._closed = False
        self._broken = False

    async def send(self, line: bytes) -> None:
        """Write a line, its end included.

        Raises `anyio.BrokenResourceError` without a reader, `anyio.ClosedResourceError` after the end.
        """
        if self._broken:
            raise anyio.BrokenResourceError
        if self._closed:
            raise anyio.ClosedResourceError
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((memoryview(line), written))
        if len(self._waiting) == 1:
            self._write()
            if self._waiting:
                self._loop.add_writer(self._descriptor, self._write_on)
        await written

    async def aclose(self) -> None:
        """Take no more messages, and wait for those that are being written, as long as the client reads them."""
        self._closed = True
        written, since = self._written, self._loop.time()
        while self._waiting and self._loop.time() < min(since + GRACE_SECONDS, self._deadline):
            await asyncio.sleep(_LOOK_SECONDS)
            if self._written != written:
                written, since = self._written, self._loop.time()
        if self._waiting:
            _LOG.warning("%d messages are lost: the client did not read them.", len(self._waiting))
            self._break_off()

    def hurry(self) -> None:
        """Let `aclose` wait no longer than `HURRY_SECONDS` from now."""
        self._deadline = self._loop.time() + HURRY_SECONDS

    def _write_on(self) -> None:
        self._write()
        if not self._waiting:
            self._loop.remove_writer(self._descriptor)

    def _write(self) -> None:
        """Write what there is room for, and no more than a part of a large message before others have their turn."""
        for _ in range(_WRITES_AT_ONCE):
            if not self._waiting or not self._room.poll(0):
                return
            rest, written = self._waiting[0]
            try:
                count = os.write(self._descriptor, rest[:_WRITE_BYTES])
            except OSError:
                self._break_off()
                self._lost()
                return
            self._written += count
            rest = rest[count:]
            if rest:
                self._waiting[0] = rest, written
                continue
            self._waiting.popleft()
            if not written.done():
                written.set_result(None)

    def _break_off(self) -> None:
        self._broken = True
        self._loop.remove_writer(self._descriptor)
        for _rest, written in self._waiting:
            if not written.done():
                written.set_exception(anyio.BrokenResourceError())
        self._waiting.clear()
