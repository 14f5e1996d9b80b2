"""The span of one call of an upstream tool, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from ....tools_registry.errors import ToolFailed
from ....tools_registry.models import Tool
from ...base.telemetry import tracing


@contextmanager
def called(tool: Tool, url: str) -> Iterator[None]:
    """Tell of a call of a tool by the server at `url`, which is empty for one on the standard streams."""
    if not tracing.is_on():
        yield
        return
    tracing.knows([tool.name])
    address = urlsplit(url)
    told: dict[str, str | int | float | bool] = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "network.transport": "tcp" if url else "pipe",
        "sealab.server": tool.server,
    }
    if address.hostname:
        told["server.address"] = address.hostname
        told["server.port"] = address.port or (443 if address.scheme == "https" else 80)
    with (
        tracing.timed("mcp.client.operation.duration", told),
        tracing.span(f"tools/call {tool.name}", told, kind="client"),
    ):
        try:
            yield
        except ToolFailed:
            told["error.type"] = "tool_error"
            tracing.mark({"error.type": "tool_error"})
            raise
