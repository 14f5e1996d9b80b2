"""Reads the messages of servers: a large one elsewhere, and many paced, so that the event loop goes on meanwhile.

An answer that cannot be taken becomes an error for the one call it was for; the connection goes on. Over HTTP the SDK
reads messages itself, in the event loop: there a small one stands in for a large one until the SDK has handed it on.

Each line of a stream takes work in the event loop, blank ones and comments too. A server may send a burst; beyond it
its streams together are read no faster than `LINES_PER_SECOND`, so that TCP makes the server wait.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Self

from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

from ..json_lines import LARGE_CHARS, Edges, Lines, ReadJson, TooLong, is_costly
from ..short_values import holds_more
from .message_faults import MESSAGE_BYTES_MAX, Fault, HttpFault, error_of

BLOCKS_MAX = 5_000
"""Blocks of content in one answer: each is validated in the event loop, against each kind of block that there is."""
TOOLS_MAX = 10_000
"""Tools in one page of a list."""
VALUES_MAX = 50_000
"""Values of a message beside structured content: the SDK validates them in the event loop."""
TOOL_VALUES_MAX = 100_000
"""Values of a page of tools: most stand in their schemas, which are validated faster."""
_LISTS = (
    ("content", BLOCKS_MAX, "blocks of content"),
    ("contents", BLOCKS_MAX, "contents of a resource"),
    ("tools", TOOLS_MAX, "tools at once"),
)
_STRUCTURED = "structuredContent"
_LIGHT_VALUES = 1_000
_EXCERPT_CHARS = 160
_KEPT = "sealab.kept"
_KEPT_MAX = 16
_DATA = b"data:"

Incoming = SessionMessage | Exception


class Unreadable(ValueError):
    """A message that cannot be read, and does not show which call it was for; the text is its beginning."""


async def message(line: bytes | TooLong, read_large: ReadJson) -> Incoming:
    """Return the message on one line, or what stands for it: an error for its call, else the exception."""
    if isinstance(line, TooLong):
        return _refused(line.edges, f"{line.size} bytes, and at most {MESSAGE_BYTES_MAX} are taken")
    try:
        text = line.decode("utf-8", "replace")
        if len(line) <= LARGE_CHARS:
            return _bounded(jsonrpc_message_adapter.validate_json(text, by_name=False))
        value = await read_large(text)
        return _bounded(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValueError as error:
        return error if len(line) <= LARGE_CHARS else _refused(Edges.of(line), str(error))
    except Exception as error:  # noqa: BLE001 - whatever keeps `read_large` from reading one ends no connection
        return _refused(Edges.of(line), str(error))


def _refused(edges: Edges, why: str) -> Incoming:
    number = edges.answers
    if number is None:
        return Unreadable(edges.head.decode("utf-8", "replace")[:_EXCERPT_CHARS])
    return _error(number, why)


def _bounded(item: JSONRPCMessage) -> Incoming:
    """Return the message, or what stands for it where it has more to validate than is taken."""
    if isinstance(item, JSONRPCResponse):
        result = item.result
        for key, most, what in _LISTS:
            given = result.get(key)
            if isinstance(given, list) and len(given) > most:
                return _error(item.id, f"{len(given)} {what}, and at most {most} are taken")
        most = TOOL_VALUES_MAX if "tools" in result else VALUES_MAX
        if holds_more([value for key, value in result.items() if key != _STRUCTURED], most):
            return _error(item.id, f"more than the {most} values that are taken beside structured content")
        structured = result.get(_STRUCTURED)
        if holds_more(structured, _LIGHT_VALUES):
            result[_STRUCTURED] = {_KEPT: _Held(structured)}
    elif not isinstance(item, JSONRPCError) and holds_more(item.params, VALUES_MAX):
        return Unreadable(f"{item.method[:_EXCERPT_CHARS]} with more than {VALUES_MAX} values")
    return SessionMessage(item)


class _Held(str):
    """Holds structured content: the SDK would validate each of its values, and finds a text."""

    __slots__ = ("value",)

    def __new__(cls, _value: object) -> Self:
        """Return an empty text."""
        return super().__new__(cls, "")

    def __init__(self, value: object) -> None:
        self.value = value


def whole(result: CallToolResult) -> CallToolResult:
    """Give a result that the SDK has validated the structured content that was kept from it, if any was."""
    held = result.structured_content.get(_KEPT) if isinstance(result.structured_content, dict) else None
    if isinstance(held, _Held):
        result.structured_content = held.value
    return result


def _error(number: int | str, why: str) -> SessionMessage:
    error = error_of(HttpFault(Fault.TOO_LARGE, 0, why[:_EXCERPT_CHARS]))
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))


class LargeMessages:
    """Holds the large answers of one connection over HTTP while others stand in for them."""

    def __init__(self, read_large: ReadJson) -> None:
        self._read_large = read_large
        self._pace = Pace()
        self._kept: dict[str, SessionMessage] = {}

    async def stand_in(self, text: bytes | TooLong) -> bytes | None:
        """Read an answer and return a small one for `taken`; None where it is none, or does not say which it is."""
        item = await message(text, self._read_large)
        if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCResponse | JSONRPCError):
            return None
        if item.message.id is None:
            return None
        while len(self._kept) >= _KEPT_MAX:  # those of calls that were cancelled just before they were handed on
            del self._kept[next(iter(self._kept))]
        key = uuid.uuid4().hex
        self._kept[key] = item
        small = JSONRPCResponse(jsonrpc="2.0", id=item.message.id, result={_KEPT: key})
        return small.model_dump_json(by_alias=True).encode()

    def taken(self, item: Incoming) -> Incoming:
        """Return what a message stands for, if it stands for one; else the message, bounded as by `message`."""
        if not isinstance(item, SessionMessage):
            return item
        small = item.message
        if not isinstance(small, JSONRPCResponse) or set(small.result) != {_KEPT}:
            bounded = _bounded(small)
            if not isinstance(bounded, SessionMessage):
                return bounded
            item.message = bounded.message
            return item
        kept = self._kept.pop(str(small.result[_KEPT]), None)
        if kept is None:
            error = error_of(HttpFault(Fault.CUT_OFF, 0, "too many large answers came at once"))
            item.message = JSONRPCError(jsonrpc="2.0", id=small.id, error=error)
        else:
            assert isinstance(kept.message, JSONRPCResponse | JSONRPCError)
            item.message = kept.message.model_copy(update={"id": small.id})
        return item

    async def of_events(self, stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Give a stream of events with small answers in the places of large ones.

        An answer stands on one line, `data: {…}`; whatever else there is goes through, no faster than `Pace` allows,
        to a reader that takes `EVENT_BYTES_MAX` of an event.
        Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
        """
        cut = Lines(MESSAGE_BYTES_MAX)
        passes = returned = False
        async for chunk in self._pace.of(stream):
            if passes:
                yield chunk
                continue
            given = bytearray()
            for line in cut.feed(chunk):
                large = isinstance(line, TooLong) or is_costly(line)
                given += (await self._of_line(line) if large else line) + b"\n"  # type: ignore[operator]
            last = chunk.rpartition(b"\n")[2]
            # A stream may end its lines in carriage returns alone: nothing of such a one is held back.
            passes = b"\r" in last[:-1] or (returned and not chunk.startswith(b"\n"))
            returned = last.endswith(b"\r")
            if passes or not _DATA.startswith(cut.start[: len(_DATA)]):
                rest = cut.rest()
                given += rest if isinstance(rest, bytes) else b""
            if given:
                yield bytes(given)
        if isinstance(rest := cut.rest(), bytes):
            yield rest

    async def _of_line(self, line: bytes | TooLong) -> bytes:
        if isinstance(line, TooLong):
            edges = Edges(line.edges.head.removeprefix(_DATA).lstrip(), line.edges.tail)
            small = await self.stand_in(TooLong(line.size, edges))
            return b"data: " + small if small is not None else b": an event above the bound"
        text = line.removeprefix(_DATA).strip()
        small = await self.stand_in(text) if line.startswith(_DATA) and text.endswith(b"}") else None
        return line if small is None else b"data: " + small


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
