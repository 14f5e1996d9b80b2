"""Two small upstream MCP servers for the demonstration: the Python packages installed here, and invented customers."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution, distributions

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

_READS = ToolAnnotations(read_only_hint=True)

CUSTOMERS: list[dict[str, str]] = [
    {"name": "Jane Roe", "email": "jane.roe@example.com", "plan": "pro"},
    {"name": "Anders Holm", "email": "anders@example.net", "plan": "free"},
    {"name": "Mira Okafor", "email": "m.okafor@example.org", "plan": "pro"},
]
_ORDERS = {"jane.roe@example.com": 3, "anders@example.net": 0, "m.okafor@example.org": 5}

packages: MCPServer[None] = MCPServer("packages", version="1", log_level="ERROR")
customers: MCPServer[None] = MCPServer("customers", version="1", log_level="ERROR")


@packages.tool(annotations=_READS)
def list_packages(limit: int = 20) -> list[str]:
    """List the names of the installed Python packages, in order."""
    return sorted({each.metadata["Name"] for each in distributions()})[:limit]


@packages.tool(annotations=_READS)
def package_requirements(name: str) -> list[str]:
    """List which other packages an installed package requires, one requirement a line."""
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        raise ToolError(f"There is no package {name!r} here. list_packages gives those that there are.") from None


@packages.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def uninstall_package(name: str) -> str:
    """Remove an installed package; in this demonstration nothing is removed."""
    return f"{name} stays"


@customers.tool(annotations=_READS)
def list_customers() -> list[dict[str, str]]:
    """List the customers, with their names, addresses and plans."""
    return CUSTOMERS


@customers.tool(annotations=_READS)
def orders_of(email: str) -> int:
    """Count the orders of the customer with an email address."""
    if email not in _ORDERS:
        raise ToolError(f"There is no customer with the address {email!r}. list_customers gives those that there are.")
    return _ORDERS[email]


if __name__ == "__main__":
    {"packages": packages, "customers": customers}[sys.argv[1]].run()
