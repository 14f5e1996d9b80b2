"""What the host and the fork server in a container say to each other, over the container's standard streams.

Each message is a frame as in `protocol`: a 4-byte big-endian length, then one byte for the kind and the rest. A
container holds one worker at a time, so no message needs to say which.

Downwards:  `J` JSON, the orders at the start, then `{"fork": {"rehearse"}}`
            `D` bytes for the worker's channel
            `B` a job follows, and its output begins anew
            `K` end the worker now
Upwards:    `J` JSON, one of `{"hello"}`, `{"failed"}`, `{"forked"}`, `{"refused"}` and `{"exit"}`
            `D` bytes of the worker's channel
            `O` 8 bytes that say where in the output the text that follows begins, and the text

What comes up is hostile: a worker that has broken out of everything inside speaks here too.
"""

from __future__ import annotations

import json
import struct
from typing import Final

from ..run import Json

JSON: Final = b"J"
DATA: Final = b"D"
BEGIN: Final = b"B"
OUTPUT: Final = b"O"
KILL: Final = b"K"

CHUNK_BYTES = 1 << 16
MESSAGE_BYTES_MAX = 1 << 20
POSITION = struct.Struct(">Q")

_LENGTH = struct.Struct(">I")
HEADER_BYTES = _LENGTH.size


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Make one message."""
    return _LENGTH.pack(1 + len(body)) + kind + body


def words(**said: Json) -> bytes:
    """Make a message of JSON."""
    return message(JSON, json.dumps(said).encode())


def length(header: bytes | bytearray) -> int:
    """Read how long a message is. Raises ValueError for what no message may be."""
    (size,) = _LENGTH.unpack(header)
    if not 1 <= size <= MESSAGE_BYTES_MAX:
        raise ValueError(f"a message of {size} bytes")
    return int(size)
