"""A relay of TCP connections that can be told to be slow or to refuse: stands before an object store.

    python -m tests.cluster.relay HOST PORT TO_HOST TO_PORT

Reads lines: `count`, `pass`, `slow SECONDS` (each piece of data that is sent to the other side waits for so long) or `down`
(connections end, and no new one is taken). Says `READY` when it listens, and to each line how many requests of HTTP it
has passed on.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

_PIECE_BYTES = 1 << 16
_METHODS = (b"GET ", b"PUT ", b"HEAD ", b"POST ", b"DELETE ")


class Relay:
    """Relays connections as it was last told to."""

    def __init__(self, to_host: str, to_port: int) -> None:
        self._to = (to_host, to_port)
        self._delay_seconds = 0.0
        self._down = False
        self._open: set[asyncio.StreamWriter] = set()
        self.requests = 0

    def told(self, line: str) -> None:
        """Take one line."""
        what, _, number = line.strip().partition(" ")
        if what == "count":
            return
        self._delay_seconds = float(number) if what == "slow" else 0.0
        self._down = what == "down"
        if self._down:
            for each in list(self._open):
                each.transport.abort()

    async def taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection until one side ends it."""
        if self._down:
            writer.transport.abort()
            return
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._to)
            self._open |= {writer, far_writer}
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._pass_on(reader, far_writer, slowed=True))
                    tasks.create_task(self._pass_on(far_reader, writer, slowed=False))
            finally:
                self._open -= {writer, far_writer}
                far_writer.close()
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, slowed: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(_PIECE_BYTES):
                self.requests += slowed and data.startswith(_METHODS)
                if slowed and self._delay_seconds:
                    await asyncio.sleep(self._delay_seconds)
                writer.write(data)
                await writer.drain()
            writer.write_eof()


async def main(host: str, port: int, to_host: str, to_port: int) -> None:
    relay = Relay(to_host, to_port)
    await asyncio.start_server(relay.taken, host, port)
    print("READY", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        relay.told(line)
        print(relay.requests, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
