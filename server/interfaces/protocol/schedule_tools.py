"""The MCP tools of schedules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations

from ....sandbox.job import Json
from ...base.errors import RequestRefused
from ...governance.questions import Question
from ...governance.scopes import caller_of
from ...use_cases.skills.schedules import ListedSchedule, RemovedSchedule, ScheduleList, ScheduleRequest, Schedules
from .answers import READS, OptionalText, OptionalWhole, Variables, answered
from .elicitation import Client, Elicitations
from .strict_tool import mcp_tool

if TYPE_CHECKING:
    from ....skills_db.journal.schedule_store import StoredSchedule
    from ....skills_db.skills import StoredSkill

_WHILE_IT_RUNS = "This server speaks over stdio: it fires only while its client runs it."
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class ScheduleTools:
    """The tools that have skills run at set times."""

    schedules: Schedules
    conversations: Elicitations

    @mcp_tool(_WRITES, rest="list_schedules()")
    async def add_schedule(
        self,
        name: str,
        ctx: Context[None, None],
        *,
        skill: OptionalText = None,
        every: OptionalText = None,
        arguments: Variables = {},  # noqa: B006 - never changed, and published as the default
        version: OptionalWhole = None,
        overlap: Literal["skip", "wait", "start"] = "skip",
        missed: Literal["run", "skip"] = "run",
        retries: int = 0,
    ) -> Annotated[CallToolResult, ListedSchedule]:
        """Run a skill at set times, with the user's yes."""
        caller = caller_of(ctx.request_context)
        given = cast("Mapping[str, Json]", arguments) if arguments or skill else None
        request = ScheduleRequest(
            name, skill or "", every or "", given, version, overlap, missed, retries, caller=caller
        )

        async def add(client: Client) -> CallToolResult:
            async def agree(before: StoredSchedule | None, found: StoredSkill) -> None:
                what = f"version {found.version} of the skill {found.draft.name}"
                question = f"Change the schedule {name}, and have it run {what}?"
                if before is None:
                    if client.ask is None:  # the right to add one is enough where nobody can be asked
                        return
                    question = f"Run {what} at set times, as the schedule {name}: {every}?"
                await _agreed(client, question, f"sealab schedules add {name} --skill-version {found.version}")

            return _schedule_answer(ctx, await self.schedules.add(request, agree))

        return await self.conversations.hold(ctx, add)

    @mcp_tool(READS, rest="sealab schedules list on a terminal")
    async def list_schedules(self, ctx: Context[None, None]) -> Annotated[CallToolResult, ScheduleList]:
        """Schedules: last, next, why not."""
        return _schedule_answer(ctx, await self.schedules.listed(caller_of(ctx.request_context)))

    @mcp_tool(_WRITES, rest="list_schedules()")
    async def remove_schedule(self, name: str, ctx: Context[None, None]) -> Annotated[CallToolResult, RemovedSchedule]:
        """Remove a schedule, with the user's yes."""
        caller = caller_of(ctx.request_context)

        async def remove(client: Client) -> CallToolResult:
            async def agree() -> None:
                await _agreed(client, f"Remove the schedule {name}?", f"sealab schedules remove {name}")

            removed = await self.schedules.remove(name, caller, agree)
            return answered(removed, json.dumps(removed))

        return await self.conversations.hold(ctx, remove)


async def _agreed(client: Client, question: str, command: str) -> None:
    """Raise `RequestRefused` unless the user says yes."""
    if client.ask is None or (await client.ask(Question(plain=question))).choice is None:
        raise RequestRefused(f"{question} This needs the user's yes. Have the user run {command}.")


def _schedule_answer(ctx: Context[None, None], listed: ListedSchedule | ScheduleList) -> CallToolResult:
    """Return the answer; over stdio it says too when schedules are fired."""
    answer = answered(listed, json.dumps(listed, ensure_ascii=False))
    if ctx.request_context.request is None:
        answer.content.append(answered(None, _WHILE_IT_RUNS).content[0])
    return answer
