"""An upstream MCP server for the tests of the bridge: what it does can be seen in what it answers."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import Field

READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True)
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()

server = MCPServer("bridged", version="1", log_level="ERROR")

if os.environ.get("STARTED"):
    with Path(os.environ["STARTED"]).open("a") as started:
        started.write(f"{os.getpid()}\n")


@server.tool(annotations=READS)
def add(left: int, right: Annotated[int, Field(description="the second number")] = 1) -> int:
    """Add two numbers. Both are whole."""
    return left + right


@server.tool(annotations=READS)
def people(maxCount: int = 2) -> dict[str, Any]:  # noqa: N803 - servers write their arguments so
    """List the people of the department with their birthdays."""
    return {"people": [{"firstName": f"P{n}", "age": n} for n in range(maxCount)], "total": maxCount}


@server.tool(annotations=READS, structured_output=False)
def as_json_text(size: int = 1) -> str:
    """Answer JSON as text."""
    return '{"value": "' + "x" * size + '"}'


@server.tool(annotations=READS, structured_output=False)
def as_text() -> str:
    """Answer plain text."""
    return "just text"


@server.tool(annotations=READS)
async def slow(seconds: float, mark: str = "") -> float:
    """Wait, and say when it began."""
    began = time.monotonic()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if mark:
            Path(mark).write_text("cancelled")  # noqa: ASYNC240 - a few bytes
        raise
    return began


arrived = [0]
all_here = asyncio.Event()


@server.tool(annotations=READS)
async def meet(count: int) -> int:
    """Wait until so many calls are under way at once."""
    arrived[0] += 1
    if arrived[0] == count:
        all_here.set()
    await all_here.wait()
    return arrived[0]


@server.tool(annotations=READS)
def fail(reason: str) -> str:
    """Fail with a reason."""
    raise ToolError(f"it cannot be done: {reason}")


@server.tool(annotations=READS)
async def counting(to: int, ctx: Context) -> int:  # type: ignore[type-arg]
    """Count, and tell how far it has come."""
    for number in range(to):
        await ctx.report_progress(number + 1, to, f"at {number + 1}")
        await asyncio.sleep(0.15)
    return to


@server.tool(annotations=READS, structured_output=False)
def picture() -> CallToolResult:
    """Draw a picture."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="a picture"),
            ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        ]
    )


@server.tool(name="odd-name.with dots", annotations=READS)
def odd(value: str) -> str:
    """Be called by an odd name."""
    return f"odd {value}"


@server.tool(annotations=WRITES)
def append(path: str, line: str) -> int:
    """Append a line to a file and return how many it has."""
    with Path(path).open("a") as file:
        file.write(f"{line}\n")
    return len(Path(path).read_text().splitlines())


@server.tool()
def silent_about_itself(path: str) -> str:
    """Touch a file, and say nothing of itself."""
    Path(path).touch()
    return "touched"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
