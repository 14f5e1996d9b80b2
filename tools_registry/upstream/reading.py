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
from typing import Any, Self, cast

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, ListToolsResult, Result, jsonrpc_message_adapter

from ..json_lines import LARGE_CHARS, Edges, Lines, ReadJson, TooLong, mended
from ..models import Json
from ..short_values import holds_more
from . import lenient
from .message_faults import MESSAGE_BYTES_MAX, HttpFault, MessageFault, error_of

VALUES_MAX = 50_000
"""Values of a message that the SDK validates in the event loop."""
_EMPTY: dict[str, dict[str, Json]] = {
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

Incoming = SessionMessage | Exception


class UnreadableMessage(ValueError):
    """A message that cannot be read, and does not show which call it was for; the text is its beginning."""


async def message(line: bytes | TooLong, read_large: ReadJson) -> Incoming:
    """Return the message on one line, or what stands for it: an error for its call, else the exception."""
    if isinstance(line, TooLong):
        return _refused(line.edges, f"{line.size} bytes, and at most {MESSAGE_BYTES_MAX} are taken")
    is_large = len(line) > LARGE_CHARS
    try:
        value = await read_large(line.decode("utf-8", "replace")) if is_large else _json(line)
        return SessionMessage(jsonrpc_message_adapter.validate_python(lenient.message(value), by_name=False))
    except ValueError as error:
        return _refused(Edges.of(line), str(error)) if is_large else error
    except Exception as error:  # noqa: BLE001 - whatever keeps `read_large` from reading one ends no connection
        return _refused(Edges.of(line), str(error))


def _json(line: bytes) -> Json:
    """Return what a JSON text holds, with control characters, and U+FFFD for half of a pair of surrogates.

    Raises `UnreadableMessage`.
    """
    try:
        return cast("Json", json.loads(mended(line), strict=False))
    except ValueError:
        raise UnreadableMessage(line.decode("utf-8", "replace")[:_EXCERPT_CHARS]) from None


def _refused(edges: Edges, why: str) -> Incoming:
    number = edges.answers
    if number is None:
        return UnreadableMessage(edges.head.decode("utf-8", "replace")[:_EXCERPT_CHARS])
    return _error(number, why)


def is_read_by_sdk(text: bytes) -> bool:
    """Return whether the SDK's reader of a message, which works in the event loop, takes it as it is meant."""
    if len(text) > LARGE_CHARS or any(code in text for code in lenient.SDK_CODES):
        return False
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return False
    return True


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
                given += await self._of_line(line) + b"\n"
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
        if not line.startswith(_DATA) or not text.endswith(b"}") or is_read_by_sdk(text):
            return line
        small = await self.stand_in(text)
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
