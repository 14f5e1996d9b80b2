"""The MCP tools of schedules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations

from ....sandbox.job import Json
from ...base.errors import RequestRefused
from ...governance.questions import Question
from ...governance.scopes import caller_of
from ...use_cases.skills.schedules import ListedSchedule, RemovedSchedule, ScheduleList, ScheduleRequest, Schedules
from .answers import READS, OptionalText, OptionalWhole, Variables, answered
from .elicitation import Client, Conversations
from .strict_tool import mcp_tool

_WHILE_IT_RUNS = "This server speaks over stdio: it fires only while its client runs it."
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class ScheduleTools:
    """The tools that have skills run at set times."""

    schedules: Schedules
    conversations: Conversations

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
        """Run a skill at set times. Changing one asks the user."""
        caller = caller_of(ctx.request_context)
        given = cast("Mapping[str, Json]", arguments) if arguments or skill else None
        request = ScheduleRequest(
            name, skill or "", every or "", given, version, overlap, missed, retries, caller=caller
        )

        async def add(client: Client) -> CallToolResult:
            if await self.schedules.known(name, caller) is not None:
                question = f"Change the schedule {name}, and have it run the version of its skill that there is now?"
                if client.ask is None or (await client.ask(Question(plain=question))).choice is None:
                    raise RequestRefused(
                        f"There is a schedule {name}, and to change it or to have it go on needs the user's yes. Have "
                        f"the user run sealab schedules add {name}."
                    )
            return _told(ctx, await self.schedules.add(request))

        return await self.conversations.hold(ctx, add)

    @mcp_tool(READS, rest="sealab schedules list on a terminal")
    async def list_schedules(self, ctx: Context[None, None]) -> Annotated[CallToolResult, ScheduleList]:
        """Schedules: last, next, why not."""
        return _told(ctx, await self.schedules.listed(caller_of(ctx.request_context)))

    @mcp_tool(_WRITES, rest="list_schedules()")
    async def remove_schedule(self, name: str, ctx: Context[None, None]) -> Annotated[CallToolResult, RemovedSchedule]:
        """Remove a schedule."""
        removed = await self.schedules.remove(name, caller_of(ctx.request_context))
        return answered(removed, json.dumps(removed))


def _told(ctx: Context[None, None], told: ListedSchedule | ScheduleList) -> CallToolResult:
    """Return an answer that says over stdio when it fires."""
    answer = answered(told, json.dumps(told, ensure_ascii=False))
    if ctx.request_context.request is None:
        answer.content.append(answered(None, _WHILE_IT_RUNS).content[0])
    return answer
