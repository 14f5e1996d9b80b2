"""The run report as callers get it: its keys, and the same in a few lines of text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NotRequired

from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12


class ErrorReport(TypedDict):
    """Why a run did not end well; `line` and `traceback` speak of the caller's own code only."""

    type: str
    message: str
    line: int | None
    hint: str | None
    traceback: str | None


class ToolCall(TypedDict):
    """One upstream tool that the code called."""

    tool: str
    ok: bool
    ms: float


class DryCall(TypedDict):
    """A call of a tool that may write, which a dry run noted down and did not make."""

    tool: str
    arguments: Mapping[str, object]


class WrittenFile(TypedDict):
    """A file that the run wrote in the workspace; `size` in bytes."""

    name: str
    size: int


class Image(TypedDict):
    """A figure of the run: `size` in bytes. Over MCP the image itself follows as content, in this order."""

    mime_type: str
    size: int


class Hidden(TypedDict):
    """How many different values of each type stand in this report as tokens."""

    hidden: Mapping[str, int]


class Report(TypedDict):
    """One execution, told to whoever asked for it. Keys that would be empty are left out where they may be."""

    run_id: str
    success: bool
    status: str
    result: object
    output: str
    stderr: NotRequired[str]
    error: ErrorReport | None
    execution_time_ms: float
    queued_ms: NotRequired[float]
    tool_calls: NotRequired[list[ToolCall]]
    dry_run: NotRequired[list[DryCall]]
    truncated: NotRequired[Mapping[str, object]]
    isolation: str
    layers: list[str]
    files: NotRequired[list[WrittenFile]]
    images: NotRequired[list[Image]]
    session_ended: NotRequired[str]
    privacy: NotRequired[Hidden]


def as_text(report: Report) -> str:
    """Say the report in lines: how it ended, the result, the error, the output, and what was cut."""
    lines = [f"{report['status']} in {report['execution_time_ms']:.1f} ms"]
    if report["result"] is not None or report["success"]:
        lines.append(f"result: {json.dumps(report['result'], ensure_ascii=False)}")
    error = report["error"]
    if error is not None:
        where = "" if error["line"] is None else f" (line {error['line']})"
        lines.append(f"{error['type']}{where}: {error['message']}")
        if error["hint"]:
            lines.append(f"hint: {error['hint']}")
    if report["output"]:
        lines += ["output:", report["output"].rstrip("\n")]
    if "stderr" in report:
        lines += ["stderr:", report["stderr"].rstrip("\n")]
    for what, note in report.get("truncated", {}).items():
        lines.append(f"{what}: {json.dumps(note, ensure_ascii=False)}")
    for file in report.get("files", []):
        lines.append(f"wrote {file['name']} ({file['size']} bytes)")
    for dry in report.get("dry_run", []):
        lines.append(f"not called: {dry['tool']}({json.dumps(dry['arguments'], ensure_ascii=False)})")
    for image in report.get("images", []):
        lines.append(f"figure ({image['mime_type']}, {image['size']} bytes)")
    if "session_ended" in report:
        lines.append(f"session: {report['session_ended']}")
    if "privacy" in report:
        hidden = ", ".join(f"{count} {kind}" for kind, count in report["privacy"]["hidden"].items())
        lines.append(f"hidden behind tokens: {hidden}")
    return "\n".join(lines)
