"""The child's end of the channel where code has threads and event loops of its own."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import cast

from ..guest.host_channel import HostChannel, HostGone, value_of
from ..job import Json

_UNANSWERED: Mapping[str, Json] = {
    "error": {"type": "RuntimeError", "message": "The run in which this was asked has ended, so there is no answer."}
}
_READER_LEAVES_MS = 50
"""A thread that can neither write nor read checks so often whether another thread still reads."""


class ThreadedChannel(HostChannel):
    """Of the threads that wait, one reads and hands out what came; when it has its own, another takes its place.

    A loop that waits for an answer reads the channel itself, unless a thread does. Each wait polls with an object of
    its own: `select.poll` refuses to be used by two threads at once.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        super().__init__(descriptor)
        self._sending = threading.RLock()
        self._news = threading.Condition()
        self._is_read = False
        self._last_unanswered = 0

    def next_run(self) -> dict[str, Json]:
        """Wait for the next job. Raises `HostGone` when none will come."""
        self._wait_for(lambda: bool(self._runs))
        return self._runs.pop(0)

    def call(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Ask the host and wait for its answer, as long as the run lasts in which it was asked."""
        number = self._ask(name, arguments)
        self._wait_for(lambda: number in self._answers or number <= self._last_unanswered)
        return value_of(self._answers.pop(number, _UNANSWERED))

    async def call_async(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Ask the host without holding up other tasks of this loop."""
        loop = asyncio.get_running_loop()
        number = self._ask(name, arguments)
        with self._news:
            early = self._answers.pop(number, _UNANSWERED if number <= self._last_unanswered else None)
            if early is not None:
                return value_of(early)
            future: asyncio.Future[Json] = loop.create_future()
            self._waiting[number] = future
        loop.add_reader(self.descriptor, self._receive_unless_read)
        try:
            return await future
        finally:
            if not any(waiting.get_loop() is loop for waiting in list(self._waiting.values())):
                loop.remove_reader(self.descriptor)

    def report(self, data: bytes) -> None:
        """Send the report of a run. Calls that still wait for an answer fail."""
        with self._sending:  # what is asked after this belongs to no run
            with self._news:
                self._last_unanswered = self._calls
                for future in self._waiting.values():
                    _set_in_its_loop(future, _UNANSWERED)
                self._waiting.clear()
                self._answers.clear()
                self._news.notify_all()
            self.send(data)

    def send(self, data: bytes) -> None:
        """Send a whole frame; others wait. What comes meanwhile is read, by who reads already or here."""
        with self._sending:
            rest = memoryview(data)
            while rest:
                try:
                    rest = rest[os.write(self.descriptor, rest) :]
                except BlockingIOError:
                    self._wait_to_write()
                except ConnectionError:
                    raise HostGone from None

    def _ask(self, name: str, arguments: Mapping[str, Json]) -> int:
        with self._sending:  # the host numbers the calls as they come
            return super()._ask(name, arguments)

    def _wait_to_write(self) -> None:
        with self._news:
            reads, self._is_read = not self._is_read, True
        if reads:
            self._read(select.POLLIN | select.POLLOUT)
        else:
            _polled(self.descriptor, select.POLLOUT, _READER_LEAVES_MS)

    def _wait_for(self, has_come: Callable[[], bool]) -> None:
        while True:
            with self._news:
                while self._is_read and not has_come():
                    self._news.wait()
                if has_come():
                    return
                self._is_read = True
            self._read(select.POLLIN)

    def _read(self, events: int) -> None:
        """Wait, as the one who reads, for one of these events; take in what came, and let others read."""
        happened = 0
        try:
            happened = _polled(self.descriptor, events)
        finally:
            with self._news:
                self._is_read = False
                try:
                    if happened & ~select.POLLOUT:
                        self.receive()
                finally:
                    self._news.notify_all()

    def _receive_unless_read(self) -> None:
        """Take in what has come, unless a thread waits for it: that one hands everything out.

        Where the host is gone nothing will come. It is about to end this process, so the loop waits for that: an error
        of a callback would be written to standard error, again and again.
        """
        with self._news:
            if not self._is_read:
                try:
                    self.receive()
                except HostGone:
                    asyncio.get_running_loop().remove_reader(self.descriptor)
                finally:
                    self._news.notify_all()

    def _keep(self, frame: Mapping[str, Json]) -> None:
        number = cast("int", frame["id"])
        future = self._waiting.pop(number, None)
        if future is not None:
            _set_in_its_loop(future, frame)
        elif number > self._last_unanswered:
            self._answers[number] = frame


def _polled(descriptor: int, events: int, milliseconds: int | None = None) -> int:
    waiting = select.poll()
    waiting.register(descriptor, events)
    return sum(happened for _descriptor, happened in waiting.poll(milliseconds))


def _set_in_its_loop(future: asyncio.Future[Json], frame: Mapping[str, Json]) -> None:
    with suppress(RuntimeError):  # its loop was closed in the meantime
        future.get_loop().call_soon_threadsafe(_set_result, future, frame)


def _set_result(future: asyncio.Future[Json], frame: Mapping[str, Json]) -> None:
    if future.done():
        return
    try:
        future.set_result(value_of(frame))
    except Exception as error:  # noqa: BLE001 - whatever the host answered belongs to who asked
        future.set_exception(error)
