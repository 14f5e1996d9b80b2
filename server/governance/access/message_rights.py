"""Security boundary: judges each message of MCP by what the table of rights says, over whichever transport it came.

A middleware of the SDK, which sees methods and parameters as they are worked on. `tools/list` shows the tools that the
caller may call, `resources/list` the resources that it may read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_REQUEST, METHOD_NOT_FOUND
from pydantic import BaseModel

from ...base.identity import ALL_RIGHTS, Identity
from ..rights import METHODS, TOOLS, missing, needed_by, needed_for_resource
from ..scopes import caller_of

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext


class RightsOfMessages:
    """Answers what a caller may not ask for, and leaves out of lists what it may not use."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Work on one message."""
        identity = caller_of(ctx).identity
        if ctx.request_id is None or identity.rights == ALL_RIGHTS:
            return await call_next(ctx)
        if ctx.method not in METHODS:
            raise MCPError(METHOD_NOT_FOUND, f"There is no method {ctx.method[:80]!r}. Use one of MCP's.")
        # What a tool needs, it says itself, as a tool error.
        needed = METHODS["tools/call"] if ctx.method == "tools/call" else needed_by(ctx.method, ctx.params)
        if lacks := list(missing(identity, needed)):
            raise MCPError(
                INVALID_REQUEST, f"This needs the scope {' '.join(lacks)}, which the token does not have. Use another."
            )
        answer = await call_next(ctx)
        if ctx.method == "tools/list":
            return _without(answer, "tools", lambda tool: _may_call(identity, tool))
        if ctx.method == "resources/list":
            return _without(answer, "resources", lambda resource: _may_read(identity, resource))
        return answer


def _may_call(identity: Identity, tool: Mapping[str, Any]) -> bool:
    needed = TOOLS.get(str(tool.get("name")))
    return needed is not None and not any(missing(identity, needed))


def _may_read(identity: Identity, resource: Mapping[str, Any]) -> bool:
    return not any(missing(identity, needed_for_resource(resource.get("uri"))))


def _without(answer: HandlerResult, key: str, shows: Callable[[Mapping[str, Any]], bool]) -> HandlerResult:
    """Return an answer with those of a list that are shown."""
    result = (
        answer.model_dump(by_alias=True, mode="json", exclude_none=True) if isinstance(answer, BaseModel) else answer
    )
    if not isinstance(result, dict) or key not in result:
        return answer
    return {**result, key: [each for each in result[key] if shows(each)]}
