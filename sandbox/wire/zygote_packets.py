"""The packets between the host and a zygote: fixed and small, since a zygote that writes little copies little.

Each is one of `PacketKind`, the number of the worker that is meant, some numbers and a text. Down goes `FORK` with the
name of the worker's folder as text, where it has one (`confine.overlay`), and two descriptors; and `REFRESH`. Up goes,
once, how the start went: `WARM` with notes, or `FAILED` with a code and a message, in JSON. Then comes one packet for
each worker that was `FORKED` (with its pidfd), or `REFUSED`, or has `ENDED`, or was `REFRESHED`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

_HEAD = struct.Struct("=BQqdd")
_TEXT_BYTES_MAX = 60_000


class PacketKind(IntEnum):
    """What a packet says."""

    FORK = 1
    REFRESH = 2
    WARM = 3
    FAILED = 4
    FORKED = 5
    """The worker was forked; its `value` is the pid, negative where that is the first process of a pid namespace."""
    REFUSED = 6
    ENDED = 7
    """The worker has ended and was buried: `value` is the status as in `subprocess`, a negative number is a signal."""
    REFRESHED = 8
    """The worker sees the workspace as it is now; `value` is 0 where it does not."""


class Packet(NamedTuple):
    """One packet."""

    kind: int
    number: int
    value: int
    cpu_ms: float
    memory_peak_mb: float
    text: str


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a worker ended: `status` as in `subprocess` (a negative number is a signal), and what it had used in all.

    Everything is None when the zygote ended too and nothing is known.
    """

    status: int | None = None
    cpu_ms: float | None = None
    memory_peak_mb: float | None = None


def packed(
    kind: PacketKind, number: int = 0, value: int = 0, *, cpu_ms: float = 0, memory_peak_mb: float = 0, text: str = ""
) -> bytes:
    """Return a packet as it is sent; of a long text its beginning."""
    return _HEAD.pack(kind, number, value, cpu_ms, memory_peak_mb) + text.encode()[:_TEXT_BYTES_MAX]


def read(packet: bytes) -> Packet:
    """Read what `packed` returned."""
    kind, number, value, cpu_ms, memory_peak_mb = _HEAD.unpack_from(packet)
    return Packet(kind, number, value, cpu_ms, memory_peak_mb, packet[_HEAD.size :].decode("utf-8", "replace"))
