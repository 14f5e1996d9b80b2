"""The MCP transport over standard input and output, without threads.

The SDK's own reads and writes in threads: five hand-overs a message, which cost more than the message, and a read that
nothing can interrupt. Here the event loop waits for the descriptors, and nothing blocks it: neither is made
non-blocking, since that would reach everybody who shares them (open(2), "open file description"); instead it reads what
poll(2) says is there, and writes no more at once than poll(2) says there is room for.

The end of the input ends the serving, but not at once: a script that pipes its requests in and closes the pipe gets its
answers, if they come within `GRACE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Self

GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.05
_QUIET_LOOKS = 2
_READ_BYTES = 1 << 16
_WRITE_BYTES = select.PIPE_BUF
"""What can be written without blocking when poll(2) says that there is room (pipe(7))."""
_LINES_WAITING_MAX = 64


class StandardInput:
    """The lines of standard input, for one reader. `idle` tells whether nothing that was read is being worked on.

    Takes descriptor 0 for itself: whoever else reads it finds it empty.
    """

    def __init__(self, idle: Callable[[], bool]) -> None:
        self._idle = idle
        self._descriptor = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._more: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended = False
        self._listening = False
        self._polled = True
        self._listen()

    def end(self) -> None:
        """Let the reader see the end of the input now, whatever is left of it. May be called twice."""
        self._deafen()
        self._ended = True
        self._wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while not self._lines:
            if self._ended:
                raise StopAsyncIteration
            self._listen()
            self._more = self._loop.create_future()
            await self._more
        return self._lines.popleft().decode("utf-8", "replace")

    def _listen(self) -> None:
        if self._listening or self._closing is not None or self._ended:
            return
        self._listening = True
        try:
            self._loop.add_reader(self._descriptor, self._read)
        except PermissionError:  # epoll(7) takes no regular file, whose next bytes are always there
            self._polled = False
            self._loop.call_soon(self._read)

    def _deafen(self) -> None:
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
            self._deafen()
            if self._rest:
                self._lines.append(bytes(self._rest))
                self._rest.clear()
            self._closing = self._loop.create_task(self._end_when_quiet())
        else:
            first, *others = data.split(b"\n")
            self._rest += first
            for other in others:
                self._lines.append(bytes(self._rest))
                self._rest = bytearray(other)
            if len(self._lines) > _LINES_WAITING_MAX:
                self._deafen()
            elif not self._polled:
                self._loop.call_soon(self._read)
        if self._lines:
            self._wake()

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


class StandardOutput:
    """Standard output, for one writer. Takes descriptor 1: what others print goes to standard error instead."""

    def __init__(self) -> None:
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        self._loop = asyncio.get_running_loop()
        self._room = select.poll()
        self._room.register(self._descriptor, select.POLLOUT)

    async def write(self, text: str) -> None:
        """Write all of it. Raises `BrokenPipeError` when nobody reads any more."""
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
        while rest:
            if not self._room.poll(0):
                await self._until_room()
            rest = rest[os.write(self._descriptor, rest[:_WRITE_BYTES]) :]

    async def flush(self) -> None:
        """Have nothing to do: nothing is held back."""

    async def _until_room(self) -> None:
        room: asyncio.Future[None] = self._loop.create_future()

        def tell() -> None:
            if not room.done():
                room.set_result(None)

        self._loop.add_writer(self._descriptor, tell)
        try:
            await room
        finally:
            with suppress(OSError):
                self._loop.remove_writer(self._descriptor)
