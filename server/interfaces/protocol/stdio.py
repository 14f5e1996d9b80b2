"""The MCP transport over standard input and output: both streams of a connection, without threads or tasks between.

The SDK's own reads and writes in threads, and hands each message on through a task and a queue. Compared with it, the
server's process takes 0.54 of the CPU time for a ping, and 0.82 for `execute_code`. These are medians of 16 times 30
calls each in turns, trivial ones as `make gate` makes them.

A message above `MESSAGE_BYTES_MAX` is answered by an error, and what is left of its line is skipped without being kept.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, JSONRPCMessage

from ....sandbox.job import Json
from ....tools_registry.json_lines import LARGE_CHARS, Edges, TooLong
from ...base.errors import HostWorkBusy
from ...base.standard_streams import InputLines, OutputLines
from ...use_cases.upstream_tools.large_json import read_large
from .client_messages import Refused, as_message, plain_message, refusal_of
from .message_bounds import checked_message

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""The largest message that is taken."""


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

    What cannot be read, or is too large, is answered by an error that goes to `refuse`: with the id of its request
    where that can be read, else with null. The messages of a batch are given one by one.

    Takes descriptor 0 for itself: other readers of it find it empty.
    """

    def __init__(self, idle: Callable[[], bool], refuse: Callable[[Refused], Awaitable[None]]) -> None:
        self._refuse = refuse
        self._reading = False
        self._batch: list[Json] = []
        """What is left of the messages on one line, the last first."""
        self._lines = InputLines(MESSAGE_BYTES_MAX, lambda: idle() and not self._reading)

    def end(self) -> None:
        """Let the reader see the end of the input now, whatever is left of it. May be called twice."""
        self._lines.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while True:
            line = None if self._batch else await anext(self._lines)
            self._reading = True
            try:
                read = as_message(self._batch.pop()) if line is None else await self._message(line)
                if isinstance(read, Refused):
                    await self._refuse(read)
                elif read is not None:
                    return SessionMessage(read)
            finally:
                self._reading = False

    async def _message(self, line: bytes | TooLong) -> JSONRPCMessage | None:
        """Return the message on a line, or the error that answers it; None for a blank line."""
        if isinstance(line, TooLong):
            what = f"is {line.size} bytes large, and at most {MESSAGE_BYTES_MAX} are taken"
            return refusal_of(INVALID_REQUEST, line.edges.asks, f"{what}. Send less at once, such as a file in parts.")
        if len(line) <= LARGE_CHARS and (plain := plain_message(line)) is not None:
            return plain
        if not line.strip():
            return None
        try:
            text = await checked_message(line)
        except (ValueError, HostWorkBusy) as error:
            why = f"cannot be read: {error}. Send less at once, such as a file in parts."
            return refusal_of(INVALID_REQUEST, Edges.of(line).asks, why)
        try:
            value = await read_large(text.decode()) if len(line) > LARGE_CHARS else json.loads(text, strict=False)
        except (ValueError, HostWorkBusy) as error:
            why = f"is not JSON in UTF-8: {error}. Send one message of JSON-RPC 2.0 a line."
            return refusal_of(PARSE_ERROR, Edges.of(line).asks, why)
        if isinstance(value, list) and value:
            self._batch = value[::-1]
            return None
        return as_message(value)

    async def receive(self) -> SessionMessage:
        """Return the next message. Raises `anyio.EndOfStream` when none will come."""
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Read no more."""
        self.end()


class StandardOutput(_Stream):
    """Messages to standard output. Takes descriptor 1: what others print goes to standard error instead.

    `lost` is called when the reader is gone.
    """

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lines = OutputLines(lost)

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message. Raises `anyio.BrokenResourceError` without a reader, `ClosedResourceError` at the end."""
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        await self._lines.send(line.encode("utf-8", "backslashreplace"))

    async def aclose(self) -> None:
        """Take no more messages, and wait for those that are being written, as long as the client reads them."""
        await self._lines.aclose()

    def hurry(self) -> None:
        """Let `aclose` wait no longer than half a second from now."""
        self._lines.hurry()
