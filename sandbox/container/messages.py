"""What the host and the fork server in a container say to each other.

Where the engine passes a socket in (`CONTROL_FD`), each packet is one JSON object, with the descriptors of a worker
where one is asked for:

Downwards:  `{"config", "layers"}` at the start, then `{"fork": {"output_bytes"}}` and `{"kill"}`,
            which is true, or the number of the worker that is meant
Upwards:    one of `{"hello"}`, `{"failed"}`, `{"forked"}`, `{"refused"}` and `{"exit"}`

Else there are the container's standard streams, which have to carry what a worker and its host say to each other too.
Each message is then a frame as in `frames`: a 4-byte big-endian length, one byte for the kind, and the rest. A
container holds one worker at a time, so no message needs to say which.

Downwards:  `J` JSON, as above
            `D` bytes for the worker's channel
            `B` a job follows, and its output begins anew
Upwards:    `J` JSON, as above
            `D` bytes of the worker's channel
            `O` 8 bytes that say where in the output the text that follows begins, and the text

What comes up is hostile: a worker that has broken out of everything inside speaks here too.
"""

from __future__ import annotations

import json
import struct
from typing import Final

from ..job import Json

JSON: Final = b"J"
DATA: Final = b"D"
BEGIN: Final = b"B"
OUTPUT: Final = b"O"
ERRORS: Final = b"E"

CONTROL_FD = 3
"""The number under which an engine passes a socket in."""

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
