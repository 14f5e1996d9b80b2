"""Many clients of one server over HTTP, written on bare streams so that they cost little, in a process of their own.

Reads a `Load` as one line of JSON, connects its clients, says `READY`, begins at the next line, and writes a `Told` as
JSON. Each call is checked: what is no right answer is either a refusal that says so, or counts as wrong.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

READY = "READY"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
NUMBER_PLUS_1, ANY_REPORT, ANY_RESULT = "number + 1", "any report", "any result"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_REFUSALS = {429, 503}
_BUFFER_BYTES = 1 << 20
_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients do. `code` may name `{n}`, a number of its own in each call, which `expected` may rest on.

    Each client makes `calls` calls, or as many as it can in `seconds`. `own_callers` says that the server is to see
    each client as another caller; else they share one session, or send no credentials. `tokens` are those of the
    clients, each of which is another caller then. `connects_ahead` says that connections are made before they begin.
    """

    url: str
    clients: int = 1
    calls: int | None = None
    seconds: float | None = None
    code: str = "{n} + 1"
    expected: str = NUMBER_PLUS_1
    arguments: dict[str, Any] = field(default_factory=dict)
    era: str = MODERN
    own_callers: bool = False
    connects_ahead: bool = True
    pause_seconds: float = 0.0
    answer_seconds: float = 120.0
    tokens: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Told:
    """What came of it. `began` are times of the machine's monotonic clock; `refused` counts clear refusals by kind."""

    latencies_ms: list[float] = field(default_factory=list)
    began: list[float] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    wrong: int = 0
    shown: list[str] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def is_refused(self, kind: str) -> None:
        """Note a clear refusal."""
        self.refused[kind] = self.refused.get(kind, 0) + 1

    def is_wrong(self, why: str) -> None:
        """Note an answer that is neither right nor a clear refusal."""
        self.wrong += 1
        if len(self.shown) < _SHOWN_MAX:
            self.shown.append(why[:300])


def body_of(number: int, code: str, arguments: dict[str, Any], era: str) -> bytes:
    """Return one call of execute_code as JSON."""
    params: dict[str, Any] = {"name": "execute_code", "arguments": {"code": code.replace("{n}", str(number))}}
    params["arguments"].update(arguments)
    if era == MODERN:
        params["_meta"] = _META
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def judge(told: Told, number: int, message: dict[str, Any], expected: str) -> bool:
    """Note what one answer says; return whether it is the right one."""
    result = message.get("result") or {}
    report = result.get("structuredContent")
    if message.get("id") != number or report is None:
        told.is_wrong(f"call {number}: {json.dumps(message)}")
        return False
    if report["status"] == "busy":
        told.is_refused("busy")
        return False
    value = report.get("result")
    right = expected == ANY_REPORT or (report["success"] and (expected == ANY_RESULT or value == number + 1))
    if not right:
        told.is_wrong(f"call {number}: {json.dumps(report)}")
    elif expected == ANY_RESULT and not isinstance(value, str):
        told.results.append(value)
    return right


class Client:
    """One client with one connection."""

    def __init__(self, load: Load, name: str) -> None:
        where = urlsplit(load.url)
        self._host, self._port, self._path = where.hostname, where.port, where.path
        self._load = load
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        headers = [
            f"Host: {where.netloc}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
        ]
        if load.era == MODERN:
            headers += [f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: tools/call", "Mcp-Name: execute_code"]
        if load.tokens:
            headers.append(f"Authorization: Bearer {load.tokens[int(name.split('-')[1]) % len(load.tokens)]}")
        elif load.own_callers and load.era == MODERN:
            headers.append(f"Authorization: Bearer {name}")
        self._headers = headers
        self._reused = False

    async def open(self, like: Client | None = None) -> None:
        """Connect, and open a session in the older era, or join that of another. Raises `OSError`."""
        await self._connect()
        if self._load.era == MODERN:
            return
        if like is not None and not self._load.own_callers and not self._load.tokens:
            self._headers = like._headers
            return
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        status, headers, _data = await self.post(json.dumps(asked).encode())
        if status != 200:
            raise ConnectionError(f"HTTP {status}")
        self._headers += [f"Mcp-Session-Id: {headers['mcp-session-id']}", f"MCP-Protocol-Version: {LEGACY}"]
        await self.post(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is not None and self._streams[0].at_eof():
            self.close()  # it was idle for longer than the server keeps it
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=_BUFFER_BYTES)
            self._reused = False
        return self._streams

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    def head(self, body: bytes) -> bytes:
        """Return what stands before a body."""
        first = f"POST {self._path} HTTP/1.1"
        return "\r\n".join([first, *self._headers, f"Content-Length: {len(body)}", "", ""]).encode()

    async def post(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send one request and read its answer. Raises `OSError` or `EOFError` where there is none."""
        reader, writer = await self._connect()
        writer.write(self.head(body) + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ", 2)[1])
        headers = {key.lower(): value for key, _colon, value in (line.partition(": ") for line in lines[1:-2])}
        if headers.get("transfer-encoding") == "chunked":
            parts = []
            while (size := int(await reader.readuntil(b"\r\n"), 16)) or not await reader.readuntil(b"\r\n"):
                parts.append(await reader.readexactly(size))
                await reader.readexactly(2)
            data = b"".join(parts)
        else:
            data = await reader.readexactly(int(headers.get("content-length", 0)))
        self._reused = True
        if headers.get("connection") == "close":
            self.close()
        return status, headers, data

    async def call(self, number: int, told: Told) -> bool:
        """Make one call and note how it ended; return whether the server may be asked again at once."""
        load = self._load
        body = body_of(number, load.code, load.arguments, load.era)
        began = time.monotonic()
        try:
            async with asyncio.timeout(load.answer_seconds):
                try:
                    status, headers, data = await self.post(body)
                except (ConnectionError, asyncio.IncompleteReadError) as error:
                    if not self._reused or (isinstance(error, asyncio.IncompleteReadError) and error.partial):
                        raise
                    self.close()  # it was idle for as long as the server keeps it, and closed in this moment
                    status, headers, data = await self.post(body)
        except (OSError, EOFError) as error:
            self.close()
            told.is_wrong(f"call {number} after {time.monotonic() - began:.1f} s: {type(error).__name__} {error}")
            return False
        took = time.monotonic() - began
        if status in _REFUSALS:
            told.is_refused(f"HTTP {status}{' with Retry-After' if 'retry-after' in headers else ''}")
            return False
        if status != 200:
            told.is_wrong(f"call {number}: HTTP {status} {data[:200]!r}")
            return False
        if headers.get("content-type", "").startswith("text/event-stream"):
            events = [line[6:] for line in data.splitlines() if line.startswith(b"data: {")]
            message: dict[str, Any] = next((each for each in map(json.loads, events) if "id" in each), {})
        else:
            message = json.loads(data)
        right = judge(told, number, message, load.expected)
        if right:
            told.latencies_ms.append(took * 1000)
            told.began.append(began)
        return right


async def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    loop = asyncio.get_running_loop()
    load = Load(**json.loads(sys.stdin.readline()))
    clients = [Client(load, f"client-{number}-{time.monotonic_ns()}") for number in range(load.clients)]
    if load.connects_ahead:
        for each in clients:
            await each.open(clients[0] if each is not clients[0] else None)
    told = Told()
    numbers = itertools.count(1000)
    print(READY, flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    cpu, began = time.process_time(), time.monotonic()
    ends = None if load.seconds is None else began + load.seconds

    async def work(client: Client) -> None:
        made = 0
        if not load.connects_ahead:
            try:
                async with asyncio.timeout(load.answer_seconds):
                    await client.open()
            except (OSError, EOFError) as error:
                told.is_wrong(f"connecting: {type(error).__name__} {error}")
                return
        while (load.calls is None or made < load.calls) and (ends is None or time.monotonic() < ends):
            made += 1
            if not await client.call(next(numbers), told):
                await asyncio.sleep(0.1)
            if load.pause_seconds:
                await asyncio.sleep(load.pause_seconds)

    await asyncio.gather(*map(work, clients))
    told.seconds = time.monotonic() - began
    told.cpu_seconds = time.process_time() - cpu
    print(json.dumps(asdict(told)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
