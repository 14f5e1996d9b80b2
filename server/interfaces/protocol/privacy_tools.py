"""The MCP tools of the vault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NotRequired, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from typing_extensions import TypedDict

from ...governance.scopes import caller_of, scope_of
from ...privacy.privacy import Privacy
from ...privacy.tokens.parts import Text
from .answers import READS, answered
from .strict_tool import mcp_tool

TOOLS = ("sanitize_pii", "restore_pii")


class SanitizedAnswer(TypedDict):
    """A text with tokens in it; `pii_found` counts different values, `pii_types` names their types."""

    sanitized_text: str
    pii_found: int
    pii_types: list[str]
    truncated: NotRequired[dict[str, object]]


class RestoredAnswer(TypedDict):
    """A text with values in it; `restored` counts the tokens that were replaced, the others are named."""

    restored_text: str
    restored: int
    unknown_tokens: list[str]
    truncated: NotRequired[dict[str, object]]


@dataclass(frozen=True, slots=True)
class PrivacyTools:
    """The tools that hide personal data and give it back."""

    privacy: Privacy

    @mcp_tool(
        ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
        rest="sanitize_pii(text) in code",
    )
    async def sanitize_pii(self, text: str, ctx: Context[None, None]) -> Annotated[CallToolResult, SanitizedAnswer]:
        """Replace personal data by tokens like [EMAIL_…]."""
        scope, privacy = scope_of(ctx.request_context), self.privacy
        hidden = await privacy.hide(scope, (Text(text, exact=True),), run_tokens=privacy.new_run_tokens(scope))
        sanitized = cast("str", hidden.parts[0])
        answer = SanitizedAnswer(
            sanitized_text=sanitized, pii_found=sum(hidden.types.values()), pii_types=sorted(hidden.types)
        )
        return answered(answer, sanitized)

    @mcp_tool(READS, rest="restore_pii(text) in code")
    async def restore_pii(self, text: str, ctx: Context[None, None]) -> Annotated[CallToolResult, RestoredAnswer]:
        """Put the values of tokens back."""
        restored = await self.privacy.restored_for_model(caller_of(ctx.request_context), text)
        content = cast("str", restored.content)
        answer = RestoredAnswer(restored_text=content, restored=restored.count, unknown_tokens=list(restored.unknown))
        return answered(answer, content)
