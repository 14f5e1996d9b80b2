"""The MCP tools of sealab, each a function whose signature is its contract."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from functools import partial
from typing import Annotated, Literal, cast

import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import BeforeValidator, WithJsonSchema
from typing_extensions import TypedDict

from ..sandbox.run import Json
from .app import App
from .execution import FIGURE_MIME_TYPE, CodeRequest, execute
from .isolations import AUTO
from .report import Report, as_text
from .settings import Surface
from .statistics_report import Statistics, statistics_of
from .strict_tool import StrictTool, parsed_if_text

_RUNS_PYTHON = """\
Run Python in a sandbox: no network, no disk. Each call is fresh; session="name" keeps variables. \
Process data here and return little: the result is the variable `result` or the last expression; print() is returned \
too. Top-level await works. Data modules can be imported. \
"""

EXECUTE_CODE = f"""\
{_RUNS_PYTHON}\
Files: write_file(name, text), read_file(name), list_files(), delete_file(name).\
"""

EXECUTE_CODE_ALONE = f"""\
{_RUNS_PYTHON}\
Helpers: write_file(name, text), read_file(name), list_files(), delete_file(name); \
summarize_list(data, limit), filter_by_field(data, field, value), aggregate_stats(data, fields), \
format_output(data, max_chars). read_file what `truncated` names.\
"""

Encoding = Literal["utf-8", "base64"]
Variables = Annotated[dict[str, object], BeforeValidator(parsed_if_text), WithJsonSchema({"type": "object"})]
OptionalText = Annotated[str | None, WithJsonSchema({"type": ["string", "null"]})]
OptionalWhole = Annotated[int | None, WithJsonSchema({"type": ["integer", "null"]})]


class WrittenAnswer(TypedDict):
    """A file after writing; `size` in bytes."""

    filename: str
    size: int


class ReadAnswer(TypedDict):
    """A file, or the slice asked for; `size` is that of the whole file, in bytes."""

    filename: str
    content: str
    size: int
    truncated: bool


class ListedFile(TypedDict):
    """One file of a listing; `size` in bytes, `modified` in ISO 8601."""

    name: str
    size: int
    modified: str


class ListAnswer(TypedDict):
    """The files below a folder of the workspace, and how full it is."""

    path: str
    files: list[ListedFile]
    count: int
    used_bytes: int
    quota_bytes: int


class DeletedAnswer(TypedDict):
    """A file after deleting."""

    filename: str
    deleted: bool


def tools_of(app: App) -> list[StrictTool]:
    """Return the tools that the operator's surface shows, with the operator's defaults in their schemas."""
    run = _execute_code(app)
    if app.settings.surface is Surface.CODE:
        return [run]
    return [run, *_workspace_tools(app), _get_execution_stats(app)]


def _execute_code(app: App) -> StrictTool:
    settings = app.settings

    async def execute_code(
        code: str,
        ctx: Context[None, None],
        *,
        context_vars: Variables = {},  # noqa: B006 - never changed, and published as the default
        timeout_seconds: float = settings.timeout_seconds,
        memory_mb: int = settings.memory_mb,
        session: OptionalText = None,
        isolation: str = AUTO,
    ) -> Annotated[CallToolResult, Report]:
        request = CodeRequest(
            code=code,
            context_vars=cast("dict[str, Json]", context_vars),
            timeout_seconds=timeout_seconds,
            memory_mb=memory_mb,
            session=session,
            isolation=isolation,
        )
        execution = await execute(app, request, progress=partial(ctx.report_progress, message="running"))
        report = execution.report
        answer = _answer(report, as_text(report), failed=not report["success"])
        answer.content.extend(
            ImageContent(type="image", data=base64.b64encode(figure).decode("ascii"), mime_type=FIGURE_MIME_TYPE)
            for figure in execution.figures
        )
        return answer

    tool = StrictTool.published(
        execute_code,
        EXECUTE_CODE if settings.surface is Surface.FULL else EXECUTE_CODE_ALONE,
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
        always_loaded=True,
    )
    # The names alone, which only the operator's settings tell; `execute` says more than a schema when it refuses one.
    tool.parameters["properties"]["isolation"] = {"enum": [AUTO, *app.pools.offered], "default": AUTO}
    return tool


def _workspace_tools(app: App) -> list[StrictTool]:
    workspace = app.workspace

    async def write_workspace_file(
        filename: str, content: str, encoding: Encoding = "utf-8"
    ) -> Annotated[CallToolResult, WrittenAnswer]:
        written = await anyio.to_thread.run_sync(partial(workspace.write, filename, content, encoding=encoding))
        return _answer(asdict(written), f"wrote {written.filename} ({written.size} bytes)")

    async def read_workspace_file(
        filename: str, offset: int = 0, limit: OptionalWhole = None, encoding: Encoding = "utf-8"
    ) -> Annotated[CallToolResult, ReadAnswer]:
        read = await anyio.to_thread.run_sync(partial(workspace.read, filename, offset, limit, encoding=encoding))
        return _answer(asdict(read), read.content)

    async def list_workspace_files(subpath: str = ".") -> Annotated[CallToolResult, ListAnswer]:
        listed = await anyio.to_thread.run_sync(workspace.list, subpath)
        lines = [f"{file.size:>12}  {file.modified}  {file.name}" for file in listed.files]
        used = f"{listed.count} files; {listed.used_bytes} of {listed.quota_bytes} bytes used"
        return _answer(asdict(listed), "\n".join([*lines, used]))

    async def delete_workspace_file(filename: str) -> Annotated[CallToolResult, DeletedAnswer]:
        deleted = await anyio.to_thread.run_sync(workspace.delete, filename)
        return _answer(asdict(deleted), f"deleted {deleted.filename}")

    return [
        StrictTool.published(
            write_workspace_file,
            "Write a workspace file; replaces it whole. Code reads it with read_file(name).",
            ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        ),
        StrictTool.published(
            read_workspace_file,
            "Read a workspace file or a slice of it (characters, or bytes in base64). In code use read_file().",
            _READS,
        ),
        StrictTool.published(list_workspace_files, "List workspace files below a folder, with sizes.", _READS),
        StrictTool.published(
            delete_workspace_file,
            "Delete a workspace file.",
            ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        ),
    ]


def _get_execution_stats(app: App) -> StrictTool:
    async def get_execution_stats() -> Annotated[CallToolResult, Statistics]:
        statistics = await statistics_of(app)
        return _answer(statistics, json.dumps(statistics))

    return StrictTool.published(
        get_execution_stats,
        "Limits, active isolation layers, runs by status, latency, memory, CPU, workspace use.",
        _READS,
    )


_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def _answer(structured: object, text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=cast("dict[str, object]", structured),
        is_error=failed,
    )
