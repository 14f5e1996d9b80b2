"""An MCP server of a bank for tests of questions: it pays and notes into the file that it is given."""

from __future__ import annotations

import pathlib
import sys

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

LEDGER = pathlib.Path(sys.argv[1])
server = MCPServer("bank")


def _written(line: str) -> str:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{line}\n")
    return "done"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def bills() -> list[dict[str, str | int]]:
    """Return the bills that are open."""
    return [{"iban": f"CH{number}", "sum": 10 * number} for number in range(1, 5)]


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
def put(to: str, amount: int, subject: str = "") -> str:
    """Pay an amount."""
    return _written(f"{to} {amount} {subject}".rstrip())


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
def note(text: str) -> str:
    """Keep a note."""
    return _written(text)


server.run()
