"""The MCP tool that tells how far a run is, and the answer of a call that began one in the background."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NotRequired

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import with_config
from pydantic.config import JsonDict
from typing_extensions import TypedDict

from ...governance.caller import NobodyAnswers
from ...governance.questions import NO
from ...governance.scopes import caller_of, connection_of
from ...use_cases.runs.background.background import Background
from ...use_cases.runs.background.background_reports import Answered, Approval
from ...use_cases.runs.report import Report
from .answers import RunAnswers
from .elicitation import Client, Elicitations, can_be_asked, may_approve, only_opens_links
from .strict_tool import mcp_tool


class ProgressReport(TypedDict):
    """How far the code of a run says that it is: a share from 0 to 1, and its message."""

    fraction: float
    message: str


class ApprovalReport(TypedDict):
    """What a run waits for: a user's answer, by `sealab approvals approve ID` or `deny ID`.

    `answered` says which answer counts, where the user of this call gave one that came later.
    """

    id: str
    question: str
    answered: NotRequired[str]


def _always_there(schema: JsonDict) -> None:
    """Require of a report what one has that has not ended, too."""
    schema["required"] = ["run_id", "status"]


@with_config(json_schema_extra=_always_there)
class RunReport(Report):
    """The report of a run, or how far it is: then it has but `run_id`, `status` and perhaps `progress`."""

    progress: NotRequired[ProgressReport]
    approval: NotRequired[ApprovalReport]


@dataclass(frozen=True, slots=True)
class RunTools:
    """The tool that tells how far a run is, waits for its end, or cancels it.

    Where the run waits for an answer, the client's user is asked for it: by a form, or to open the page of the question
    where the client only opens links.
    """

    background: Background
    conversations: Elicitations
    answers: RunAnswers

    @mcp_tool(
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        rest='read_workspace_file(".runs/<run_id>/output.txt")',
    )
    async def get_run(
        self, run_id: str, ctx: Context[None, None], *, wait_seconds: float = 0, cancel: bool = False
    ) -> Annotated[CallToolResult, RunReport]:
        """A run's report or progress."""  # noqa: D401 - the words that a client shows
        if ctx.request_state is not None:  # the run may have been answered meanwhile, which the earlier call tells
            return await self.conversations.resume(ctx, ctx.request_state)
        background, caller = self.background, caller_of(ctx.request_context)
        reach = await background.reach(run_id, caller)
        scope = reach.scope
        if cancel:
            await background.cancel(run_id, caller.scope if reach.answers_alone else scope)
        state = await background.reached(run_id, reach, caller, wait_seconds=wait_seconds)
        connection = connection_of(ctx.request_context)
        approval = state.approval
        link = None
        if approval is not None and only_opens_links(ctx.client_capabilities) and may_approve(ctx):
            link = await background.link_at(ctx.request_context.request, state, approval)
        if approval is None or (link is None and not can_be_asked(ctx)):
            return self.answers.of_state(state, connection)

        async def answered_by_user(client: Client) -> CallToolResult:
            try:
                reply = NO if client.ask is None else await client.ask(approval.asked)
            except NobodyAnswers:
                return self.answers.of_state(state, connection)
            if link is not None and reply.choice is None:
                return self.answers.of_state(state, connection)
            # To open a link is no answer yet: that is given at the page.
            counts = link is not None or await background.answer(approval, reply, scope, by=caller)
            if reach.answers_alone:
                now = await background.queued_state(run_id, None)
                later = replace(now, execution=None, progress=None)  # whose run it is not is shown no report
            else:
                later = await background.state(run_id, scope, wait_seconds=wait_seconds, known_question=approval)
            answer = self.answers.of_state(later, connection)
            return answer if counts else _with_earlier(answer, approval, later.answer_to(approval.number))

        return await self.conversations.hold(ctx, answered_by_user, parks=True, link=link)


def _with_earlier(answer: CallToolResult, approval: Approval, earlier: Answered | None) -> CallToolResult:
    if earlier is not None and answer.structured_content is not None:
        report = {"id": approval.id, "question": approval.question, "answered": str(earlier)}
        answer.structured_content.setdefault("approval", report)
        answer.content.append(
            TextContent(type="text", text=f"Another answer to {approval.id} came first: it was {earlier}.")
        )
    return answer
