"""The MCP tools of sealab, each a function whose signature is its contract."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations

from ....sandbox.job import Json
from ...app import App
from ...base.identity import DEFAULT_TENANT, Right
from ...base.settings import Surface
from ...governance.caller import LOCAL, Caller
from ...governance.scopes import caller_of, connection_of, is_principal, session_of
from ...use_cases.runs.background.background import executed_or_parked
from ...use_cases.runs.background.background_reports import RunState
from ...use_cases.runs.isolations import AUTO
from ...use_cases.runs.report import Report
from ...use_cases.runs.request import CodeRequest, request_json
from ...use_cases.upstream_tools.discovery import LIMIT_DEFAULT, server_name
from .answers import (
    READS,
    Megabytes,
    OptionalFormat,
    OptionalName,
    OptionalSeconds,
    RunAnswers,
    Variables,
    answered,
)
from .background_tools import RunReport, RunTools
from .elicitation import Client, Elicitations
from .privacy_tools import PrivacyTools
from .registry_tools import RegistryTools
from .schedule_tools import ScheduleTools
from .sent_calls import EarlierCalls, SentCall
from .skill_tools import SkillTools
from .statistics_report import Statistics, statistics_of
from .strict_tool import StrictTool, mcp_tool, tools_by
from .workspace_tools import WorkspaceTools

_RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)

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


def tools_of(app: App) -> list[StrictTool]:
    """Return the tools that the operator's surface shows, with the operator's defaults in their schemas."""
    settings = app.settings
    answers = RunAnswers(settings.output_format)

    def answer_of(ctx: Context[Any, Any], state: RunState) -> CallToolResult:
        return answers.of_state(state, connection_of(ctx.request_context))

    conversations = Elicitations(before=EarlierCalls(app.background), answer_of=answer_of)
    if settings.surface is Surface.BRIDGE:
        tools = tools_by(BridgeTools(app, conversations, answers))
        tools["run_python"].description = RUN_PYTHON
    elif settings.surface is Surface.CODE:
        tools = tools_by(CodeTools(app, conversations, answers))
        properties = tools["execute_code"].parameters["properties"]
        for schema in properties.values():  # it is meant to be small, and its description says what they are for
            del schema["description"]
        del properties["background"]  # there is no get_run beside it
    else:
        tools = tools_by(
            CodeTools(app, conversations, answers),
            RunTools(app.background, conversations, answers),
            RegistryTools(app.registry),
            SkillTools(app.skills, conversations, answers),
            ScheduleTools(app.schedules, conversations),
            *([] if app.privacy.is_off else [PrivacyTools(app.privacy)]),
            WorkspaceTools(app.workspace, app.privacy, app.executor, settings.output_max_chars),
            StatisticsTools(app),
        )
        for tool in tools.values():
            tool.bound(settings.output_max_chars)
    _adapt_to_settings(tools, app)
    return list(tools.values())


def _adapt_to_settings(tools: Mapping[str, StrictTool], app: App) -> None:
    """Put the operator's defaults into what the tools say of themselves."""
    settings = app.settings
    seconds = int(settings.timeout_seconds) if settings.timeout_seconds.is_integer() else settings.timeout_seconds
    defaults = {"timeout_seconds": seconds, "timeout": seconds, "memory_mb": settings.memory_mb}
    for tool in tools.values():
        for name, default in defaults.items():
            if name in tool.parameters["properties"]:
                tool.parameters["properties"][name]["default"] = default
    if "search_tools" in tools:
        tools["search_tools"].parameters["properties"]["limit"]["default"] = LIMIT_DEFAULT
    if "execute_code" in tools:
        code = tools["execute_code"]
        code.description = (EXECUTE_CODE if settings.surface is Surface.FULL else EXECUTE_CODE_ALONE) + _packages(app)
        # The names alone, which depend on the settings; `execute` says more than a schema when it refuses one.
        code.parameters["properties"]["isolation"]["enum"] = [AUTO, *app.pools.offered]


def _packages(app: App) -> str:
    full_python = app.executor.offer.full_python
    if full_python.why_not() is not None:
        return ""
    there = [module for module in DATA_MODULES if module in full_python.modules()]
    return f" Import too: {', '.join(there)}." if there else ""


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs code for a tool."""

    app: App
    conversations: Elicitations
    answers: RunAnswers

    async def _run(
        self, ctx: Context[None, None], request: CodeRequest, form: str | None = None, *, parks: bool = False
    ) -> CallToolResult:
        app, caller, connection = self.app, request.caller, connection_of(ctx.request_context)
        session = None if request.session is None else session_of(caller.scope, request.session)

        def asking() -> dict[str, object]:
            code = request_json(replace(request, caller=LOCAL)) | {"asked_at": None}  # as it is when it is sent again
            return {"code": code, "background": request.background, "form": form}

        sent = SentCall.of(ctx, caller, asking)
        run_id = None if sent is None else sent.run_id

        async def run(client: Client) -> CallToolResult:
            if request.background:
                return self.answers.of_state(await app.background.submit(replace(request, run_id=run_id)), connection)
            asked = replace(request, run_id=run_id, caller=client.asking(caller))
            execution = await executed_or_parked(app.executor, app.background, asked, progress=client.progress)
            if isinstance(execution, RunState):
                return self.answers.of_state(execution, connection)
            app.executor.last_runs.note(caller.scope, execution.report["run_id"])
            return self.answers.of(execution, connection, form)

        return await self.conversations.hold(ctx, run, session=session, parks=parks, sent=sent)


class CodeTools(_Runs):
    """The tool that runs code."""

    @mcp_tool(_RUNS, always_loaded=True)
    async def execute_code(
        self,
        code: str,
        ctx: Context[None, None],
        *,
        context_vars: Variables = {},  # noqa: B006 - never changed, and published as the default
        timeout_seconds: OptionalSeconds = None,
        memory_mb: Megabytes = None,
        session: OptionalName = None,
        isolation: str = AUTO,
        dry_run: bool = False,
        background: bool = False,
        format: OptionalFormat = None,  # noqa: A002 - the contract's name
    ) -> Annotated[CallToolResult, RunReport]:
        """Run code; see `EXECUTE_CODE`."""
        request = CodeRequest(
            code=code,
            context_vars=cast("dict[str, Json]", context_vars),
            timeout_seconds=timeout_seconds,
            memory_mb=memory_mb,
            session=session,
            isolation=isolation,
            dry_run=dry_run,
            caller=caller_of(ctx.request_context),
            background=background,
        )
        has_get_run = self.app.settings.surface is Surface.FULL
        return await self._run(ctx, request, format, parks=has_get_run)


class BridgeTools(_Runs):
    """The one tool of the bridge: the same runs as `execute_code`, under the name and parameters it had."""

    @mcp_tool(_RUNS, always_loaded=True)
    async def run_python(
        self,
        code: str,
        ctx: Context[None, None],
        *,
        servers: list[str] = [],  # noqa: B006 - never changed, and published as the default
        timeout: OptionalSeconds = None,  # noqa: ASYNC109 - the bridge's name
    ) -> Annotated[CallToolResult, Report]:
        """Run code; see `RUN_PYTHON`."""
        caller = caller_of(ctx.request_context)
        for name in servers:
            await server_name(self.app.registry, caller.identity, name)
        return await self._run(ctx, CodeRequest(code=code, timeout_seconds=timeout, caller=caller))


@dataclass(frozen=True, slots=True)
class StatisticsTools:
    """The tool that says what the server has done and uses."""

    app: App

    @mcp_tool(READS, rest="sealab doctor says it on a terminal")
    async def get_execution_stats(self, ctx: Context[None, None]) -> Annotated[CallToolResult, Statistics]:
        """Limits, layers, runs, latency, memory."""
        caller = caller_of(ctx.request_context)
        statistics = await statistics_of(self.app, caller, of_machine=_sees_machine(caller))
        return answered(statistics, json.dumps(statistics))


def _sees_machine(caller: Caller) -> bool:
    """Return whether a caller may see figures of the whole process, which tell what other tenants do."""
    identity = caller.identity
    return not is_principal(caller.scope) or (identity.tenant == DEFAULT_TENANT and identity.may(Right.ADMIN))
