"""Asks the user, through the client, in both eras of the protocol.

Up to 2025-11-25 a server sends its question while the call waits. From 2026-07-28 on a call that has a question ends
with it, and the client calls again with the answer (SEP-2322): meanwhile the work goes on waiting here, and nowhere
else, so the second call must reach the same server.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from ..caller import Ask
from ..errors import RequestRefused
from ..terminal_escaping import visible

ANSWER_SECONDS = 300.0
"""How long a user may take to answer; after that it counts as a no."""

ROUNDS_SINCE = "2026-07-28"
"""The first version of the protocol in which a question ends the call."""

_KEPT_SECONDS = 60.0
"""How long the answer of a call is kept that came while no request waited for it: its user was still being asked."""

_SETTLE_SECONDS = 0.01
"""How long questions that are asked at the same time are gathered for one round."""

Answer = CallToolResult | InputRequiredResult
Newest = Callable[[], Context[Any, Any]]
"""Gives the newest request on whose behalf something is done."""

Work = Callable[[Ask | None, Newest], Awaitable[CallToolResult]]
"""Does what a call asks for; it is given what asks the user, if anything can, and what gives the newest request."""


_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Approve?"}},
    "required": ["approve"],
}


@dataclass(slots=True)
class _Suspended:
    """Work that is under way, with the questions that it waits for."""

    context: Context[Any, Any]
    task: asyncio.Task[CallToolResult] | None = None
    questions: dict[str, tuple[str, asyncio.Future[bool]]] = field(default_factory=dict)
    asked: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Conversations:
    """All work of one server that waits for a user."""

    suspended: dict[str, _Suspended] = field(default_factory=dict)

    async def hold(self, context: Context[Any, Any], work: Work) -> Answer:
        """Do the work of one request, or go on with what an earlier request began; return its answer or its questions.

        Raises `RequestRefused` where the request answers questions that are no longer open.
        """
        if context.request_state is not None:
            return await self._resume(context, context.request_state)
        if not can_be_asked(context):
            return await work(None, lambda: context)
        if not _has_rounds(context):
            return await work(_asking(context), lambda: context)
        held = _Suspended(context)
        held.task = asyncio.ensure_future(work(self._asker(held), lambda: held.context))
        return await self._next(held)

    async def _resume(self, context: Context[Any, Any], state: str) -> Answer:
        held = self.suspended.pop(state, None)
        if held is None or held.task is None:
            raise RequestRefused(
                "The run that asked this has ended: its answer came too late, or to another server. Run the code again."
            )
        held.context = context
        for name, answer in (context.input_responses or {}).items():
            question = held.questions.pop(name, None)
            if question is not None and not question[1].done():
                question[1].set_result(isinstance(answer, ElicitResult) and _is_yes(answer.action, answer.content))
        return await self._next(held)

    async def _next(self, held: _Suspended) -> Answer:
        """Wait for the end of the work or for its next questions."""
        assert held.task is not None
        asked = asyncio.ensure_future(held.asked.wait())
        try:
            await asyncio.wait({held.task, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not held.task.done():
                await asyncio.sleep(_SETTLE_SECONDS)
            if held.task.done():
                return await held.task
        except asyncio.CancelledError:
            held.task.cancel()
            raise
        finally:
            asked.cancel()
        held.asked.clear()
        state = secrets.token_urlsafe(16)
        self.suspended[state] = held
        held.task.add_done_callback(lambda task: self._keep(state, task))
        return InputRequiredResult(
            input_requests={name: _question(text) for name, (text, _) in held.questions.items()}, request_state=state
        )

    def _keep(self, state: str, task: asyncio.Task[CallToolResult]) -> None:
        """Keep an answer that no request has taken yet."""
        if not task.cancelled():
            task.exception()  # it is raised again where a request comes back for it
        asyncio.get_running_loop().call_later(_KEPT_SECONDS, self.suspended.pop, state, None)

    def _asker(self, held: _Suspended) -> Ask:
        async def ask(text: str) -> bool:
            name = f"approve_{secrets.token_hex(4)}"
            answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            held.questions[name] = (text, answered)
            held.asked.set()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await answered
            except TimeoutError:
                return False
            finally:
                held.questions.pop(name, None)

        return ask


def can_be_asked(context: Context[Any, Any]) -> bool:
    """Return whether the client said that it can put a form to its user."""
    capabilities = context.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _has_rounds(context: Context[Any, Any]) -> bool:
    version = context.protocol_version
    return version is not None and version >= ROUNDS_SINCE


def _asking(context: Context[Any, Any]) -> Ask:
    one_at_a_time = asyncio.Lock()

    async def ask(text: str) -> bool:
        try:
            async with one_at_a_time, asyncio.timeout(ANSWER_SECONDS):
                answer = await context.session.elicit_form(visible(text), _FORM, related_request_id=context.request_id)
        except (TimeoutError, MCPError):
            return False
        return _is_yes(answer.action, answer.content)

    return ask


def _question(text: str) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=visible(text), requested_schema=_FORM))


def _is_yes(action: str, content: Mapping[str, object] | None) -> bool:
    return action == "accept" and cast("Mapping[str, object]", content or {}).get("approve", False) is True
