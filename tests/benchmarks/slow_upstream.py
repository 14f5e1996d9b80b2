"""An upstream MCP server for the measurements: it waits, or answers much."""

from __future__ import annotations

import asyncio

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

_READS = ToolAnnotations(read_only_hint=True)

server: MCPServer[None] = MCPServer("slow", version="1", log_level="ERROR")


@server.tool(annotations=_READS)
async def wait(seconds: float) -> float:
    """Wait for so many seconds."""
    await asyncio.sleep(seconds)
    return seconds


@server.tool(annotations=_READS, structured_output=False)
def text(characters: int) -> str:
    """Return a text of that length."""
    return "a line of text\n" * (characters // 15)


if __name__ == "__main__":
    server.run()
