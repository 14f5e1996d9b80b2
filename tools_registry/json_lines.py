"""JSON-RPC messages as lines of text: cut out of a stream of bytes in linear time and bounded memory.

A line above the bound is skipped up to its end without being kept: `TooLong` stands in its place and says, from its
beginning and its end alone, which request it asks or answers. Source: https://www.jsonrpc.org/specification, section 4.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import cast

from .models import Json

LARGE_CHARS = 256 * 1024
"""A text up to this size is parsed in the event loop, within a few tens of milliseconds."""

ReadJson = Callable[[str], Awaitable[Json]]
"""Reads a large JSON text while the event loop goes on. Raises `ValueError`."""

EDGE_BYTES = 1024
"""How much of the beginning and of the end of a line that is too long is kept."""

_ID = rb'"id"\s*+:\s*+(-?[0-9]{1,18}+|"[^"\\\x00-\x1f]{0,256}+")\s*+'
_VERSION = rb'"jsonrpc"\s*+:\s*+"2\.0"\s*+'
_KEY = rb'"(result|error|method|params)"\s*+:'
_ID_FIRST = re.compile(
    rb"\s*+\{\s*+(?:" + _VERSION + rb",\s*+)?+" + _ID + rb",\s*+(?:" + _VERSION + rb",\s*+)?+" + _KEY
)
_KEY_FIRST = re.compile(rb"\s*+\{\s*+(?:" + _VERSION + rb",\s*+)?+" + _KEY)
# The last brace of a line closes the message itself, so the members right before it are the message's own.
_ID_LAST = re.compile(rb",\s*+" + _ID + rb"(?:," + rb"\s*+" + _VERSION + rb")?+\}\s*+\Z")
_ANSWERS = frozenset({b"result", b"error"})


async def read_in_thread(text: str) -> Json:
    """Read a JSON text in a thread, where nothing better is given: its one call holds the interpreter to its end."""
    return cast("Json", await asyncio.to_thread(json.loads, text))


_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(_HIGH + rb"(?!" + _LOW + rb")|(?<!" + _HIGH + rb")" + _LOW)
"""Half of a pair of surrogates, or what looks like one where its backslash is escaped itself."""
_ESCAPES = re.compile(rb"(" + _HIGH + _LOW + rb"|\\(?!u[dD][89a-fA-F]).)|" + _HIGH + rb"|" + _LOW, re.DOTALL)


def mended(text: bytes) -> bytes:
    """Return a JSON text in UTF-8 as readers take it, with U+FFFD for each half of a pair of surrogates and wrong byte.

    Other writers let these pass, and a byte order mark before it (RFC 8259, sections 8.1 and 8.2).
    """
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode("utf-8", "replace").encode()
    text = text.removeprefix(codecs.BOM_UTF8)
    if (b"\\ud" in text or b"\\uD" in text) and _HALF.search(text):
        return _ESCAPES.sub(lambda found: found[1] or rb"\ufffd", text)
    return text


@dataclass(frozen=True, slots=True)
class Edges:
    """The beginning and the end of a message, whatever lies between them."""

    head: bytes
    tail: bytes

    @classmethod
    def of(cls, line: bytes | bytearray) -> Edges:
        """Return the edges of a whole line."""
        return cls(bytes(line[:EDGE_BYTES]), bytes(line[-EDGE_BYTES:]))

    @property
    def answers(self) -> int | str | None:
        """The number of the request that this answers, or None where it is not an answer or does not show it."""
        return self._number(answer=True)

    @property
    def asks(self) -> int | str | None:
        """The number of this request, or None where it is not a request or does not show it."""
        return self._number(answer=False)

    def _number(self, *, answer: bool) -> int | str | None:
        found = _ID_FIRST.match(self.head)
        if found is not None:
            number, key = found[1], found[2]
        else:
            begins, ends = _KEY_FIRST.match(self.head), _ID_LAST.search(self.tail)
            if begins is None or ends is None:
                return None
            number, key = ends[1], begins[1]
        if (key in _ANSWERS) is not answer:
            return None
        try:
            return cast("int | str", json.loads(number))
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a line that was skipped."""

    size: int
    edges: Edges


class Lines:
    """Takes bytes however they were cut, and gives whole lines of at most `bytes_max` bytes, without their end."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._line = bytearray()
        self._head = b""
        self._size = 0
        """Of the line so far; above the bound, `_line` holds no more than the end of it."""

    @property
    def start(self) -> bytes:
        """How the unfinished line begins."""
        return bytes(self._line[:EDGE_BYTES]) if self._size <= self._bytes_max else self._head

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished line are held."""
        return len(self._line)

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """Take what was read, and give the lines that end in it."""
        first, *others = data.split(b"\n")
        self._add(first)
        for other in others:
            yield self._taken()
            self._add(other)

    def rest(self) -> bytes | TooLong | None:
        """Give what came after the last end of a line, or None where nothing did."""
        return self._taken() if self._size else None

    def _add(self, piece: bytes) -> None:
        was_kept = self._size <= self._bytes_max
        self._size += len(piece)
        self._line += piece
        if self._size <= self._bytes_max:
            return
        if was_kept:
            self._head = bytes(self._line[:EDGE_BYTES])
        self._line = self._line[-EDGE_BYTES:]

    def _taken(self) -> bytes | TooLong:
        line, size = self._line, self._size
        self._line, self._size = bytearray(), 0
        return bytes(line) if size <= self._bytes_max else TooLong(size, Edges(self._head, bytes(line)))
