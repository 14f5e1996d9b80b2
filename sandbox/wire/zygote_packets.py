"""The packets between the host and a zygote: fixed and small, since a zygote that writes little copies little.

Down goes the number of the worker that is asked for, and the name of its folder where it has one (`confine.overlay`),
with its two descriptors; or the number of a worker that is to see the workspace as it is now. Up go, once, how the
start went, as a JSON object (`{"notes": […]}` when it is warm, or `{"failed": message, "code": code}`), and then one
packet for each worker that was forked (with its pidfd), or refused, or has ended, or sees the workspace anew.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

_REQUEST = struct.Struct("=cQ")
_FORKED = struct.Struct("=cQi?")
_ENDED = struct.Struct("=cQidd")
_REFUSED = struct.Struct("=cQ")
_REFRESHED = struct.Struct("=cQ?")
_WORDS_BYTES_MAX = 1000


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a worker ended: `status` as in `subprocess` (a negative number is a signal), and what it had used in all.

    Everything is None when the zygote ended too and nothing is known.
    """

    status: int | None = None
    cpu_ms: float | None = None
    memory_peak_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Forked:
    """A worker was forked; `behind_init` says that it is the first process of a pid namespace, with one child."""

    number: int
    pid: int
    behind_init: bool


@dataclass(frozen=True, slots=True)
class ForkRefused:
    """A worker could not be forked."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker has ended and was buried."""

    number: int
    exit: ProcessExit


@dataclass(frozen=True, slots=True)
class Started:
    """The zygote is warm; or, where `failed` says why, it will never be. `notes` say what works less well here."""

    failed: str | None = None
    code: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A worker sees the workspace as it is now; `done` is False where it does not."""

    number: int
    done: bool


Packet: TypeAlias = Forked | ForkRefused | Ended | Started | Refreshed


def request(number: int, run_folder: str = "") -> bytes:
    """Ask for worker `number`, with a folder of this name to write to."""
    return _REQUEST.pack(b"W", number) + run_folder.encode()


def refresh(number: int) -> bytes:
    """Ask that worker `number` sees the workspace as it is now."""
    return _REQUEST.pack(b"R", number)


def is_refresh(packet: bytes) -> bool:
    """Return whether `refresh` made it."""
    return packet[:1] == b"R"


def requested(packet: bytes) -> tuple[int, str]:
    """Read what `request` or `refresh` made."""
    return int(_REQUEST.unpack_from(packet)[1]), packet[_REQUEST.size :].decode()


def refreshed(number: int, *, done: bool) -> bytes:
    """Say whether worker `number` sees the workspace as it is now."""
    return _REFRESHED.pack(b"S", number, done)


def started(notes: Sequence[str] = ()) -> bytes:
    """Say that the zygote is warm, and what works less well on this machine."""
    return json.dumps({"notes": [note[:_WORDS_BYTES_MAX] for note in notes]}).encode()


def failed(message: str, code: str) -> bytes:
    """Say that there will be no zygote."""
    return json.dumps({"failed": message, "code": code}).encode()


def forked(number: int, pid: int, *, behind_init: bool) -> bytes:
    """Say that worker `number` was forked."""
    return _FORKED.pack(b"F", number, pid, behind_init)


def refused(number: int, reason: str) -> bytes:
    """Say that worker `number` was not."""
    return _REFUSED.pack(b"R", number) + reason.encode()[:_WORDS_BYTES_MAX]


def ended(number: int, status: int, cpu_ms: float, memory_peak_mb: float) -> bytes:
    """Say how worker `number` ended."""
    return _ENDED.pack(b"E", number, status, cpu_ms, memory_peak_mb)


def read(packet: bytes) -> Packet:
    """Read what came up."""
    match packet[:1]:
        case b"F":
            return Forked(*_FORKED.unpack(packet)[1:])
        case b"E":
            _kind, number, *how = _ENDED.unpack(packet)
            return Ended(number, ProcessExit(*how))
        case b"R":
            return ForkRefused(_REFUSED.unpack_from(packet)[1], packet[_REFUSED.size :].decode("utf-8", "replace"))
        case b"S":
            return Refreshed(*_REFRESHED.unpack(packet)[1:])
        case _:
            told = json.loads(packet)
            return Started(told.get("failed"), told.get("code", ""), tuple(told.get("notes", ())))
