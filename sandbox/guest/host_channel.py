"""The child's end of the channel: sends what the code asks of the host, and hands each answer to who waits for it."""

from __future__ import annotations

import asyncio
import json
import os
import select
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import FrameError
from ..job import Json
from ..wire.frames import CALL_BYTES_MAX, Frames, encode, trace_frame
from .trace import TRACE, ReplayDiverged

_READ_BYTES = 1 << 16
_ANSWER_BYTES_MAX = 1 << 31
"""Answers come from the host, which this end trusts; its memory limit is bound enough."""

_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (
        # Only those that take a single message.
        FileExistsError,
        FileNotFoundError,
        IsADirectoryError,
        KeyError,
        LookupError,
        NotADirectoryError,
        NotImplementedError,
        OSError,
        PermissionError,
        RuntimeError,
        TimeoutError,
        TypeError,
        ValueError,
    )
}


class ToolError(Exception):
    """A call to a tool failed; the message is the server's, and so is what else it answered.

    `structured` is the structured content of the answer, or None, and `content` has its texts.
    """

    __module__ = "builtins"

    structured: Json = None
    content: Json = ()


class OutcomeUnknown(ToolError):
    """Whether a call was done is not known: no answer came, or its run was cut before. It was not sent again."""

    __module__ = "builtins"


_ERRORS["ToolError"] = ToolError
_ERRORS["OutcomeUnknown"] = OutcomeUnknown


class HostGone(BaseException):
    """The host closed the channel: this process has no more work."""


class HostChannel:
    """Calls of the running code to its host.

    The host numbers the calls in the order in which they arrive, from 1, as this end does. While one call is waited
    for, answers to others are kept, so concurrent calls really overlap. Tasks get theirs in `hand_out` alone, after a
    `poll`: what a poll finds is part of the trace of a run, and a run that follows one finds the same.

    A channel that is made without a descriptor is connected later: a worker's is made before the worker.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = -1
        self._frames = Frames(_ANSWER_BYTES_MAX)
        self._calls = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._answers: dict[int, Mapping[str, Json]] = {}
        self._runs: list[dict[str, Json]] = []
        self._due: Sequence[int] = ()
        self._held = b""
        self._calls_before = 0
        self.readable = select.poll()
        if descriptor is not None:
            self.connect(descriptor)

    def connect(self, descriptor: int) -> None:
        """Use this descriptor from now on; `readable` polls it."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self.readable.register(descriptor, select.POLLIN)

    @property
    def descriptor(self) -> int:
        """The descriptor to poll for answers."""
        return self._descriptor

    def is_waited_for(self) -> bool:
        """Return whether a task waits for an answer."""
        return bool(self._waiting)

    def next_run(self) -> dict[str, Json]:
        """Wait for the next job. Raises `HostGone` when none will come."""
        while not self._runs:
            self.readable.poll()
            self.receive()
        return self._runs.pop(0)

    def report(self, data: bytes) -> None:
        """Send the report of a run. Answers that are still awaited are dropped."""
        self._waiting.clear()
        self._answers.clear()
        self._calls_before = self._calls
        self.send(data)

    def hold_trace(self, *, is_last: bool = False) -> None:
        """Send what was recorded of the run since the last piece with the next frame: so the host wakes once."""
        piece = TRACE.piece(is_last=is_last)
        if piece is not None:
            self._held += trace_frame(piece)

    def send_trace(self) -> None:
        """Send what was recorded of the run since the last piece."""
        self.hold_trace()
        self.send(b"")

    def call(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Ask the host and wait for its answer. Raises what the host answered as a Python exception."""
        number = self._ask(name, arguments)
        self._wait_for_answer(number)
        return value_of(self._answers.pop(number))

    async def call_async(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Ask the host without holding up other tasks."""
        number = self._ask(name, arguments)
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        return await future

    def poll(self, milliseconds: float | None = None) -> bool:
        """Wait for an answer that a task waits for, for so long at most; return whether `hand_out` has any.

        Raises `HostGone` at the end of the stream, and `ReplayDiverged`.
        """
        if not self._waiting:
            if milliseconds != 0 and not TRACE.waits_are_over() and self.readable.poll(milliseconds):
                self.receive()
            return False
        recorded = TRACE.intake() if TRACE.follows else None
        if recorded is None:
            self._due = self._arrived()
            if not self._due and self.readable.poll(milliseconds):
                self.receive()
                self._due = self._arrived()
            if TRACE.records:
                TRACE.note_intake([number - self._calls_before for number in self._due])
        else:
            self._due = [number + self._calls_before for number in recorded]
            for number in self._due:
                if number not in self._waiting:
                    TRACE.fail(f"its call {number - self._calls_before} is not one that a task waits for")
                self._wait_for_answer(number)
        return bool(self._due)

    def hand_out(self) -> None:
        """Give the tasks the answers that the last `poll` found."""
        due, self._due = self._due, ()
        for number in due:
            future, answer = self._waiting.pop(number), self._answers.pop(number)
            if not future.done():
                try:
                    future.set_result(value_of(answer))
                except (Exception, ReplayDiverged) as error:  # noqa: BLE001 - an answer is for who asked
                    future.set_exception(error)

    def _arrived(self) -> Sequence[int]:
        return [number for number in self._answers if number in self._waiting]

    def _wait_for_answer(self, number: int) -> None:
        while number not in self._answers:
            self.readable.poll()
            self.receive()

    def receive(self) -> None:
        """Take in what has arrived. Raises `HostGone` at the end of the stream."""
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            raise HostGone from None
        if not data:
            raise HostGone
        self._frames.feed(data)
        while (body := self._frames.next()) is not None:
            frame = json.loads(body)
            if frame["t"] == "run":
                self._runs.append(frame)
            else:
                self._keep(frame)

    def _keep(self, frame: Mapping[str, Json]) -> None:
        self._answers[cast("int", frame["id"])] = frame

    def _ask(self, name: str, arguments: Mapping[str, Json]) -> int:
        try:
            data = encode({"t": "call", "name": name, "args": arguments}, bytes_max=CALL_BYTES_MAX)
        except FrameError as error:
            raise ValueError(f"The arguments of {name} cannot be passed on: {error}") from None
        if TRACE.records:
            self.hold_trace()
        self._calls += 1
        number = self._calls
        self.send(data)
        return number

    def send(self, data: bytes) -> None:
        """Send a whole frame.

        Answers are taken in meanwhile: a host that waits for this side to read must not wait without end.
        """
        rest = memoryview(self._held + data if self._held else data)
        self._held = b""
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                either = select.poll()
                either.register(self._descriptor, select.POLLIN | select.POLLOUT)
                for _descriptor, event in either.poll():
                    if event & select.POLLIN:
                        self.receive()
            except ConnectionError:
                raise HostGone from None


def value_of(answer: Mapping[str, Json]) -> Json:
    """Return what the host answered. Raises what it answered as a Python exception."""
    error = answer.get("error")
    if error is None:
        return answer.get("value")
    failure = cast("Mapping[str, Any]", error)
    if failure["type"] == ReplayDiverged.__name__:
        TRACE.fail(failure["message"])
    raised = _ERRORS.get(failure["type"], RuntimeError)(failure["message"])
    if isinstance(raised, ToolError) and (details := failure.get("details")):
        raised.structured, raised.content = details["structured"], details["content"]
    raise raised
