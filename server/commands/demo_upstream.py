"""A small upstream MCP server for the demonstration: it lists the Python packages that are installed here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution, distributions

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

_READS = ToolAnnotations(read_only_hint=True)

server: MCPServer[None] = MCPServer("packages", version="1", log_level="ERROR")


@server.tool(annotations=_READS)
def list_packages(limit: int = 20) -> list[str]:
    """List the names of the installed Python packages, in order."""
    return sorted({each.metadata["Name"] for each in distributions()})[:limit]


@server.tool(annotations=_READS)
def package_requirements(name: str) -> list[str]:
    """List which other packages an installed package requires, one requirement a line."""
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        raise ToolError(f"There is no package {name!r} here. list_packages gives those that there are.") from None


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def uninstall_package(name: str) -> str:
    """Remove an installed package; in this demonstration nothing is removed."""
    return f"{name} stays"


if __name__ == "__main__":
    server.run()
