"""The MCP tool that tells how far a run is, and the answer of a call that began one in the background."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NotRequired, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import with_config
from pydantic.config import JsonDict
from typing_extensions import TypedDict

from ...sandbox.job import Status
from ..caller import Ask, NobodyAnswers, OpenLink
from ..runs.background.approval_links import link_of
from ..runs.background.background import ENDED
from ..runs.report import Report
from ..scopes import caller_of, connection_of
from .answers import ReportedLayers, answered, answered_run
from .elicitation import Conversations, Newest, can_be_asked, may_approve, only_opens_links
from .strict_tool import StrictTool

if TYPE_CHECKING:
    from ..runs.background.background import Background
    from ..runs.background.background_reports import Answered, Approval, RunState
    from ..settings import OutputFormat


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


def get_run_tool(
    background: Background, conversations: Conversations, reported_layers: ReportedLayers, form: OutputFormat
) -> StrictTool:
    """Return the tool that tells how far a run is, waits for its end, or cancels it.

    Where the run waits for an answer, the client's user is asked for it: by a form, or to open the page of the question
    where the client only opens links.
    """

    async def get_run(
        run_id: str, ctx: Context[None, None], *, wait_seconds: float = 0, cancel: bool = False
    ) -> Annotated[CallToolResult, RunReport]:
        if ctx.request_state is not None:  # the run may have been answered meanwhile, which the earlier call tells
            return cast("CallToolResult", await conversations.resume(ctx, ctx.request_state))
        caller = caller_of(ctx.request_context)
        reach = await background.reach(run_id, caller)
        scope = reach.scope
        if cancel:
            await background.cancel(run_id, caller.scope if reach.answers_alone else scope)
        state = await background.reached(run_id, reach, caller, wait_seconds=wait_seconds)
        connection = connection_of(ctx.request_context)
        approval = state.approval
        link = None
        if approval is not None and only_opens_links(ctx.client_capabilities) and may_approve(ctx):
            link = await link_of(background, state, approval, ctx.request_context.request)
        if approval is None or (link is None and not can_be_asked(ctx)):
            return answered_state(state, reported_layers, form, connection)

        async def answered_by_user(ask: Ask | None, _newest: Newest, _open: OpenLink | None) -> CallToolResult:
            try:
                choice = None if ask is None else await ask(approval.question, approval.choices)
            except NobodyAnswers:
                return answered_state(state, reported_layers, form, connection)
            if link is not None and choice is None:
                return answered_state(state, reported_layers, form, connection)
            # To open a link is no answer yet: that is given at the page.
            counts = link is not None or await background.answer(approval, choice, scope, by=caller)
            if reach.answers_alone:
                now = await background.queued_state(run_id, None)
                later = replace(now, execution=None, progress=None)  # whose run it is not is shown no report
            else:
                later = await background.state(run_id, scope, wait_seconds=wait_seconds, told_of=approval)
            told = answered_state(later, reported_layers, form, connection)
            return told if counts else _with_earlier(told, approval, later.answer_to(approval.number))

        return cast("CallToolResult", await conversations.hold(ctx, answered_by_user, parks=True, link=link))

    return StrictTool.published(
        get_run,
        "A run's report or progress.",
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
        rest='read_workspace_file(".runs/<run_id>/output.txt")',
    )


def _with_earlier(told: CallToolResult, approval: Approval, earlier: Answered | None) -> CallToolResult:
    """Add to what is told of a run that another answer to its question came first."""
    if earlier is not None and told.structured_content is not None:
        report = {"id": approval.id, "question": approval.question, "answered": str(earlier)}
        told.structured_content.setdefault("approval", report)
        told.content.append(
            TextContent(type="text", text=f"Another answer to {approval.id} came first: it was {earlier}.")
        )
    return told


def answered_state(
    state: RunState, reported_layers: ReportedLayers, form: OutputFormat, connection: str | None
) -> CallToolResult:
    """Return what is told of a run: its report as `execute_code` would give it, or how far it is."""
    if state.execution is not None:
        layers = bool(state.execution.report["layers"]) and reported_layers.are_new(connection, state.execution.report)
        answer = answered_run(state.execution, form, default=form, layers=layers)
        answer.is_error = answer.is_error and state.execution.report["status"] != Status.CANCELLED
        return answer
    status = "running" if state.status == ENDED else state.status
    told: dict[str, object] = {"run_id": state.run_id, "status": status}
    text = f"{status} (run {state.run_id})"
    if state.approval is not None:
        told["approval"] = {"id": state.approval.id, "question": state.approval.question}
        text = f"{text}: a user has to answer, by `sealab approvals`: {state.approval.question}"
    if state.progress is not None:
        told["progress"] = {"fraction": state.progress.fraction, "message": state.progress.message}
        text = f"{text}: {state.progress.fraction:.0%} {state.progress.message}".rstrip()
    return answered(cast("object", told), text)
