"""The span of each message that comes in, by the SDK's own middleware, and how long it took; inside our filters.

What the span may say is judged where it leaves the process (`telemetry.exporting`).
"""

from __future__ import annotations

from typing import Any

from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult

from ...base.telemetry import tracing


class Traced(ServerMiddleware[Any]):
    """A middleware before the handlers: a caller says where it is by `_meta`, else by HTTP headers."""

    def __init__(self) -> None:
        self._sdk = OpenTelemetryMiddleware()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Serve one message."""
        is_tool = ctx.method == "tools/call"
        told: dict[str, str | int | float | bool] = {
            "mcp.method.name": ctx.method,
            "mcp.protocol.version": ctx.protocol_version,
            "network.transport": "pipe" if ctx.request is None else "tcp",
        }
        if is_tool:
            told |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": str((ctx.params or {}).get("name"))}

        async def traced(inner: ServerRequestContext[Any, Any]) -> HandlerResult:
            tracing.mark({"network.transport": told["network.transport"]})
            result = await call_next(inner)
            match result:
                case CallToolResult(is_error=True) | {"isError": True}:
                    told["error.type"] = "tool_error"
            return result

        with (
            tracing.came_with(getattr(ctx.request, "headers", None)),
            tracing.timed("mcp.server.operation.duration", told),
        ):
            try:
                with tracing.timed("gen_ai.execute_tool.duration", told) if is_tool else tracing.nothing():
                    return await self._sdk(ctx, traced)
            except MCPError as error:
                told["error.type"] = told["rpc.response.status_code"] = str(error.error.code)
                raise
