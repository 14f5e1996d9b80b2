"""The MCP tools of skills."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BeforeValidator, FailFast, WithJsonSchema

from ....sandbox.job import Json
from ...governance.scopes import caller_of, connection_of
from ...use_cases.runs.report import Report
from ...use_cases.runs.request import plain_code
from ...use_cases.skills import use_cases as skills
from ...use_cases.skills.review import Review, lines_of, review
from ...use_cases.skills.use_cases import (
    DeletedSkill,
    LoadedSkill,
    RunSkillRequest,
    SavedSkill,
    SaveRequest,
    SkillContext,
    SkillList,
)
from .answers import (
    READS,
    Megabytes,
    OptionalFormat,
    OptionalSeconds,
    OptionalText,
    OptionalWhole,
    RunAnswers,
    Variables,
    answered,
    parsed_if_text,
    query_note,
)
from .elicitation import Client, Elicitations
from .sent_calls import SentCall
from .strict_tool import mcp_tool

Tags = Annotated[
    list[str],
    FailFast(),
    BeforeValidator(parsed_if_text),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]


@dataclass(frozen=True, slots=True)
class SkillTools:
    """The tools that save, load, list, run and delete skills."""

    context: SkillContext
    conversations: Elicitations
    answers: RunAnswers

    @mcp_tool(
        ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
        rest="load_skill(name) in code",
    )
    async def save_skill(
        self,
        name: str,
        ctx: Context[None, None],
        *,
        code: str = "",
        description: str = "",
        tests: str = "",
        tags: Tags = [],  # noqa: B006 - never changed, and published as the default
        from_run: OptionalText = None,
        record: bool = False,
        force: bool = False,
    ) -> Annotated[CallToolResult, SavedSkill]:
        """Save a skill: a function of that name with docstring and hints, or a script, its constants parameters."""
        caller = caller_of(ctx.request_context)
        request = SaveRequest(
            name, plain_code(code), description, plain_code(tests), tags, from_run, record, force, caller=caller
        )

        async def save(client: Client) -> CallToolResult:
            saved = await skills.save(self.context, replace(request, caller=client.asking(caller)))
            first = f"saved {saved['signature']} as version {saved['version']}"
            return answered(saved, "\n".join([first, *skills.saved_lines(saved), *saved["warnings"]]))

        return await self.conversations.hold(ctx, save)

    @mcp_tool(READS, rest="load_skill(name) in code")
    async def load_skill(self, name: str, version: OptionalWhole = None) -> Annotated[CallToolResult, LoadedSkill]:
        """A skill's code and parameters."""  # noqa: D401 - the words that a client shows
        loaded = await skills.load(self.context, name, version)
        return answered(loaded, loaded["code"])

    @mcp_tool(READS, rest="list_skills(query) in code")
    async def list_skills(
        self, query: OptionalText = None, tag: OptionalText = None, limit: int = 50, *, archived: bool = False
    ) -> Annotated[CallToolResult, SkillList]:
        """List or search skills."""
        found = await skills.listed(self.context, query, tag, limit, archived=archived)
        lines = [f"{each['signature']}  {each['description']}".strip().partition("\n")[0] for each in found["skills"]]
        lines = lines or ["no skill fits" if query or tag else "no skills"]
        return answered(found, "\n".join([*query_note(found), *lines]))

    @mcp_tool(READS, rest="`sealab skills review`")
    async def review_skills(self, ctx: Context[None, None]) -> Annotated[CallToolResult, Review]:
        """Skills to archive, merge or mend, and why."""
        found = await review(self.context, caller_of(ctx.request_context))
        return answered(found, "\n".join(lines_of(found)))

    @mcp_tool(
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
    )
    async def run_skill(
        self,
        name: str,
        ctx: Context[None, None],
        *,
        arguments: Variables = {},  # noqa: B006 - never changed, and published as the default
        version: OptionalWhole = None,
        timeout_seconds: OptionalSeconds = None,
        memory_mb: Megabytes = None,
        format: OptionalFormat = None,  # noqa: A002 - the contract's name
    ) -> Annotated[CallToolResult, Report]:
        """Run a skill."""
        caller, connection = caller_of(ctx.request_context), connection_of(ctx.request_context)
        given = cast("dict[str, Json]", arguments)
        asked = [name, given, version, timeout_seconds, memory_mb, format]
        sent = SentCall.of(ctx, caller, lambda: {"skill": asked})
        run_id = None if sent is None else sent.run_id
        request = RunSkillRequest(name, given, version, timeout_seconds, memory_mb, caller=caller, run_id=run_id)

        async def run(client: Client) -> CallToolResult:
            asked = replace(request, caller=client.asking(caller))
            execution = await skills.run(self.context, asked, progress=client.progress)
            return self.answers.of(execution, connection, format, of_skill=True)

        return await self.conversations.hold(ctx, run, sent=sent)

    @mcp_tool(
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        rest="list_skills(query) in code",
    )
    async def delete_skill(self, name: str, ctx: Context[None, None]) -> Annotated[CallToolResult, DeletedSkill]:
        """Delete a skill."""
        deleted = await skills.delete(self.context, name, caller=caller_of(ctx.request_context))
        return answered(deleted, json.dumps(deleted))
