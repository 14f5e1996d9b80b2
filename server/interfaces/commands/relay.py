"""Relays connections from the loopback address of this machine to that of a container.

A server without authentication listens on loopback alone, and a port that an engine publishes leads elsewhere. Each
connection is carried by the streams of a process that the engine starts in the container.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from ...base.errors import AddressRefused

_WITHIN = """
import os, socket, sys, threading, time
for _ in range(300):
    try:
        connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.1)
def up():
    while data := os.read(0, 65536):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := connection.recv(65536):
    while data:
        data = data[os.write(1, data):]
os._exit(0)
"""
_CHUNK = 65_536
_LAST_BYTES_SECONDS = 5.0
"""How long connections may deliver what they have after their container ended."""


def serve_through(command: Sequence[str], port: int) -> int:
    """Run a container that serves HTTP on a port of its own loopback, relay that port, and return how it ended."""
    return asyncio.run(_serve(command, port))


async def _serve(command: Sequence[str], port: int) -> int:
    program, name = command[0], command[command.index("--name") + 1]
    within = [program, "exec", "--interactive", name, "python3", "-c", _WITHIN, str(port)]

    relays: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        relays.add(current)
        current.add_done_callback(relays.discard)
        process = await asyncio.create_subprocess_exec(*within, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        up = asyncio.create_task(_pump(reader, process.stdin))
        try:
            await _pump(process.stdout, writer)
        finally:
            up.cancel()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    try:
        listener = await asyncio.start_server(relay, "127.0.0.1", port)
    except OSError as error:
        raise AddressRefused(
            f"127.0.0.1:{port} cannot be listened on: {error.strerror}. Choose another port."
        ) from error
    async with listener:
        container = await asyncio.create_subprocess_exec(*command)
        try:
            ended = await container.wait()
            if relays:
                await asyncio.wait(relays, timeout=_LAST_BYTES_SECONDS)
            return ended
        finally:
            with suppress(ProcessLookupError):
                container.terminate()
            await container.wait()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()
