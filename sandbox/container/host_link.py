"""The host's end of what it and a fork server say to each other: a socket passed into the container, or its streams."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from ..errors import WorkerLost
from ..job import Json
from ..wire.output import OutputBuffer
from ..wire.zygote_config import PACKET_BYTES_MAX
from . import messages


class DirectHostLink:
    """A socket whose other end the engine passes into the container; a packet for each message.

    What comes up may be anything and is never trusted. The end of the link ends the fork server.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._open = True
        self._closing = threading.Lock()
        control.setblocking(False)

    async def receive(self) -> Mapping[str, Any]:
        """Wait for a packet. Raises EOFError at their end, ValueError for what is not a message."""
        try:
            data = await asyncio.get_running_loop().sock_recv(self._control, PACKET_BYTES_MAX)
        except OSError:
            raise EOFError from None
        if not data:
            raise EOFError
        return cast("Mapping[str, Any]", json.loads(data))

    def send(self, **words: Json) -> None:
        """Send a packet. One that finds no room is dropped: the other end no longer reads, and its caller times out."""
        with suppress(OSError):
            self._control.send(json.dumps(words).encode())

    def kill_from_thread(self, pid: int) -> None:
        """End the worker of this number, whatever the loop does meanwhile."""
        with self._closing:
            if self._open:
                self.send(kill=pid)

    def ask_for_worker(
        self,
        channel: socket.socket,
        output_fd: int,
        kill: Callable[[], None],  # noqa: ARG002 - the worker sees the end of its channel itself
        **wanted: Json,
    ) -> None:
        """Ask for a worker with the other ends of these. Raises `WorkerLost` where the asking finds no room."""
        try:
            socket.send_fds(self._control, [json.dumps({"fork": wanted}).encode()], [channel.fileno(), output_fd])
        except OSError as error:
            raise WorkerLost(f"A container takes no word any more: {error.strerror}.") from None

    def begin(self) -> None:
        """No-op: the worker shares the host's own buffer."""

    def detach_worker(self) -> None:
        """No-op: what belonged to it was its own."""

    def close(self) -> None:
        """Close the socket."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._control)
        with self._closing:
            self._open = False
            self._control.close()


class StreamHostLink:
    """The container's standard streams, which also transport the worker's bytes and its output."""

    def __init__(self, reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        self._reading = reading
        self._writing = writing
        self._forwarded: _ForwardedWorker | None = None

    async def receive(self) -> Mapping[str, Any]:
        """Wait for a message of JSON, and forward what comes meanwhile. Raises as `DirectHostLink.receive`."""
        while True:
            try:
                header = await self._reading.readexactly(messages.HEADER_BYTES)
                body = await self._reading.readexactly(messages.length(header))
            except asyncio.IncompleteReadError:
                raise EOFError from None
            kind, body = body[:1], body[1:]
            if kind == messages.JSON:
                return cast("Mapping[str, Any]", json.loads(body))
            if kind == messages.DATA:
                if self._forwarded is not None:
                    await self._forwarded.deliver(body)
            elif kind in {messages.OUTPUT, messages.ERRORS}:
                (start,) = messages.POSITION.unpack_from(body)
                if self._forwarded is not None:
                    shared = self._forwarded.output
                    fill = shared.fill if kind == messages.OUTPUT else shared.fill_errors
                    fill(start, body[messages.POSITION.size :])
            else:
                raise ValueError("an unknown kind of message")

    def send(self, **words: Json) -> None:
        """Send a message of JSON."""
        self._send(messages.words(**words))

    def kill_from_thread(self, pid: int) -> None:
        """No-op: only the loop may write to a stream, where a message may be half written."""

    def ask_for_worker(self, channel: socket.socket, output_fd: int, kill: Callable[[], None], **wanted: Json) -> None:
        """Ask for one, and forward what the host sends it; `kill` ends it once it can no longer be reached."""
        self.detach_worker()
        self._forwarded = _ForwardedWorker(self, channel.dup(), OutputBuffer(os.dup(output_fd)), kill)
        self.send(fork=wanted)

    def begin(self) -> None:
        """Begin the output anew."""
        self._send(messages.message(messages.BEGIN))

    def detach_worker(self) -> None:
        """Forward nothing more."""
        worker, self._forwarded = self._forwarded, None
        if worker is not None:
            worker.close()

    def close(self) -> None:
        """Close its standard input."""
        with suppress(ConnectionError, RuntimeError):
            self._writing.close()

    async def send_data(self, data: bytes) -> None:
        """Send a worker what the host has for it, as fast as that is read."""
        self._send(messages.message(messages.DATA, data))
        with suppress(ConnectionError):
            await self._writing.drain()

    def _send(self, message: bytes) -> None:
        with suppress(ConnectionError, RuntimeError):
            self._writing.write(message)


HostLink = DirectHostLink | StreamHostLink


class _ForwardedWorker:
    """The worker that there is: `channel` is the far end of the one that its `WorkerHandle` reads."""

    def __init__(
        self, link: StreamHostLink, channel: socket.socket, shared: OutputBuffer, kill: Callable[[], None]
    ) -> None:
        self._link = link
        self._channel = channel
        self._kill = kill
        self.output = shared
        channel.setblocking(False)
        self._forwarding = asyncio.create_task(self._forward())

    async def deliver(self, data: bytes) -> None:
        """Pass on what it sent, as fast as that is read."""
        with suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._channel, data)

    def close(self) -> None:
        self._forwarding.cancel()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._channel)
        loop.remove_writer(self._channel)
        self._channel.close()
        self.output.close()

    async def _forward(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await loop.sock_recv(self._channel, messages.CHUNK_BYTES):
                await self._link.send_data(data)
        self._kill()
