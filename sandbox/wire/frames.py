"""Security boundary: the frames between the server and one child, whose every byte is hostile.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON, one object with the key `t`. Downwards go `run`
and `answer`; upwards come `ready` (once), `call` (numbered by the host in order of arrival, from 1), `trace` (a piece
of what the worker recorded of its run, before what follows it) and `done` (one for each `run`). What comes up is
bounded before it is decoded: bytes, nesting and the number of values (`bounded_json`). Only a frame that begins as a
worker's `done` does may be large: all others are held to `CALL_BYTES_MAX` by their first bytes. Anything else raises
`FrameError`, and the pool kills the child.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias, cast

from ..confine.limits import Allowance, processes_of
from ..errors import FrameError
from ..job import Isolation, Job, Json, Outcome, Start
from .bounded_json import DEPTH_MAX, STEP_CHARS, read, read_in_steps, write, write_in_steps
from .report_frame import JudgeFrame, data, fields, many, outcome_of, text

FRAME_BYTES_MAX = 32 * 1024 * 1024
CALL_BYTES_MAX = 5 * 1024 * 1024
"""The most that one host call holds; larger files travel in parts."""
TRACE_PIECE_BYTES_MAX = 256 * 1024
TRACE_BYTES_MAX = 8 * 1024 * 1024
"""The most that is recorded of one run, and that a run can be given to follow."""
SMALL_BYTES_MAX = STEP_CHARS // 2
"""A frame up to this size is decoded within a millisecond or two, a larger one in steps."""
VALUES_MAX = 1_000_000
"""JSON values in one frame: an empty object is 3 bytes on the wire and over 64 in memory."""
CALL_VALUES_MAX = 250_000
DONE_START = b'{"t":"done",'
"""How a worker's `done` begins."""
NAME_CHARS_MAX = 256
EXIT_WITHOUT_REPORT = 70
"""Exit status of a worker that could not confine itself, or not say how its job ended (sysexits.h, EX_SOFTWARE)."""

_LENGTH = struct.Struct(">I")
HEADER_BYTES = _LENGTH.size


@dataclass(frozen=True, slots=True)
class Ready:
    """The child is confined and waits for its job; `layers` are those it could really switch on."""

    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """The code asks the host for something. Who asks is known from the channel, never from the frame."""

    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class TracePiece:
    """A piece of a run's trace. To the host these are bytes, which it keeps for another run to follow."""

    piece: bytes


ChildFrame: TypeAlias = Ready | Call | TracePiece | Outcome


class Frames:
    """Cuts a stream of bytes into frame bodies, however the bytes were chunked.

    `done_bytes_max` bounds what begins with `DONE_START`, `bytes_max` all others.
    """

    def __init__(self, bytes_max: int = CALL_BYTES_MAX, done_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._done_bytes_max = done_bytes_max
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take what was read.

        Raises `FrameError` as soon as a length above the limit stands at the front.
        """
        self._buffer += data
        self._announced()

    def next(self) -> bytes | None:
        """Give the body of the next whole frame, or None until more bytes come. Raises `FrameError`."""
        length = self._announced()
        if length is None or len(self._buffer) < HEADER_BYTES + length:
            return None
        body = bytes(memoryview(self._buffer)[HEADER_BYTES : HEADER_BYTES + length])
        del self._buffer[: HEADER_BYTES + length]
        return body

    def _announced(self) -> int | None:
        if len(self._buffer) < HEADER_BYTES:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        bytes_max = self._bytes_max
        if length > bytes_max:
            start = self._buffer[HEADER_BYTES : HEADER_BYTES + len(DONE_START)]
            if DONE_START.startswith(start):  # as far as it has come
                bytes_max = max(bytes_max, self._done_bytes_max)
        if not 0 < length <= bytes_max:
            raise FrameError(f"A frame announces {length} bytes; 1 to {bytes_max} are allowed.")
        return cast("int", length)


def encode(frame: Mapping[str, Json], *, bytes_max: int = FRAME_BYTES_MAX, in_steps: bool = False) -> bytes:
    """Make a whole frame of an object; lone surrogates travel as escapes.

    With `in_steps` other threads run meanwhile. Raises `FrameError` when it is too large or too deep, or holds what
    JSON cannot (NaN, infinities, cycles), and TypeError for what is not a JSON value at all.
    """
    try:
        text = (write_in_steps if in_steps else write)(frame)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"It is not JSON: {error}.") from None
    # Only strings can hold lone surrogates, and there Python's way to escape them is JSON's too.
    body = text.encode("utf-8", "backslashreplace")
    if len(body) > bytes_max:
        raise FrameError(f"It is {len(body)} bytes large; at most {bytes_max} can be sent at once.")
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes) -> dict[str, Json]:
    """Read one frame body under all bounds, a large one in steps. Raises `FrameError` and nothing else."""
    values_max = VALUES_MAX if body.startswith(DONE_START) else CALL_VALUES_MAX
    try:
        frame = (read if len(body) <= SMALL_BYTES_MAX else read_in_steps)(body, values_max=values_max)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"A frame is not the JSON it should be: {error}") from None
    if not isinstance(frame, dict):
        raise FrameError("A frame is not a JSON object.")
    return cast("dict[str, Json]", frame)


def _object(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise FrameError("A call frame's arguments are not an object.")
    return value


def _call(name: str, args: Mapping[str, Json]) -> Call:
    return Call(name, args)


_KINDS: Mapping[str, JudgeFrame[ChildFrame]] = {
    "ready": fields(Ready, layers=many(DEPTH_MAX, text(NAME_CHARS_MAX))),
    "call": fields(_call, name=text(NAME_CHARS_MAX), args=_object),
    "trace": fields(TracePiece, piece=data(TRACE_PIECE_BYTES_MAX)),
    "done": outcome_of,
}


def child_frame(body: bytes) -> ChildFrame:
    """Read what a child sent. Raises `FrameError` for anything but the four frames exactly as they should be."""
    frame = decode(body)
    kind = frame.pop("t", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise FrameError("A frame is of no kind that a child may send.")
    if kind == "done" and (b"\\ud" in body or b"\\uD" in body):
        # Surrogates that stand alone cannot be written as UTF-8, so no report could hold them.
        frame = cast("dict[str, Json]", _without_surrogates(frame))
    return _KINDS[kind](frame)


def trace_frame(piece: bytes) -> bytes:
    """Make the frame of a piece of a trace."""
    return encode({"t": "trace", "piece": base64.b64encode(piece).decode("ascii")})


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            slices = (value[at : at + STEP_CHARS] for at in range(0, len(value), STEP_CHARS))
            return "".join(each.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for each in slices)
        return value
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {str(_without_surrogates(name)): _without_surrogates(item) for name, item in value.items()}
    return value


def encode_job(job: Job, isolation: Isolation, *, records: bool = False) -> bytes:
    """Make the `run` frame of a job that has a start; `records` asks for its trace.

    Raises `FrameError` when it is too large to send, or holds what JSON cannot.
    """
    if len(job.trace) > TRACE_BYTES_MAX:
        raise FrameError(f"Its trace is {len(job.trace)} bytes large; at most {TRACE_BYTES_MAX} can be followed.")
    start = job.start or Start.now()
    session = job.session is not None
    allowance = Allowance.of(job.limits, session=session, processes=processes_of(isolation, job.limits))
    return encode(
        {
            "t": "run",
            "code": job.code,
            "vars": job.context_vars,
            "limits": allowance.to_json(),
            "session": session,
            "reads": None if job.reads is None else asdict(job.reads),
            "within": job.within,
            "arguments": job.arguments,
            "literals": job.literals,
            "tells_reads": job.tells_reads,
            "seed": start.seed.hex(),
            "time_ns": start.time_ns,
            "trace": base64.b64encode(job.trace).decode("ascii"),
            "records": records,
            "threads": job.threads,
        }
    )
