"""Background runs as tasks: the Tasks extension (SEP-2663) for clients of 2026-07-28 that declare it.

A call of `execute_code` with `background=true` is then answered with a task in place of a report, and the task's id is
the run's. Every run that `get_run` would tell of is a task, whichever process runs it. `tasks/get` tells how far it is,
and holds the answer of the call once the run has ended; a run that failed is a completed task, whose answer is a tool
error; one that waits for a yes asks for input (`tasks/update` answers).

The shapes are those of the extension's schema; the SDK has types only for what became of tasks in 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, CallToolResult, ElicitResult, RequestParams
from pydantic import ValidationError

from .....skills_db.errors import JournalErased, JournalNotFound, SkillsDbError
from ....base.errors import HostWorkBusy
from ....base.identity import Right
from ....base.terminal_escaping import visible
from ....governance.scopes import caller_of, scope_of
from ....use_cases.journal.transcript import moment
from ..answers import RunAnswers, visibly
from ..elicitation import chosen, form_request, link_request, only_opens_links

if TYPE_CHECKING:
    from ....base.settings import OutputFormat
    from ....use_cases.runs.background.background import Background, RunAccess
    from ....use_cases.runs.background.background_reports import RunState

SINCE = frozenset({"2026-07-28"})
"""The versions of the protocol that have the extension."""
POLL_MS = 1000
_CANCELLED = "cancelled"
_T = TypeVar("_T")
Ctx = ServerRequestContext[Any, Any]
Params = dict[str, Any]


class TaskParams(RequestParams):
    """A request that names one task."""

    task_id: str


class UpdateParams(TaskParams):
    """Answers to what a task asked."""

    input_responses: dict[str, Any]


class TasksExtension(Extension):
    """`tasks/get`, `tasks/update` and `tasks/cancel`, and the tasks that calls are answered with."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, background: Background, form: OutputFormat) -> None:
        self._background = background
        self._form = form

    def methods(self) -> Sequence[MethodBinding]:
        """Give the methods."""
        return [
            MethodBinding("tasks/get", TaskParams, self._get, SINCE),
            MethodBinding("tasks/update", UpdateParams, self._update, SINCE),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, SINCE),
        ]

    async def intercept_tool_call(self, params: CallToolRequestParams, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """Answer the call that began a background run with its task, where the client knows what that is."""
        answer = await call_next(ctx)
        arguments = params.arguments or {}
        if (
            params.name != "execute_code"
            or arguments.get("background") is not True
            or not _declared(ctx, self.identifier)
            or not isinstance(answer, CallToolResult)
            or answer.is_error
            or answer.structured_content is None
        ):
            return answer
        _reach, state = await self._seen(ctx, str(answer.structured_content["run_id"]))
        return {"resultType": "task", **_task(state, None)}

    async def _get(self, ctx: Ctx, params: TaskParams) -> Params:
        _reach, state = await self._seen(ctx, params.task_id)
        link = None
        may_approve = caller_of(ctx).identity.may(Right.APPROVE)
        if state.approval is not None and only_opens_links(ctx.session.client_capabilities) and may_approve:
            approval = state.approval
            link = await _or_protocol_error(
                lambda: self._background.link_at(ctx.request, state, approval), params.task_id
            )
        task: Params = {"resultType": "complete", **_task(state, link)}
        if state.execution is not None and task["status"] == "completed":
            answer = visibly(RunAnswers(self._form).of(state.execution, None))
            task["result"] = answer.model_dump(by_alias=True, mode="json", exclude_none=True) | {
                "resultType": "complete"
            }
        return task

    async def _update(self, ctx: Ctx, params: UpdateParams) -> Params:
        """Take the answer to what a task asks; those to what it does not ask are ignored, as the extension has it.

        That a link will be opened is no answer: it is given at the page.
        """
        reach, state = await self._seen(ctx, params.task_id)
        approval = state.approval
        if only_opens_links(ctx.session.client_capabilities):
            approval = None
        if approval is not None and approval.id in params.input_responses:
            try:
                answer = ElicitResult.model_validate(params.input_responses[approval.id])
            except ValidationError:
                raise MCPError(
                    INVALID_PARAMS,
                    f"The answer to {approval.id} is no result of an elicitation. Give action and content.",
                ) from None
            reply = chosen(answer, approval.asked)
            caller = caller_of(ctx)
            await _or_protocol_error(
                lambda: self._background.answer(approval, reply, reach.scope, by=caller), params.task_id
            )
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Ctx, params: TaskParams) -> Params:
        reach, state = await self._seen(ctx, params.task_id)
        if state.execution is None:
            scope = scope_of(ctx) if reach.answers_alone else reach.scope
            await _or_protocol_error(lambda: self._background.cancel(params.task_id, scope), params.task_id)
        return {"resultType": "complete"}

    async def _seen(self, ctx: Ctx, task_id: str) -> tuple[RunAccess, RunState]:
        """Return what the caller may do with a run, and its state, as `get_run` tells them."""
        require_client_extension(ctx, self.identifier)
        caller, background = caller_of(ctx), self._background
        reach = await _or_protocol_error(lambda: background.reach(task_id, caller), task_id)
        return reach, await _or_protocol_error(lambda: background.reached(task_id, reach, caller), task_id)


async def _or_protocol_error(question: Callable[[], Awaitable[_T]], task_id: str) -> _T:
    """Return the answer. Raises `MCPError` in place of the errors of journal, database and host work."""
    try:
        return await question()
    except JournalNotFound:
        raise MCPError(
            INVALID_PARAMS, f"There is no task {visible(task_id)[:80]}. Give the taskId that a call was answered with."
        ) from None
    except JournalErased as error:
        raise MCPError(INVALID_PARAMS, visible(str(error))) from None
    except (SkillsDbError, HostWorkBusy) as error:
        raise MCPError(INTERNAL_ERROR, visible(str(error))) from error


def _declared(ctx: Ctx, identifier: str) -> bool:
    capabilities = ctx.session.client_capabilities
    return ctx.protocol_version in SINCE and identifier in ((capabilities and capabilities.extensions) or {})


def _task(state: RunState, link: str | None) -> Params:
    """Return the fields that a task has at every status; with a `link` its question is answered there."""
    task: Params = {
        "taskId": state.run_id,
        "status": "working",
        "createdAt": moment(state.queued),
        "lastUpdatedAt": moment(state.changed),
        "ttlMs": None if state.expires is None else max(int((state.expires - state.queued) * 1000), 0),
        "pollIntervalMs": POLL_MS,
    }
    if state.execution is not None:
        task["status"] = _CANCELLED if state.execution.report["status"] == _CANCELLED else "completed"
    elif state.approval is not None:
        approval = state.approval
        request = form_request(approval.asked) if link is None else link_request(approval.question, link)
        task["status"] = "input_required"
        task["inputRequests"] = {approval.id: request.model_dump(by_alias=True, mode="json", exclude_none=True)}
    elif state.progress is not None:
        task["statusMessage"] = visible(f"{state.progress.fraction:.0%} {state.progress.message}".rstrip())
    elif state.answers:
        last = state.answers[-1]
        task["statusMessage"] = f"The question {state.run_id}.{last.number} was {last}."
    elif state.status == "queued":
        task["statusMessage"] = "The run waits to begin."
    return task
