"""An upstream server that answers what it was given: `echoing_upstream.py`, or `… http|sse FILE` with its port in FILE."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("echoing", version="1", log_level="ERROR")


@server.tool(annotations=READS)
def variable(name: str) -> str:
    """Return an environment variable of the server's process, or nothing."""
    return os.environ.get(name, "")


@server.tool(annotations=READS)
def header(name: str, ctx: Context) -> str:  # type: ignore[type-arg]
    """Return a header of the request, or nothing."""
    request = ctx.request_context.request
    return "" if request is None else request.headers.get(name, "")


@server.tool(annotations=READS)
def folder() -> str:
    """Return the folder that the server runs in."""
    return str(Path.cwd())


def listen(kind: str, file: str) -> None:
    """Serve over HTTP on a free port, which is written to the file."""
    app = server.sse_app() if kind == "sse" else server.streamable_http_app()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        Path(f"{file}.new").write_text(str(sock.getsockname()[1]))
        Path(f"{file}.new").rename(file)
        uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run([sock])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        listen(sys.argv[1], sys.argv[2])
    else:
        server.run()
