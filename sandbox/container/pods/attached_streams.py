"""The standard streams of a container in a pod, over a WebSocket of the Kubernetes API.

Each message has one byte for its channel before its bytes: 0 is the standard input, 1 the output, 2 the errors, 3 what
the API says of the end. What comes from the container is hostile: what is not such a message ends the connection, and
no more is read than is taken.

Source: k8s.io/apimachinery, package wsstream, subprotocols v4.channel.k8s.io and v5.channel.k8s.io.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...errors import ContainerMissing, WorkerLost
from .cluster_access import ClusterClient
from .pod_manifest import CONTAINER

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
MESSAGE_BYTES_MAX = 1 << 20
_INPUT, _OUTPUT, _ERRORS, _END = b"\x00", 1, 2, 3
_OPEN_SECONDS = 15.0
_PING_SECONDS = 30.0
_CLOSE_SECONDS = 1.0
_CHUNK_BYTES = 1 << 15
_UNREAD_BYTES = 1 << 18
_UNSENT_BYTES = 1 << 18
_COMPLAINT_BYTES = 4000


class AttachedStreams:
    """What is read and written through one connection; its end ends the input of the container (`ByteSink`)."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._may_read = _Pausable()
        self.reading = asyncio.StreamReader(limit=_UNREAD_BYTES)
        self.reading.set_transport(self._may_read)
        self._unsent = bytearray()
        self._has_unsent, self._has_room = asyncio.Event(), asyncio.Event()
        self._has_room.set()
        self._complaint = bytearray()
        self.ended = asyncio.Event()
        self._tasks = [asyncio.create_task(self._receive()), asyncio.create_task(self._send())]

    def write(self, data: bytes, /) -> None:
        """Send soon."""
        self._unsent += data
        self._has_unsent.set()
        if len(self._unsent) > _UNSENT_BYTES:
            self._has_room.clear()

    async def drain(self) -> None:
        """Wait until not much is unsent."""
        await self._has_room.wait()

    def close(self) -> None:
        """End the connection, also where the other side does not answer."""
        for task in self._tasks:
            task.cancel()
        self._tasks.append(asyncio.create_task(self._leave()))

    def complaint(self) -> str:
        """Return the last line of what came as errors."""
        written = self._complaint.decode("utf-8", "replace").strip()
        return written.rpartition("\n")[2] or "it wrote nothing"

    async def _receive(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                message = await self._connection.recv(decode=False)
                channel, data = (message[0], message[1:]) if message else (_OUTPUT, b"")
                if channel == _OUTPUT:
                    self.reading.feed_data(data)
                    await self._may_read.wait()
                elif channel in {_ERRORS, _END}:
                    self._complaint += data
                    del self._complaint[:-_COMPLAINT_BYTES]
                elif channel != 255:  # noqa: PLR2004 - of v5: a stream was closed
                    break
        except (ConnectionClosed, OSError):
            pass
        finally:
            self._end()

    async def _send(self) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed, OSError):
            while True:
                await self._has_unsent.wait()
                while self._unsent:
                    chunk = bytes(self._unsent[:_CHUNK_BYTES])
                    del self._unsent[:_CHUNK_BYTES]
                    if len(self._unsent) <= _UNSENT_BYTES:
                        self._has_room.set()
                    await self._connection.send(_INPUT + chunk)
                self._has_unsent.clear()
        self._end()

    def _end(self) -> None:
        self._has_room.set()
        if not self.ended.is_set():
            self.ended.set()
            self.reading.feed_eof()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()
        finally:
            self._end()


class _Pausable(asyncio.ReadTransport):
    """What a `StreamReader` pauses while it holds enough."""

    def __init__(self) -> None:
        super().__init__()
        self._going = asyncio.Event()
        self._going.set()

    def pause_reading(self) -> None:
        self._going.clear()

    def resume_reading(self) -> None:
        self._going.set()

    async def wait(self) -> None:
        await self._going.wait()


async def attached(client: ClusterClient, name: str) -> AttachedStreams:
    """Attach to the container of a pod. Raises `WorkerLost`, and `ContainerMissing` without the right to."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidHandshake, InvalidStatus
    from websockets.typing import Subprotocol

    access = client.access
    query = urlencode({"container": CONTAINER, "stdin": "true", "stdout": "true", "stderr": "true", "tty": "false"})
    options: dict[str, Any] = {"max_size": MESSAGE_BYTES_MAX, "max_queue": 4, "compression": None, "proxy": None}
    try:
        connection = await connect(
            f"wss{access.url.removeprefix('https')}{access.pods}/{name}/attach?{query}",
            ssl=client.trusted,
            subprotocols=[Subprotocol(each) for each in PROTOCOLS],
            additional_headers=access.authorization(),
            open_timeout=_OPEN_SECONDS,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=_PING_SECONDS,
            ping_timeout=None,  # a container that takes no input keeps the answer to a ping waiting
            **options,
        )
    except InvalidStatus as refused:
        status = refused.response.status_code
        if status == 403:  # noqa: PLR2004
            raise ContainerMissing(
                "This server's account may not attach to pods. Give it the role of deploy/kubernetes/overlays/pods."
            ) from None
        raise WorkerLost(f"The cluster's API let nobody attach to a pod: {status}.") from None
    except (InvalidHandshake, OSError, TimeoutError) as error:
        raise WorkerLost(f"A pod could not be attached to: {type(error).__name__} {error}.") from None
    if connection.subprotocol not in PROTOCOLS:
        await connection.close()
        raise WorkerLost("The cluster's API speaks no protocol for streams that is known here.")
    return AttachedStreams(connection)
