"""What the MCP tools share: the shape of an answer, and the annotations of a tool that only reads."""

from __future__ import annotations

import base64
from typing import Annotated, cast

from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import WithJsonSchema

from ..runs.execute import FIGURE_MIME_TYPE, Execution
from ..runs.report import as_text
from ..terminal_escaping import visible

OptionalText = Annotated[str | None, WithJsonSchema({"type": ["string", "null"]})]
OptionalWhole = Annotated[int | None, WithJsonSchema({"type": ["integer", "null"]})]

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def answered(structured: object, text: str, *, failed: bool = False) -> CallToolResult:
    """Return the answer of a tool: its structured content, and a short text for those who read that alone.

    The structured content is data, and exact; the text may be shown as it is, so control characters are visible in it.
    """
    return CallToolResult(
        content=[TextContent(type="text", text=visible(text))],
        structured_content=cast("dict[str, object]", structured),
        is_error=failed,
    )


def answered_run(execution: Execution) -> CallToolResult:
    """Return the answer of a tool that ran code: its report, and the figures that the code showed."""
    report = execution.report
    answer = answered(report, as_text(report), failed=not report["success"])
    answer.content.extend(
        ImageContent(type="image", data=base64.b64encode(figure).decode("ascii"), mime_type=FIGURE_MIME_TYPE)
        for figure in execution.figures
    )
    return answer
