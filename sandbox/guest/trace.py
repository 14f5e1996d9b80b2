"""What a run met that a second run of the same program would not: its readings of clocks, and when answers came.

A recorded run sends its trace to the host in pieces, each before the call that follows it, and the last one before its
report. A later run that is given all pieces follows them to their end, and then goes on with what it meets itself. So
the recorded bytes come from the host, but were made by a run that may have been hostile: they are read with a bound on
everything, after confinement, and what they can bring about is a wrong time or `ReplayDiverged`.

A piece is a version, a byte of flags, and two streams, each behind its length: readings and intakes. The pieces of a
run are one trace, joined by nothing. Numbers are LEB128. A reading is `difference << 2 | kind`, with these kinds:

| kind | what follows in the upper bits |
| --- | --- |
| 0 | how many nanoseconds the clock went on since its reading before |
| 1 | the same for the clock of used processor time |
| 2 | how many more readings of the kind before found their clock unmoved |
| 3 | how far the wall clock was set forward, when a run went on after its replay |

An intake is the number of polls that found nothing, then how many answers the next one handed out, and their calls: the
number of each as its difference to the one before, in zigzag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from ..wire.frames import TRACE_BYTES_MAX, TRACE_PIECE_BYTES_MAX

VERSION: Final = 1
CLOCK: Final = 0
PROCESSOR: Final = 1
_REPEATED: Final = 2
_SET_FORWARD: Final = 3
_ENDED: Final = 1
"""The flag of the last piece of a run that ended by itself."""
_FLUSHED_AT_BYTES: Final = TRACE_PIECE_BYTES_MAX // 2
_NUMBER_BITS_MAX: Final = 70
_LOW_BITS: Final = 0x7F
_EXACT_BYTES: Final = 16 * 1024
"""So many bytes of readings, some thousand, are as exact as the clock; then it moves in steps."""
_STEP_BYTES: Final = 64 * 1024
"""Whenever so many more are written the steps double, so that no loop that waits for a time fills the trace."""
_FIRST_STEP_NS: Final = 1_000_000


class ReplayDiverged(BaseException):
    """A run does not do what its trace says. Code that catches it meets it again, and the report has the first one."""


class TraceFull(BaseException):
    """A run met more than can be recorded."""


class _Recorded:
    """A stream that is read."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes = b"") -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def number(self) -> int:
        """Return the next number. Raises ValueError where there is none."""
        number = shift = 0
        while self._at < len(self._data) and shift < _NUMBER_BITS_MAX:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & _LOW_BITS) << shift
            if byte <= _LOW_BITS:
                return number
            shift += 7
        raise ValueError("a number is cut off or too large")

    def take(self, length: int) -> bytes:
        """Return so many bytes. Raises ValueError where there are fewer."""
        data = self._data[self._at : self._at + length]
        if len(data) < length:
            raise ValueError("a piece is cut off")
        self._at += length
        return data


def _add_number(buffer: bytearray, number: int) -> None:
    while number > _LOW_BITS:
        buffer.append(number & _LOW_BITS | 0x80)
        number >>= 7
    buffer.append(number)


class Trace:
    """The trace of the run that this process is at: what is left to follow, and what is to be sent.

    `records` says whether anything is to be sent, `step_ns` in which steps the clock is to move, and `set_forward_ns`
    how far the wall clock was set forward so far. `failure` is what ended the run for the sake of its trace, if
    anything did.
    """

    __slots__ = (
        "_ended", "_flush", "_handed_out", "_intakes", "_is_new", "_kind", "_last_call", "_new_intakes",
        "_new_readings", "_next_step", "_polls", "_polls_left", "_readings", "_readings_bytes", "_repeats",
        "_repeats_left", "_sent_bytes", "failure", "follows", "records", "set_forward_ns", "step_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self._flush: Callable[[], None] | None = None
        self._is_new = False
        self.renew()

    def begin(self, recorded: bytes = b"", *, records: bool = False, flush: Callable[[], None] | None = None) -> None:
        """Begin a run that follows `recorded`. `flush` is called when enough is there to be sent."""
        if not self._is_new:
            self.renew()
        self._is_new = False
        self.records, self._flush = records, flush
        if recorded:
            self.follows = True
            self._read(recorded)

    def renew(self) -> None:
        """Forget all of an earlier run: in the zygote, so that a worker finds it done and copies no page for it."""
        self._is_new = True
        self.follows = self.records = False
        self._flush = None
        self.failure: BaseException | None = None
        self.step_ns = 1
        self.set_forward_ns = 0
        self._new_readings, self._new_intakes = bytearray(), bytearray()
        self._kind = CLOCK
        self._repeats = self._polls = self._repeats_left = self._polls_left = 0
        self._last_call = 0
        self._handed_out: tuple[int, ...] | None = None
        self._readings_bytes = self._sent_bytes = 0
        self._next_step = _EXACT_BYTES
        self._readings, self._intakes = _Recorded(), _Recorded()
        self._ended = False

    def _read(self, recorded: bytes) -> None:
        pieces = _Recorded(recorded)
        readings, intakes = bytearray(), bytearray()
        try:
            while pieces:
                if self._ended:
                    raise ValueError("something follows its end")  # noqa: TRY301 - all errors are reported alike
                version, flags = pieces.take(2)
                if version != VERSION:
                    self.fail(f"its format is {version}, and this version of sealab reads {VERSION}")
                self._ended = bool(flags & _ENDED)
                readings += pieces.take(pieces.number())
                intakes += pieces.take(pieces.number())
        except ValueError as error:
            self.fail(f"it cannot be read: {error}")
        self._sent_bytes = len(recorded)
        self._readings, self._intakes = _Recorded(bytes(readings)), _Recorded(bytes(intakes))
        self._count(len(readings))

    def fail(self, why: str) -> NoReturn:
        """End the run since it does not do what was recorded."""
        if self.failure is None:
            self.failure = ReplayDiverged(f"The run cannot follow its record: {why}.")
        self.records = False
        self.follows = True
        raise self.failure

    def waits_are_over(self) -> bool:
        """Return whether the end of what is waited for is recorded, so that nothing is to be waited for."""
        return self.follows and (bool(self._readings) or self._repeats_left > 0)

    def reading(self, kind: int) -> int | None:
        """Return how far a clock went on since its reading before, or None where the run is ahead of its trace."""
        if self.failure is not None:
            raise self.failure
        while not self._repeats_left:
            if not self._readings:
                self._go_on()
                return None
            number = self._number(self._readings)
            found = number & 3
            if found == _SET_FORWARD:
                self.set_forward_ns += number >> 2
            elif found == _REPEATED:
                self._repeats_left = number >> 2
            else:
                if found != kind:
                    self.fail("it read another clock")
                self._kind = kind
                return number >> 2
        if kind != self._kind:
            self.fail("it read another clock")
        self._repeats_left -= 1
        return 0

    def intake(self) -> Sequence[int] | None:
        """Return the calls whose answers a poll is to hand out, or None where the run is ahead of its trace."""
        if self.failure is not None:
            raise self.failure
        while not self._polls_left and self._handed_out is None and self._intakes:
            self._polls_left = self._number(self._intakes)
            count = self._number(self._intakes)
            self._handed_out = tuple(self._call_number() for _ in range(count)) if count else None
        if self._polls_left:
            self._polls_left -= 1
            return ()
        handed_out, self._handed_out = self._handed_out, None
        if handed_out is None:
            self._go_on()
        return handed_out

    def _call_number(self) -> int:
        number = self._number(self._intakes)
        self._last_call += (number >> 1) ^ -(number & 1)
        return self._last_call

    def _number(self, stream: _Recorded) -> int:
        try:
            return stream.number()
        except ValueError as error:
            self.fail(f"it cannot be read: {error}")

    def _go_on(self) -> None:
        """Leave the trace behind at its end."""
        if self._is_left():
            self.fail("it does not do next what is recorded")
        if self._ended:
            self.fail("it goes on where the recorded run had ended")
        self.follows = False

    def _is_left(self) -> bool:
        return bool(
            self._readings or self._repeats_left or self._intakes or self._polls_left or self._handed_out is not None
        )

    def note_reading(self, kind: int, difference: int) -> None:
        """Record a reading."""
        if not difference and kind == self._kind:
            self._repeats += 1
            return
        self._end_repeats()
        self._kind = kind
        self._add(difference << 2 | kind)

    def note_set_forward(self, nanoseconds: int) -> None:
        """Set the wall clock forward."""
        self.set_forward_ns += nanoseconds
        if self.records:
            self._end_repeats()
            self._add(nanoseconds << 2 | _SET_FORWARD)

    def note_intake(self, calls: Sequence[int]) -> None:
        """Record what a poll handed out."""
        if not calls:
            self._polls += 1
            return
        _add_number(self._new_intakes, self._polls)
        self._polls = 0
        _add_number(self._new_intakes, len(calls))
        for call in calls:
            difference = call - self._last_call
            self._last_call = call
            _add_number(self._new_intakes, difference << 1 if difference >= 0 else (-difference << 1) - 1)
        self._flush_much()

    def piece(self, *, is_last: bool = False) -> bytes | None:
        """Return what was recorded since the last piece, to be sent; None where there is nothing to send."""
        if self.follows and is_last and self._is_left():
            self.fail("it ended before it had done all that is recorded")
        if not self.records or (self.follows and (self._ended or not is_last)):
            return None
        self._end_repeats()
        if self._polls:
            _add_number(self._new_intakes, self._polls)
            self._new_intakes.append(0)
            self._polls = 0
        if not self._new_readings and not self._new_intakes and not is_last:
            return None
        piece = bytearray((VERSION, _ENDED if is_last else 0))
        for stream in (self._new_readings, self._new_intakes):
            _add_number(piece, len(stream))
            piece += stream
            stream.clear()
        self._sent_bytes += len(piece)
        return bytes(piece)

    def _end_repeats(self) -> None:
        if self._repeats:
            repeats, self._repeats = self._repeats, 0
            self._add(repeats << 2 | _REPEATED)

    def _add(self, number: int) -> None:
        before = len(self._new_readings)
        _add_number(self._new_readings, number)
        self._count(len(self._new_readings) - before)
        self._flush_much()

    def _count(self, readings_bytes: int) -> None:
        self._readings_bytes += readings_bytes
        while self._readings_bytes > self._next_step:
            self.step_ns = self.step_ns * 2 if self.step_ns > 1 else _FIRST_STEP_NS
            self._next_step += _STEP_BYTES

    def _flush_much(self) -> None:
        pending = len(self._new_readings) + len(self._new_intakes)
        if pending > _FLUSHED_AT_BYTES:
            if self._sent_bytes + pending > TRACE_BYTES_MAX - TRACE_PIECE_BYTES_MAX:
                self.failure = TraceFull(
                    f"The run met more events than can be recorded: {TRACE_BYTES_MAX} bytes. "
                    "Make fewer calls at once, or split the run."
                )
                raise self.failure
            if self._flush is not None:
                self._flush()


TRACE: Final = Trace()
