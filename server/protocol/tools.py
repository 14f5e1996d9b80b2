"""The MCP tools of sealab, each a function whose signature is its contract."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BeforeValidator, WithJsonSchema

from ...sandbox.job import Json
from ..app import App
from ..caller import Ask, Caller, OpenLink
from ..identity import DEFAULT_TENANT, Right
from ..runs.background.background import executed_or_parked
from ..runs.background.background_reports import RunState
from ..runs.isolations import AUTO
from ..runs.report import Report
from ..runs.request import CodeRequest
from ..scopes import caller_of, connection_of, is_principal, session_of
from ..settings import OutputFormat, Surface
from ..terminal_escaping import visible
from ..upstream_tools.discovery import server_name
from .answers import READS, OptionalFormat, OptionalName, OptionalSeconds, ReportedLayers, answered, answered_run
from .background_tools import RunReport, answered_state, get_run_tool
from .elicitation import Conversations, Newest
from .privacy_tools import privacy_tools
from .registry_tools import registry_tools
from .skill_tools import skill_tools
from .statistics_report import Statistics, statistics_of
from .strict_tool import StrictTool, parsed_if_text
from .workspace_tools import workspace_tools

EXECUTE_CODE = """\
Run Python in a sandbox: no network. Calls are fresh; session="name" keeps variables. Return little: \
`result` or last expression; print() too. Top-level await works; stdlib data modules \
import. Upstream tools: search_tools(query), await tools.<server>.<tool>(**args). Skills: \
skills.<name>(). Files: open, read_file(name), write_file(name, text), list_files, delete_file.\
"""

EXECUTE_CODE_ALONE = """\
Run sandboxed Python: no network. Return little: `result` or last expression; print() too. session keeps \
variables. Helpers: search_tools(query), get_tool_definition(name), await tools.<server>.<tool>(**args), \
list_servers(); skills.<name>(), save_skill(name, code), list_skills(); read_file, write_file(name, text), list_files, \
delete_file; sanitize_pii, restore_pii(text); summarize_list, filter_by_field, aggregate_stats, format_output.\
"""

DATA_MODULES = (
    "numpy",
    "pandas",
    "polars",
    "duckdb",
    "pyarrow",
    "openpyxl",
    "matplotlib",
    "seaborn",
    "scipy",
    "sklearn",
)
"""Those whose absence would have a model write otherwise."""

RUN_PYTHON = """\
Run Python in a sandbox: no network, no disk. Return little: `result` or the last expression; print() too. Top-level \
await works. `servers` names the MCP servers that the code uses. Helpers: await mcp_<server>.<tool>(**args); \
mcp_servers["<server>"]; from mcp import runtime: discovered_servers(), list_servers(), query_tool_docs(server), \
search_tool_docs("words"), describe_server(name), capability_summary().\
"""

Variables = Annotated[dict[str, object], BeforeValidator(parsed_if_text), WithJsonSchema({"type": "object"})]


def tools_of(app: App) -> list[StrictTool]:
    """Return the tools that the operator's surface shows, with the operator's defaults in their schemas."""
    conversations, reported_layers = Conversations(), ReportedLayers()
    run = _execute_code(app, conversations, reported_layers)
    if app.settings.surface is Surface.CODE:
        return [run]
    if app.settings.surface is Surface.BRIDGE:
        return [_run_python(app, conversations, reported_layers)]
    chars_max = app.settings.output_max_chars
    tools = [
        run,
        get_run_tool(app.background, conversations, reported_layers, app.settings.output_format),
        *registry_tools(app.registry),
        *skill_tools(app.skills, conversations, reported_layers),
        *privacy_tools(app.privacy),
        *workspace_tools(app.workspace, app.privacy, app.executor, chars_max),
        _get_execution_stats(app),
    ]
    return [tool.bound(chars_max) for tool in tools]


def _execute_code(app: App, conversations: Conversations, reported_layers: ReportedLayers) -> StrictTool:
    settings = app.settings

    async def execute_code(
        code: str,
        ctx: Context[None, None],
        *,
        context_vars: Variables = {},  # noqa: B006 - never changed, and published as the default
        timeout_seconds: OptionalSeconds = None,
        memory_mb: int = settings.memory_mb,
        session: OptionalName = None,
        isolation: str = AUTO,
        dry_run: bool = False,
        background: bool = False,
        format: OptionalFormat = None,  # noqa: A002 - the contract's name
    ) -> Annotated[CallToolResult, RunReport]:
        context = ctx.request_context
        request = CodeRequest(
            code=code,
            context_vars=cast("dict[str, Json]", context_vars),
            timeout_seconds=timeout_seconds,
            memory_mb=memory_mb,
            session=session,
            isolation=isolation,
            dry_run=dry_run,
            caller=caller_of(context),
        )
        form = settings.output_format if format is None else OutputFormat(format)
        connection = connection_of(context)
        if background:
            return answered_state(await app.background.submit(request), reported_layers, form, connection)
        held_in = None if session is None else session_of(request.caller.scope, session)
        job = partial(run, request, form, connection)
        return cast("CallToolResult", await conversations.hold(ctx, job, session=held_in, parks=parks))

    parks = settings.surface is Surface.FULL  # where there is get_run
    run = _runner(app, reported_layers)
    tool = StrictTool.published(
        execute_code,
        (EXECUTE_CODE if settings.surface is Surface.FULL else EXECUTE_CODE_ALONE) + _packages(app),
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
        always_loaded=True,
    )
    _adapt_to_settings(tool.parameters["properties"], app)
    return tool


def _packages(app: App) -> str:
    """Say which packages for data work code can import, where it can import any."""
    full_python = app.executor.offer.full_python
    if full_python.why_not() is not None:
        return ""
    there = [module for module in DATA_MODULES if module in full_python.modules()]
    return f" Import too: {', '.join(there)}." if there else ""


def _adapt_to_settings(properties: dict[str, dict[str, object]], app: App) -> None:
    if app.settings.surface is Surface.CODE:  # it is meant to be small, and its description says what they are for
        for schema in properties.values():
            del schema["description"]
        del properties["background"]  # there is no get_run beside it
    # The names alone, which depend on the operator's settings; `execute` says more than a schema when it refuses one.
    properties["isolation"]["enum"] = [AUTO, *app.pools.offered]
    seconds = app.settings.timeout_seconds
    properties["timeout_seconds"]["default"] = int(seconds) if seconds.is_integer() else seconds


def _run_python(app: App, conversations: Conversations, reported_layers: ReportedLayers) -> StrictTool:
    """Return the one tool of the bridge: the same runs as `execute_code`, under the name and parameters it had."""
    run = _runner(app, reported_layers)

    async def run_python(
        code: str,
        ctx: Context[None, None],
        *,
        servers: list[str] = [],  # noqa: B006 - never changed, and published as the default
        timeout: float = app.settings.timeout_seconds,  # noqa: ASYNC109 - the bridge's name
    ) -> Annotated[CallToolResult, Report]:
        caller = caller_of(ctx.request_context)
        for name in servers:
            await server_name(app.registry, caller.identity, name)
        request = CodeRequest(code=code, timeout_seconds=timeout, caller=caller)
        job = partial(run, request, app.settings.output_format, connection_of(ctx.request_context))
        return cast("CallToolResult", await conversations.hold(ctx, job))

    return StrictTool.published(
        run_python,
        RUN_PYTHON,
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
        always_loaded=True,
    )


_Run = Callable[[CodeRequest, OutputFormat, str | None, Ask | None, Newest, OpenLink | None], Awaitable[CallToolResult]]


def _runner(app: App, reported_layers: ReportedLayers) -> _Run:
    """Return what runs code for a tool, and reports its progress to the client."""

    async def run(  # noqa: PLR0917 - the last three are what all work is given
        request: CodeRequest,
        form: OutputFormat,
        connection: str | None,
        ask: Ask | None,
        newest: Newest,
        open_link: OpenLink | None,
    ) -> CallToolResult:
        async def tell(elapsed_seconds: float, timeout_seconds: float, message: str) -> None:
            await newest().report_progress(elapsed_seconds, timeout_seconds, visible(message))

        asked = request
        if ask is not None or open_link is not None:
            asked = replace(request, caller=replace(request.caller, ask=ask, open_link=open_link))
        execution = await executed_or_parked(app.executor, app.background, asked, progress=tell)
        if isinstance(execution, RunState):
            return answered_state(execution, reported_layers, form, connection)
        app.executor.last_runs.note(asked.caller.scope, execution.report["run_id"])
        layers = reported_layers.are_new(connection, execution.report)
        return answered_run(execution, form, default=app.settings.output_format, layers=layers)

    return run


def _sees_machine(caller: Caller) -> bool:
    """Return whether a caller may see figures of the whole process, which tell what other tenants do."""
    identity = caller.identity
    return not is_principal(caller.scope) or (identity.tenant == DEFAULT_TENANT and identity.may(Right.ADMIN))


def _get_execution_stats(app: App) -> StrictTool:
    async def get_execution_stats(ctx: Context[None, None]) -> Annotated[CallToolResult, Statistics]:
        caller = caller_of(ctx.request_context)
        statistics = await statistics_of(app, caller, of_machine=_sees_machine(caller))
        return answered(statistics, json.dumps(statistics))

    return StrictTool.published(
        get_execution_stats,
        "Limits, layers, runs, latency, memory.",
        READS,
        rest="sealab doctor says it on a terminal",
    )
