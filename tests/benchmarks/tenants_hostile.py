"""A tenant that is hostile by load, in a process of its own: it does everything at once that costs a server.

Reads the server's URL and the tenant's tokens as one line of JSON, and goes on until its input ends: long runs,
initialisations whose sessions nobody closes, large bodies, answers that are not read, and half-sent requests. Then it
writes how many of each it sent, and what it was answered, as JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from tests.benchmarks.load_client import LEGACY, MODERN, Client, Load, body_of

LONG_RUNS, INITIALISATIONS, LARGE_BODIES, SLOW_READERS, HALF_SENT = 150, 20, 8, 20, 50
LONG = "import time\nends = time.monotonic() + 2\nwhile time.monotonic() < ends: pass"
LARGE_ANSWER = "'a line of text' * 70_000"
_BODY_BYTES = 3_900_000
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}},
}
Send = Callable[[Client, int], Awaitable[Any]]


class Hostile:
    """What one tenant sends, and the answers by their status."""

    def __init__(self, url: str, tokens: list[str]) -> None:
        self._url = url
        self._tokens = tokens
        self._numbers = itertools.count(1)
        self.answers: Counter[str] = Counter()

    async def again_and_again(self, kind: str, era: str, send: Send) -> None:
        """Send one kind of request after another."""
        number = next(self._numbers)
        client = Client(Load(self._url, tokens=self._tokens, era=era), f"client-{number}")
        while True:
            try:
                status = await send(client, number)
            except (OSError, EOFError) as error:
                status = type(error).__name__
                client.close()
            self.answers[f"{kind}: {status}"] += 1
            await asyncio.sleep(0.01)

    async def all(self) -> None:
        """Send everything at once, until cancelled."""

        async def run(client: Client, number: int) -> int:
            return (await client.post(body_of(number, LONG, {}, MODERN)))[0]

        async def initialize(client: Client, _number: int) -> int:
            return (await client.post(json.dumps(_INITIALIZE).encode()))[0]

        async def large(client: Client, number: int) -> int:
            arguments = {"context_vars": {"text": "x" * _BODY_BYTES}}
            return (await client.post(body_of(number, "len(text)", arguments, MODERN)))[0]

        async with asyncio.TaskGroup() as group:
            for count, kind, era, send in (
                (LONG_RUNS, "long run", MODERN, run),
                (INITIALISATIONS, "initialize", LEGACY, initialize),
                (LARGE_BODIES, "large body", MODERN, large),
            ):
                for _ in range(count):
                    group.create_task(self.again_and_again(kind, era, send))
            for number in range(SLOW_READERS):
                group.create_task(self._not_reading(number))
            for _ in range(HALF_SENT):
                group.create_task(self._half_sent())

    async def _not_reading(self, number: int) -> None:
        """Ask for large answers, and read none of them."""
        where = urlsplit(self._url)
        client = Client(Load(self._url, tokens=self._tokens), f"client-{number}")
        while True:
            reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=1024)
            reader._transport.pause_reading()  # type: ignore[attr-defined]  # nothing public stops reading
            body = body_of(number, LARGE_ANSWER, {}, MODERN)
            writer.write(client.head(body) + body)
            self.answers["not read"] += 1
            await asyncio.sleep(5)
            writer.close()

    async def _half_sent(self) -> None:
        """Send the beginning of a request, and no more."""
        where = urlsplit(self._url)
        while True:
            _reader, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n")
            self.answers["half sent"] += 1
            await asyncio.sleep(20)
            writer.close()


async def main() -> None:
    loop = asyncio.get_running_loop()
    told = json.loads(sys.stdin.readline())
    hostile = Hostile(told["url"], told["tokens"])
    sending = asyncio.create_task(hostile.all())
    await loop.run_in_executor(None, sys.stdin.readline)
    sending.cancel()
    await asyncio.wait({sending})
    print(json.dumps(hostile.answers), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
