"""Reads the messages of servers: a large one elsewhere, and many paced, so that the event loop goes on meanwhile.

An answer that cannot be taken becomes an error for the one call it was for; the connection goes on. Over HTTP the SDK
reads messages itself, in the event loop: there a small one stands in for a large one until the SDK has handed it on.

Each line of a stream takes work in the event loop, blank ones and comments too. A server may send a burst; beyond it
its streams together are read no faster than `LINES_PER_SECOND`, so that TCP makes the server wait.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, cast

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, ListToolsResult, Result, jsonrpc_message_adapter

from ..json_lines import LARGE_CHARS, Edges, Lines, ReadJson, TooLong, mended
from ..models import Json
from ..short_values import holds_more
from . import lenient
from .message_faults import EVENT_BYTES_MAX, MESSAGE_BYTES_MAX, HttpFault, MessageFault, error_of

VALUES_MAX = 50_000
"""Values of a message that the SDK validates in the event loop."""
_EMPTY: dict[str, dict[str, Json]] = {
    "initialize": {},
    "tools/list": {"tools": []},
    "tools/call": {"content": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": []},
    "prompts/list": {"prompts": []},
}
"""What the SDK gets in the place of a result that is read here: its models would refuse the whole for one odd part."""
_COMPLETE: dict[str, Json] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_ASKED_MAX = 4_096
_HEADER = "x-mcp-header"
_HEADER_VALUES_MAX = 100_000
"""Values of a page of tools that is looked through for such arguments."""
_EXCERPT_CHARS = 160
_KEPT = "sealab.kept"
_KEPT_MAX = 16
_DATA = b"data:"
_BATCH_MAX = 100
_TERMINAL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_=>78])|\x00")
"""Sequences for a terminal. Source: ECMA-48, section 5."""

Incoming = SessionMessage | Exception


class UnreadableMessage(ValueError):
    """A message that cannot be read, and does not show which call it was for; the text is its beginning."""


async def messages(line: bytes | TooLong, read_large: ReadJson, number: int | str | None = None) -> list[Incoming]:
    """Return the messages on one line, or what stands for one: an error for its call, else the exception.

    They are several in a batch, as protocol 2025-03-26 has it. Where the answer to one request alone can stand here,
    `number` is that request's, and every answer is taken as that one.
    """
    if isinstance(line, TooLong):
        return [_refused(line.edges, f"{line.size} bytes, and at most {MESSAGE_BYTES_MAX} are taken", number)]
    is_large = len(line) > LARGE_CHARS
    try:
        value = await read_large(line.decode("utf-8", "replace")) if is_large else _json(line)
        batch = value if isinstance(value, list) and 0 < len(value) <= _BATCH_MAX else [value]
        return [_message(each, number) for each in batch]
    except ValueError as error:
        return [_refused(Edges.of(line), str(error), number) if is_large else error]
    except Exception as error:  # noqa: BLE001 - whatever keeps `read_large` from reading one ends no connection
        return [_refused(Edges.of(line), str(error), number)]


def _message(value: Json, number: int | str | None) -> Incoming:
    return SessionMessage(jsonrpc_message_adapter.validate_python(lenient.message(value, number), by_name=False))


def _json(line: bytes) -> Json:
    """Return what a JSON text holds, with control characters, and U+FFFD for half of a pair of surrogates.

    Sequences for a terminal, such as its title, may stand around it. Raises `UnreadableMessage`.
    """
    for text in (line, _TERMINAL.sub(b"", line)):
        with suppress(ValueError):
            return cast("Json", json.loads(mended(text), strict=False))
    raise UnreadableMessage(line.decode("utf-8", "replace")[:_EXCERPT_CHARS])


def _refused(edges: Edges, why: str, number: int | str | None) -> Incoming:
    number = edges.answers if number is None else number
    if number is None:
        return UnreadableMessage(edges.head.decode("utf-8", "replace")[:_EXCERPT_CHARS])
    return _error(number, why)


def is_read_by_sdk(text: bytes, number: int | str | None = None) -> bool:
    """Return whether the SDK's reader of a message, which works in the event loop, takes it as it is meant.

    `number` is that of the request which it answers, if it is an answer; None where it may be any.
    """
    if len(text) > LARGE_CHARS:
        return False
    try:
        read = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return False
    if isinstance(read, JSONRPCError) and read.error.code in lenient.SDK_CODES:
        return False
    return not isinstance(read, JSONRPCResponse | JSONRPCError) or number in {None, read.id}


class _Held(str):
    """Holds a result that the SDK is to hand on and not to validate; it finds a text."""

    __slots__ = ("offered", "value")

    def __new__(cls, _value: object, _offered: object) -> Self:
        """Return an empty text."""
        return super().__new__(cls, "")

    def __init__(self, value: Mapping[str, Any], offered: Sequence[Mapping[str, Any]]) -> None:
        self.value = value
        self.offered = offered
        """The tools that the SDK got to see."""


def whole(result: Result) -> Mapping[str, Any]:
    """Return a result as its server sent it, after the SDK has handed on what stands in for it."""
    held = _held_in(result.meta)
    return result.model_dump(by_alias=True, exclude_none=True) if held is None else held.value


def dropped(page: ListToolsResult) -> frozenset[str]:
    """Return the tools of a page that the SDK refused: the header that an argument is to go into is not right."""
    held = _held_in(page.meta)
    offered = () if held is None else held.offered
    return frozenset(str(each["name"]) for each in offered) - {each.name for each in page.tools}


def as_sent(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result for which one stands in, or this one where it stands for itself."""
    held = _held_in(result.get("_meta"))
    return result if held is None else held.value


def _held_in(meta: object) -> _Held | None:
    held = meta.get(_KEPT) if isinstance(meta, Mapping) else None
    return held if isinstance(held, _Held) else None


def _stood_in(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return what stands in for a result. The SDK has to see which arguments of tools go into headers of HTTP."""
    if method == "initialize":
        return lenient.initialized(result)
    made, tools = {**_EMPTY[method], **_COMPLETE}, result.get("tools")
    offered: list[dict[str, Any]] = []
    if method == "tools/list" and isinstance(tools, list) and not holds_more(tools, _HEADER_VALUES_MAX):
        offered = [
            {"name": each["name"], "inputSchema": each["inputSchema"]}
            for each in tools
            if isinstance(each, dict) and isinstance(each.get("name"), str) and _has_header(each.get("inputSchema"))
        ]
        made["tools"] = offered
    if isinstance(cursor := result.get("nextCursor"), str):
        made["nextCursor"] = cursor
    return made | {"_meta": {_KEPT: _Held(result, offered)}}


def _has_header(schema: object) -> bool:
    """Return whether an argument of an input schema is to be sent in a header of HTTP too (SEP-2243)."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        properties = each.get("properties") if isinstance(each, dict) else None
        if isinstance(properties, dict):
            if any(isinstance(one, dict) and _HEADER in one for one in properties.values()):
                return True
            waiting += properties.values()
    return False


def _error(number: int | str, why: str) -> SessionMessage:
    return _fault(number, MessageFault.TOO_LARGE, why[:_EXCERPT_CHARS])


def _fault(number: int | str, fault: MessageFault, why: str) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error_of(HttpFault(fault, 0, why))))


class Answers:
    """Holds the answers of one connection while others stand in for them: the SDK hands on, and does not judge."""

    def __init__(self, read_large: ReadJson) -> None:
        self._read_large = read_large
        self._pace = Pace()
        self._kept: dict[str, SessionMessage] = {}
        self._asked: dict[int | str, str] = {}
        """The methods of requests under way whose results are read here."""

    def asked(self, item: SessionMessage) -> None:
        """Note what is asked; a request without an answer is forgotten after thousands of others."""
        if isinstance(item.message, JSONRPCRequest) and item.message.method in _EMPTY:
            while len(self._asked) >= _ASKED_MAX:
                del self._asked[next(iter(self._asked))]
            self._asked[item.message.id] = item.message.method

    async def stand_ins(self, text: bytes | TooLong, number: int | str | None = None) -> list[bytes]:
        """Read what holds an answer and return a small one for `taken`, with the other messages of its batch.

        Nothing where it is none, or does not say which it is. `number` is as `messages` has it.
        """
        items = await messages(text, self._read_large, number)
        small = [self._small(item) for item in items if isinstance(item, SessionMessage)]
        return [each for each in small if each is not None]

    def _small(self, item: SessionMessage) -> bytes | None:
        if not isinstance(item.message, JSONRPCResponse | JSONRPCError):
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            return text if len(text) <= LARGE_CHARS else None
        if item.message.id is None:
            return None
        while len(self._kept) >= _KEPT_MAX:  # those of calls that were cancelled just before they were handed on
            del self._kept[next(iter(self._kept))]
        key = uuid.uuid4().hex
        self._kept[key] = item
        small = JSONRPCResponse(jsonrpc="2.0", id=item.message.id, result={_KEPT: key})
        return small.model_dump_json(by_alias=True).encode()

    def taken(self, item: Incoming) -> Incoming:
        """Return what a message stands for, if it stands for one, ready for the SDK."""
        if not isinstance(item, SessionMessage):
            return item
        small = item.message
        if isinstance(small, JSONRPCResponse) and set(small.result) == {_KEPT}:
            kept = self._kept.pop(str(small.result[_KEPT]), None)
            if kept is None:
                return _fault(small.id, MessageFault.CUT_OFF, "too many large answers came at once")
            assert isinstance(kept.message, JSONRPCResponse | JSONRPCError)
            item.message = kept.message.model_copy(update={"id": small.id})
        return self._for_sdk(item)

    def _for_sdk(self, item: SessionMessage) -> Incoming:
        read = item.message
        if isinstance(read, JSONRPCResponse):
            number = read.id
            if number not in self._asked and isinstance(number, str) and number.isdecimal():
                number = int(number)  # some answer with the text of the number
            method = self._asked.pop(number, None)
            if method is not None and read.result.get("resultType") in {None, "complete"}:
                item.message = JSONRPCResponse(jsonrpc="2.0", id=number, result=_stood_in(method, read.result))
            elif holds_more(read.result, VALUES_MAX):
                return _error(read.id, f"more than the {VALUES_MAX} values that are taken")
        elif isinstance(read, JSONRPCError):
            self._asked.pop(cast("int | str", read.id), None)
        elif holds_more(read.params, VALUES_MAX):
            return UnreadableMessage(f"{read.method[:_EXCERPT_CHARS]} with more than {VALUES_MAX} values")
        return item

    async def of_events(self, stream: AsyncIterable[bytes], number: int | str | None = None) -> AsyncIterator[bytes]:
        """Give a stream of events with small answers in the places of those that the SDK would not read as meant.

        Whatever else there is goes through, no faster than `Pace` allows, to a reader that takes `EVENT_BYTES_MAX` of
        an event. `number` is as `messages` has it.
        Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
        """
        cut = Lines(MESSAGE_BYTES_MAX)
        event = _Event()
        passes = returned = False
        async for chunk in self._pace.of(stream):
            if passes:
                yield chunk
                continue
            given = bytearray()
            for line in cut.feed(chunk):
                if not event.takes(line):
                    given += await self._with_end(event, line, number)
                    event = _Event(is_over=line not in _ENDS)
            last = chunk.rpartition(b"\n")[2]
            # A stream may end its lines in carriage returns alone: nothing of such a one is held back.
            passes = b"\r" in last[:-1] or (returned and not chunk.startswith(b"\n"))
            returned = last.endswith(b"\r")
            if passes or not any(field.startswith(cut.start[: len(field)]) for field in _FIELDS):
                given += event.as_sent()
                event = _Event(is_over=True)
                rest = cut.rest()
                given += rest if isinstance(rest, bytes) else b""
            if given:
                yield bytes(given)
        rest = cut.rest()
        if rest is not None and not event.takes(rest):
            yield await self._with_end(event, rest, number)
        elif event.lines:
            yield await self._with_end(event, b"", number)

    async def _with_end(self, event: _Event, line: bytes | TooLong, number: int | str | None) -> bytes:
        """Return what is given on of an event before a line that is not its own, and that line."""
        given = await self._of_event(event, number) if line in _ENDS else event.as_sent()
        return given if isinstance(line, TooLong) else given + line + b"\n"

    async def _of_event(self, event: _Event, number: int | str | None) -> bytes:
        """Return the lines of an event, or of several in the place of a batch, without the empty line at the end."""
        data = [line for line in event.lines if isinstance(line, TooLong) or line.startswith(_DATA)]
        named = any(isinstance(line, bytes) and _NAMED.match(line) for line in event.lines)
        if len(data) == 1 and isinstance(data[0], TooLong):
            edges = data[0].edges
            edges = Edges(edges.head.removeprefix(_DATA).lstrip(), edges.tail)
            small = await self.stand_ins(TooLong(data[0].size, edges), number)
        else:
            text = b"\n".join(line.removeprefix(_DATA) for line in data if isinstance(line, bytes)).strip()
            if not text or (is_read_by_sdk(text, number) and not named):
                return event.as_sent()
            small = await self.stand_ins(text, number)
            if not small and (named or b'"jsonrpc"' in text):
                return event.as_sent()
        kept = [line for line in event.lines if isinstance(line, bytes) and line.startswith((b"id", b"retry"))]
        # A sign of life is no message, and the SDK would end the request with it.
        return _joined(kept) + b"\n\n".join(b"data: " + each for each in small or [b""]) + b"\n"


_FIELDS = (_DATA, b"event:", b"id:", b"retry:", b"\r")
_NAMED = re.compile(rb"event:(?! ?message\r?\Z)")
"""The line of a name with which the SDK leaves an event aside."""
_ENDS = frozenset({b"", b"\r"})
_EVENT_LINES_MAX = 1_000


class _Event:
    """The lines of an event so far. One of many lines is given on as it was sent: an answer stands on one line."""

    def __init__(self, *, is_over: bool = False) -> None:
        """`is_over` says that its beginning was given on."""
        self.lines: list[bytes | TooLong] = []
        self._is_over = is_over
        self._size = self._longest = 0

    def takes(self, line: bytes | TooLong) -> bool:
        """Take a line, unless it ends the event, or there are too many."""
        size = len(line) if isinstance(line, bytes) else 0
        self._size += size
        self._longest = max(self._longest, size)
        if self._is_over or line in _ENDS or len(self.lines) >= _EVENT_LINES_MAX:
            return False
        if self._size - self._longest > EVENT_BYTES_MAX:
            return False
        self.lines.append(line)
        return True

    def as_sent(self) -> bytes:
        """Return the lines as they were sent, without one above the bound."""
        return _joined(self.lines)


def _joined(lines: Sequence[bytes | TooLong]) -> bytes:
    return b"".join(line + b"\n" for line in lines if isinstance(line, bytes))


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
