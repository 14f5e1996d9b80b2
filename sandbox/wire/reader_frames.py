"""What crosses between the host and a reader: a request down, pieces and an answer up, each its length and its bytes.

Down goes the name of a function, and its bytes; after each piece `GO_ON`, without which a reader computes no further.
Up comes one byte that says whether it is a piece, the answer that ends a request, or an error; the host bounds its
length and takes nothing else.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from ..errors import FrameError

_LENGTH = struct.Struct("=I")
ANSWER_BYTES_MAX = 256 << 20
ANSWER, PIECE, ERROR = b"a", b"p", b"e"
_PART_BYTES = 1 << 18
HEAD_BYTES = _LENGTH.size
GO_ON = _LENGTH.pack(0)


def request(name: str, data: bytes, *, of_file: bool = False) -> tuple[bytes, bytes]:
    """Return the head and the body of a request; one `of_file` is to read the file that the reader was given."""
    encoded = name.encode()
    return _LENGTH.pack(2 + len(encoded) + len(data)) + bytes([of_file, len(encoded)]) + encoded, data


def read_request(body: bytes) -> tuple[str, bool, bytes]:
    """Read, in the reader, what `request` made."""
    start = 2 + body[1]
    return body[2:start].decode(), bool(body[0]), body[start:]


@dataclass(frozen=True, slots=True)
class ReaderReply:
    """What came up. A failure is the name of an exception and its text."""

    data: bytes = b""
    is_last: bool = True
    failure: tuple[str, str] | None = None


def read_reply(body: bytes) -> ReaderReply:
    """Read, in the host, what came up. Raises `FrameError`."""
    mark, data = body[:1], body[1:]
    if mark == ERROR:
        kind, _, message = data.decode("utf-8", "replace").partition("\n")
        return ReaderReply(failure=(kind, message))
    if mark not in {ANSWER, PIECE}:
        raise FrameError("A reader sent what is neither a piece, an answer nor an error.")
    return ReaderReply(data, is_last=mark == ANSWER)


def length_of(head: bytes) -> int:
    """Read, in the host, how long an answer is. Raises `FrameError` where that is more than may be."""
    length: int = _LENGTH.unpack(head)[0]
    if not 0 < length <= ANSWER_BYTES_MAX:
        raise FrameError(f"A reader announced an answer of {length} bytes; at most {ANSWER_BYTES_MAX} are taken.")
    return length


def receive(channel_fd: int) -> bytes | None:
    """Wait, in the reader, for a request; None at the end of the channel."""
    head = _exactly(channel_fd, HEAD_BYTES)
    return None if head is None else _exactly(channel_fd, _LENGTH.unpack(head)[0])


def send(channel_fd: int, mark: bytes, data: bytes) -> None:
    """Send `PIECE`, which more follows, `ANSWER`, or `ERROR` with the name of an exception, a line end and its text."""
    for part in (_LENGTH.pack(1 + len(data)) + mark, data):
        view = memoryview(part)
        while view:
            view = view[os.write(channel_fd, view) :]


def _exactly(channel_fd: int, count: int) -> bytes | None:
    parts = []
    while count:
        part = os.read(channel_fd, min(count, _PART_BYTES))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
