"""The MCP tools of skills."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BeforeValidator, FailFast, WithJsonSchema

from ...sandbox.job import Json
from ..caller import Ask, OpenLink
from ..runs.report import Report
from ..scopes import caller_of, connection_of
from ..settings import OutputFormat
from ..skills import use_cases as skills
from ..skills.use_cases import DeletedSkill, LoadedSkill, RunSkillRequest, SavedSkill, SaveRequest, SkillList
from ..terminal_escaping import visible
from .answers import READS, OptionalFormat, OptionalText, OptionalWhole, ReportedLayers, answered, answered_run
from .elicitation import Conversations, Newest
from .strict_tool import StrictTool, parsed_if_text

if TYPE_CHECKING:
    from ..skills.context import SkillContext

Variables = Annotated[dict[str, object], BeforeValidator(parsed_if_text), WithJsonSchema({"type": "object"})]
Tags = Annotated[
    list[str],
    FailFast(),
    BeforeValidator(parsed_if_text),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]


def skill_tools(
    context: SkillContext, conversations: Conversations, reported_layers: ReportedLayers
) -> list[StrictTool]:
    """Return the tools that save, load, list, run and delete skills."""
    return [
        _save_skill(context, conversations),
        _load_skill(context),
        _list_skills(context),
        _run_skill(context, conversations, reported_layers),
        _delete_skill(context),
    ]


def _save_skill(context: SkillContext, conversations: Conversations) -> StrictTool:
    async def save(
        request: SaveRequest, ask: Ask | None, _newest: Newest, open_link: OpenLink | None
    ) -> CallToolResult:
        caller = replace(request.caller, ask=ask, open_link=open_link)
        saved = await skills.save(context, replace(request, caller=caller))
        warnings = "".join(f"\n{warning}" for warning in saved["warnings"])
        return answered(saved, f"saved {saved['signature']} as version {saved['version']}{warnings}")

    async def save_skill(
        name: str,
        ctx: Context[None, None],
        *,
        code: str = "",
        description: str = "",
        tests: str = "",
        tags: Tags = [],  # noqa: B006 - never changed, and published as the default
        from_run: OptionalText = None,
        record: bool = False,
    ) -> Annotated[CallToolResult, SavedSkill]:
        request = SaveRequest(
            name, code, description, tests, tags, from_run, record, caller=caller_of(ctx.request_context)
        )
        return cast("CallToolResult", await conversations.hold(ctx, partial(save, request)))

    return StrictTool.published(
        save_skill,
        "Save a skill: a function of that name with docstring and hints, or a script (constants become parameters).",
        ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
        rest="load_skill(name) in code",
    )


def _load_skill(context: SkillContext) -> StrictTool:
    async def load_skill(name: str, version: OptionalWhole = None) -> Annotated[CallToolResult, LoadedSkill]:
        loaded = await skills.load(context, name, version)
        return answered(loaded, loaded["code"])

    return StrictTool.published(load_skill, "A skill's code and parameters.", READS, rest="load_skill(name) in code")


def _list_skills(context: SkillContext) -> StrictTool:
    async def list_skills(
        query: OptionalText = None, tag: OptionalText = None, limit: int = 50
    ) -> Annotated[CallToolResult, SkillList]:
        found = await skills.listed(context, query, tag, limit)
        lines = [f"{each['signature']}  {each['description']}".strip().partition("\n")[0] for each in found["skills"]]
        return answered(found, "\n".join(lines) or ("no skill fits" if query or tag else "no skills"))

    return StrictTool.published(
        list_skills,
        "List or search skills.",
        READS,
        rest="list_skills(query) in code",
    )


def _run_skill(context: SkillContext, conversations: Conversations, reported_layers: ReportedLayers) -> StrictTool:
    settings = context.executor.settings

    async def run_skill(
        name: str,
        ctx: Context[None, None],
        *,
        arguments: Variables = {},  # noqa: B006 - never changed, and published as the default
        version: OptionalWhole = None,
        timeout_seconds: float = settings.timeout_seconds,
        memory_mb: int = settings.memory_mb,
        format: OptionalFormat = None,  # noqa: A002 - the contract's name
    ) -> Annotated[CallToolResult, Report]:
        request = RunSkillRequest(
            name,
            cast("dict[str, Json]", arguments),
            version,
            timeout_seconds,
            memory_mb,
            caller=caller_of(ctx.request_context),
        )
        form = settings.output_format if format is None else OutputFormat(format)
        connection = connection_of(ctx.request_context)
        return cast("CallToolResult", await conversations.hold(ctx, partial(run, request, form, connection)))

    run = _runner(context, reported_layers)
    tool = StrictTool.published(
        run_skill,
        "Run a skill.",
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
    )
    if settings.timeout_seconds.is_integer():
        tool.parameters["properties"]["timeout_seconds"]["default"] = int(settings.timeout_seconds)
    return tool


def _runner(context: SkillContext, reported_layers: ReportedLayers) -> Callable[..., Awaitable[CallToolResult]]:
    async def run(  # noqa: PLR0917 - the last three are what all work is given
        request: RunSkillRequest,
        form: OutputFormat,
        connection: str | None,
        ask: Ask | None,
        newest: Newest,
        open_link: OpenLink | None,
    ) -> CallToolResult:
        async def tell(elapsed_seconds: float, timeout_seconds: float, message: str) -> None:
            await newest().report_progress(elapsed_seconds, timeout_seconds, visible(message))

        asked = replace(request, caller=replace(request.caller, ask=ask, open_link=open_link))
        execution = await skills.run(context, asked, progress=tell)
        layers = reported_layers.are_new(connection, execution.report)
        return answered_run(execution, form, default=context.executor.settings.output_format, layers=layers)

    return run


def _delete_skill(context: SkillContext) -> StrictTool:
    async def delete_skill(name: str, ctx: Context[None, None]) -> Annotated[CallToolResult, DeletedSkill]:
        deleted = await skills.delete(context, name, caller=caller_of(ctx.request_context))
        return answered(deleted, json.dumps(deleted))

    return StrictTool.published(
        delete_skill,
        "Delete a skill.",
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        rest="list_skills(query) in code",
    )
