"""An upstream MCP server for the measurements, which waits."""

from __future__ import annotations

import asyncio

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server: MCPServer[None] = MCPServer("slow", version="1", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def wait(seconds: float) -> float:
    """Wait for so many seconds."""
    await asyncio.sleep(seconds)
    return seconds


if __name__ == "__main__":
    server.run()
