"""An upstream server made with the SDK: `full.py` over stdio, `full.py http|sse PORT FILE` over HTTP.

Over HTTP it writes its port to FILE once it listens; port 0 takes a free one.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("full", version="1.2.3", instructions="Use with care.", log_level="ERROR")
cancelled: list[str] = []


class Person(BaseModel):
    name: str
    age: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def person(name: str) -> Person:
    """Describe a person."""
    return Person(name=name, age=41)


@server.tool()
def fail(message: str) -> str:
    """Fail."""
    raise ToolError(message)


@server.tool()
async def count(to: int, seconds: float, ctx: Context) -> int:
    """Count slowly and tell of it."""
    try:
        for number in range(1, to + 1):
            await ctx.report_progress(number, to, f"at {number}")
            await anyio.sleep(seconds / to)
    except anyio.get_cancelled_exc_class():
        cancelled.append(f"count to {to}")
        raise
    return to


arrived = [0]
all_here = anyio.Event()


@server.tool()
async def meet(count: int) -> int:
    """Wait until so many calls are under way at once."""
    arrived[0] += 1
    if arrived[0] == count:
        all_here.set()
    await all_here.wait()
    return arrived[0]


@server.tool()
def cancellations() -> list[str]:
    """Which calls were cancelled."""
    return cancelled


@server.tool(structured_output=False)
def big(megabytes: int) -> str:
    """Give a long text."""
    return "é" * (megabytes * 500_000)


@server.tool()
def long_argument(text: str) -> int:
    """Count characters."""
    return len(text)


@server.tool()
def pid() -> int:
    """Give the process's number."""
    return os.getpid()


@server.tool()
async def die() -> str:
    """End at once."""
    os._exit(3)


@server.tool()
async def grow(name: str, description: str, ctx: Context) -> str:
    """Add a tool, or give a tool of this name another description."""
    if name in {tool.name for tool in await server.list_tools()}:
        server.remove_tool(name)
    server.add_tool(lambda: 1, name=name, description=description)
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "done"


def listen(kind: str, port: int, file: str) -> None:
    app = server.sse_app() if kind == "sse" else server.streamable_http_app()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()
        Path(f"{file}.new").write_text(str(sock.getsockname()[1]))
        Path(f"{file}.new").rename(file)
        uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run([sock])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        listen(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        print("full server on stdio", file=sys.stderr, flush=True)
        server.run()
