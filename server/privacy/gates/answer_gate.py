"""The filter of answers: what every request of a client is answered goes through it under `PRIVACY=auto`.

A security boundary. Runs are filtered before they are cut and kept (`run_gate`); everything else, and whatever is said
in errors, is filtered here, around the SDK's own handling of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from ...caller import Caller
from ...errors import PrivacyFailed, ServerError
from ..privacy import Privacy
from ..tokens.parts import Exchange, collected, part_of, replaced
from .run_gate import restored_for_file

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from pydantic import BaseModel


_UNFILTERED = frozenset({"initialize", "ping", "server/discover", "tools/list", "logging/setLevel"})
"""Requests whose answers sealab itself writes, whole."""
_FILE_TOOLS = frozenset(
    {"write_workspace_file", "read_workspace_file", "list_workspace_files", "delete_workspace_file"}
)
_TEXTS = frozenset({"text", "description", "title", "message", "statusMessage"})
"""Keys of MCP's answers under which text for people and models stands; the others are names, addresses and types."""
_VALUES = frozenset({"structuredContent", "values", "frontmatter"})
"""Keys under which whole values stand."""


class AnswerFilter:
    """A middleware of the SDK: what every request is answered goes through it.

    The answers of `tools_that_filter` are filtered already, or may hold real values; their failures are not.
    """

    def __init__(
        self,
        privacy: Privacy,
        caller_of: Callable[[ServerRequestContext[Any, Any]], Caller],
        tools_that_filter: frozenset[str],
    ) -> None:
        self._privacy = privacy
        self._caller_of = caller_of
        self._tools_that_filter = tools_that_filter

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Restore what goes to a file, have the request answered, and hide what is personal in the answer."""
        if ctx.method in _UNFILTERED or ctx.request_id is None:
            return await call_next(ctx)
        caller = self._caller_of(ctx)
        scope = caller.scope
        tool = str((ctx.params or {}).get("name")) if ctx.method == "tools/call" else None
        try:
            if tool in _FILE_TOOLS:
                ctx = replace(ctx, params=await self._restored(caller, ctx.params or {}))
            answer = await call_next(ctx)
        except MCPError as error:
            said = await self._hidden(scope, {"message": error.error.message, "structuredContent": error.error.data})
            raise MCPError(error.error.code, said["message"], said["structuredContent"]) from None
        wire = answer if isinstance(answer, dict) else {} if answer is None else _wire(answer)
        if tool in self._tools_that_filter and "structuredContent" in wire:
            return answer
        return await self._hidden(scope, wire)

    async def _restored(self, caller: Caller, params: Mapping[str, Any]) -> dict[str, Any]:
        arguments = dict(params.get("arguments") or {})
        try:
            restored, _content = await restored_for_file(self._privacy, caller, arguments)
        except ServerError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        return {**params, "arguments": restored}

    async def _hidden(self, scope: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        parts = collected(answer, _exchanged)
        if not parts:
            return dict(answer)
        try:
            hidden = await self._privacy.hide(scope, parts, run_tokens=self._privacy.new_run_tokens(scope))
        except PrivacyFailed as failed:
            raise MCPError(INTERNAL_ERROR, str(failed)) from None
        return dict(replaced(answer, _exchanged, hidden.parts))


def _wire(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def _exchanged(answer: Any, exchange: Exchange) -> Any:
    """Return an answer with another text or value for each that stands under a key in `_TEXTS` or `_VALUES`."""
    if isinstance(answer, Mapping):
        return {
            key: exchange(part_of(inner))
            if key in _VALUES or (key in _TEXTS and isinstance(inner, str))
            else _exchanged(inner, exchange)
            for key, inner in answer.items()
        }
    return [_exchanged(inner, exchange) for inner in answer] if isinstance(answer, list) else answer
