"""Serves a server of standard streams over HTTP, so that the conformance suite can reach it: `stdio_bridge.py PORT COMMAND…`.

Each session of the era of `initialize` has a process of its own, each version of the stateless era one for all. What a server
says that answers nothing goes to the request of its process that is waiting. It changes no message but its number.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

SESSION = "mcp-session-id"
LINE_BYTES_MAX = 1 << 26
HOSTS = ("127.0.0.1", "localhost")
Message = dict[str, Any]


class Process:
    """One process of the server, and the requests that wait for it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.number = 0
        self.waiting: dict[int, tuple[object, asyncio.Queue[Message]]] = {}
        self.listening: asyncio.Queue[Message] = asyncio.Queue()
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "method" not in message and message.get("id") in self.waiting:
                own, queue = self.waiting.pop(message["id"])
                await queue.put({**message, "id": own})
            else:
                queue = next(reversed(self.waiting.values()))[1] if self.waiting else self.listening
                await queue.put(message)

    def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def ask(self, message: Message) -> AsyncIterator[Message]:
        """Send a request, and give what comes up to its answer."""
        self.number += 1
        queue: asyncio.Queue[Message] = asyncio.Queue()
        self.waiting[self.number] = message["id"], queue
        self.send({**message, "id": self.number})
        while True:
            told = await queue.get()
            yield told
            if "method" not in told:
                return

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.process.wait()


class Bridge:
    """All processes of one command."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.sessions: dict[str, Process] = {}

    async def started(self, session: str) -> Process:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self.command, stdin=pipe, stdout=pipe, limit=LINE_BYTES_MAX)
        self.sessions[session] = Process(process)
        return self.sessions[session]

    async def handle(self, request: Request) -> Response:
        if request.headers.get("host", "").partition(":")[0] not in HOSTS:
            return JSONResponse({"error": "host"}, 403)
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2].partition(":")[0] not in HOSTS:
            return JSONResponse({"error": "origin"}, 403)
        session = request.headers.get(SESSION, "")
        if request.method == "GET":
            return StreamingResponse(self._heard(self.sessions[session]), media_type="text/event-stream")
        if request.method == "DELETE":
            await self.sessions.pop(session).end()
            return Response(status_code=200)
        message = json.loads(await request.body())
        headers = {}
        if message.get("method") == "initialize":
            session = uuid.uuid4().hex
            headers[SESSION] = session
        session = session or _stateless(message)
        process = self.sessions.get(session) or await self.started(session)
        if "method" not in message or "id" not in message:
            process.send(message)
            return Response(status_code=202)
        return StreamingResponse(self._told(process, message), media_type="text/event-stream", headers=headers)

    async def _told(self, process: Process, message: Message) -> AsyncIterator[bytes]:
        async for told in process.ask(message):
            yield event(told)

    async def _heard(self, process: Process) -> AsyncIterator[bytes]:
        while True:
            yield event(await process.listening.get())

    @asynccontextmanager
    async def living(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        for process in self.sessions.values():
            await process.end()


def _stateless(message: Message) -> str:
    """Return which process a message without a session goes to: one without a version would choose the era for others."""
    meta = (message.get("params") or {}).get("_meta") or {}
    return str(meta.get("io.modelcontextprotocol/protocolVersion", "none"))


def event(message: Message) -> bytes:
    return f"event: message\ndata: {json.dumps(message)}\n\n".encode()


def main() -> None:
    bridge = Bridge(sys.argv[2:])
    routes = [Route("/mcp", bridge.handle, methods=["GET", "POST", "DELETE"])]
    app = Starlette(routes=routes, lifespan=bridge.living)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", timeout_graceful_shutdown=2)


if __name__ == "__main__":
    main()
