"""The MCP transport over standard input and output: both streams of a connection, without threads or tasks between.

The SDK's own reads and writes in threads, and hands each message on through a task and a queue. Compared with it, the
server's process takes 0.54 of the CPU time for a ping, and 0.82 for `execute_code`. These are medians of 16 times 30
calls each in turns, those of `tests/benchmarks/stdio_latency.py`.

Here the event loop waits for the descriptors, and nothing blocks it. Neither is made non-blocking: that would change
them for every process that shares them (open(2), "open file description"). It reads what poll(2) reports as there, and
writes no more at once than poll(2) reports room for.

A message above `MESSAGE_BYTES_MAX` is answered by an error, and what is left of its line is skipped without being kept.

The end of the input ends the serving, but not at once: a script that pipes its requests in and closes the pipe gets its
answers, if they come within `GRACE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import select
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter

from ...tools_registry.json_lines import LARGE_CHARS, Edges, Lines, TooLong
from ..errors import HostWorkBusy
from ..upstream_tools.large_json import read_large
from .message_bounds import check_message

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""The largest message that is taken."""
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


class _Stream(ABC):
    """What the SDK asks of either stream beside its messages."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close it. May be called twice."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        await self.aclose()


class StandardInput(_Stream):
    """The messages on standard input, for one reader. `idle` returns whether nothing that was read is being worked on.

    A line that is not a message is given as the exception that says so; one that is too large goes to `refuse`.

    Takes descriptor 0 for itself: other readers of it find it empty.
    """

    def __init__(self, idle: Callable[[], bool], refuse: Callable[[JSONRPCError], Awaitable[None]]) -> None:
        self._idle = idle
        self._refuse = refuse
        self._descriptor = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes | TooLong] = deque()
        self._waiting_bytes = 0
        self._reading = False
        self._cut = Lines(MESSAGE_BYTES_MAX)
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

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            while not self._lines:
                if self._ended:
                    raise StopAsyncIteration
                self._wait_for_input()
                self._more = self._loop.create_future()
                await self._more
            line = self._lines.popleft()
            if not isinstance(line, TooLong):
                self._waiting_bytes -= len(line)
            self._reading = True
            try:
                message = await self._message(line)
            finally:
                self._reading = False
            if message is not None:
                return message

    async def _message(self, line: bytes | TooLong) -> SessionMessage | Exception | None:
        """Return the message on a line, or None where it was refused."""
        if isinstance(line, TooLong):
            what = f"is {line.size} bytes large, and at most {MESSAGE_BYTES_MAX} are taken"
            await self._refuse(_refusal(line.edges, what))
            return None
        text = line.decode("utf-8", "replace")
        try:
            if len(text) <= LARGE_CHARS:
                return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
            await check_message(line)
            value = await read_large(text)
        except (ValueError, HostWorkBusy) as error:
            if len(text) <= LARGE_CHARS:
                return error
            await self._refuse(_refusal(Edges.of(line), f"cannot be read: {error}"))
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
        except ValueError as error:
            return error

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises `anyio.EndOfStream` when none will come."""
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Read no more."""
        self.end()

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
            quiet = quiet + 1 if self._idle() and not self._lines and not self._reading else 0
        self.end()


class StandardOutput(_Stream):
    """Messages to standard output. Takes descriptor 1: what others print goes to standard error instead.

    A message that has begun is written to its end, even where its sender is cancelled: a piece would spoil the next.
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

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message. Raises `anyio.BrokenResourceError` without a reader, `ClosedResourceError` at the end."""
        if self._broken:
            raise anyio.BrokenResourceError
        if self._closed:
            raise anyio.ClosedResourceError
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((memoryview(line.encode("utf-8", "backslashreplace")), written))
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


def _refusal(edges: Edges, what: str) -> JSONRPCError:
    message = f"The message {what}. Send less at once, such as a file in parts."
    return JSONRPCError(jsonrpc="2.0", id=edges.asks, error=ErrorData(code=INVALID_REQUEST, message=message))
