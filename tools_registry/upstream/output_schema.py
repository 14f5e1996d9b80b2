"""Security boundary: checks structured answers against their tool's own schema, in a thread and for a bounded time.

What `schema_checks` does not judge counts as right. The SDK would check in the event loop, patterns included.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..errors import AnswerRefused
from ..schema_checks import (
    CheckEnded,
    best_error,
    end_of,
    ending_after,
    path_text,
)
from ..threads import Checkpoint, InThread

if TYPE_CHECKING:
    from mcp.types import CallToolResult

CHECK_SECONDS = 2.0
"""How long the check of one answer may take; the rest of it counts as right."""

_MESSAGE_CHARS_MAX = 400


async def check(tool: str, schema: object, result: CallToolResult, in_thread: InThread) -> None:
    """Check an answer. Raises `AnswerRefused` where it breaks the schema, or is missing."""
    if schema is None or result.is_error:
        return
    if "structured_content" not in result.model_fields_set:
        raise AnswerRefused(f"The tool {tool!r} has an output schema and gave no structured content. {_DONE_OR_NOT}")
    wrong = await in_thread(partial(_first_wrong, schema, result.structured_content))
    if wrong:
        raise AnswerRefused(f"The tool {tool!r} answered what breaks its own output schema: {wrong}. {_DONE_OR_NOT}")


_DONE_OR_NOT = "It may have done its work: look before calling it again."


def _first_wrong(schema: object, value: object, checkpoint: Checkpoint) -> str:
    """Return what is wrong with a value, or nothing."""
    try:
        error = best_error(schema, value, ending_after(CHECK_SECONDS, checkpoint))
    except CheckEnded:
        return ""
    except Exception:  # noqa: BLE001 - whatever a broken schema makes of it
        checkpoint()  # which is what raised it, where the run is over
        return ""
    if error is None:
        return ""
    path, message = path_text(error.absolute_path)[:_MESSAGE_CHARS_MAX], end_of(error.message, _MESSAGE_CHARS_MAX)
    return f"at {path}: {message}" if path else message
