"""An upstream server over stdio that echoes, waits, and on demand hangs, dies or writes what is no protocol."""

from __future__ import annotations

import asyncio
import os
import time

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("chaos", log_level="ERROR")
READS = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READS)
async def echo(text: str, seconds: float = 0) -> str:
    """Return the text after a while."""
    await asyncio.sleep(seconds)
    return text


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
async def destroy(text: str) -> str:
    """Say that something was destroyed; the user is asked before."""
    return f"destroyed {text}"


@server.tool(annotations=READS)
async def hang() -> str:
    """Hold up the whole server."""
    time.sleep(5)  # noqa: ASYNC251 - that is what it is for
    return "late"


@server.tool(annotations=READS)
async def die() -> str:
    """End the server in the middle of the call."""
    os._exit(3)


@server.tool(annotations=READS)
async def garbage() -> str:
    """Write what is no protocol before the answer."""
    os.write(1, b"\xff\xfe not json\n[]\n{}\n" + b"x" * 70_000 + b'\n{"jsonrpc":"2.0","id":99999,"result":{}}\n')
    return "after garbage"


if __name__ == "__main__":
    server.run()
