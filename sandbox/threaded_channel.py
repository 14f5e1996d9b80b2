"""The child's end of the channel where code has threads and event loops of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

from .host_channel import HostChannel, value_of
from .run import Json


class ThreadedChannel(HostChannel):
    """One thread at a time talks to the host; a loop that waits for an answer reads the channel itself."""

    def __init__(self, descriptor: int | None = None) -> None:
        super().__init__(descriptor)
        self._turn = threading.RLock()

    def next_run(self) -> dict[str, Json]:
        """Wait for the next job. Raises `HostGone` when none will come."""
        while not self._runs:
            self.readable.poll()
            with self._turn:
                self.receive()
        return self._runs.pop(0)

    def call(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Ask the host and wait for its answer."""
        with self._turn:
            return super().call(name, arguments)

    async def call_async(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Ask the host without holding up other tasks of this loop."""
        loop = asyncio.get_running_loop()
        with self._turn:
            number = self._ask(name, arguments)
            early = self._answers.pop(number, None)
            if early is not None:
                return value_of(early)
            future: asyncio.Future[Json] = loop.create_future()
            self._waiting[number] = future
        loop.add_reader(self.descriptor, self._receive_unless_busy)
        try:
            return await future
        finally:
            if not any(waiting.get_loop() is loop for waiting in list(self._waiting.values())):
                loop.remove_reader(self.descriptor)

    def _receive_unless_busy(self) -> None:
        """Take in what has come, unless another thread waits for it: that one hands everything out."""
        if self._turn.acquire(blocking=False):
            try:
                self.receive()
            finally:
                self._turn.release()

    def _hand_out(self, frame: Mapping[str, Json]) -> None:
        number = cast("int", frame["id"])
        future = self._waiting.pop(number, None)
        if future is None:
            self._answers[number] = frame
        else:
            with suppress(RuntimeError):  # its loop was closed in the meantime
                future.get_loop().call_soon_threadsafe(_settle, future, frame)


def _settle(future: asyncio.Future[Json], frame: Mapping[str, Json]) -> None:
    if future.done():
        return
    try:
        future.set_result(value_of(frame))
    except Exception as error:  # noqa: BLE001 - whatever the host answered belongs to who asked
        future.set_exception(error)
