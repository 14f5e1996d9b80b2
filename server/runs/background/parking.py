"""Runs of the foreground whose user gives no answer: they wait without a worker, as background runs do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....sandbox.job import Isolation
from ...caller import NobodyAnswers, Progress
from ...errors import RequestRefused
from ..admission import admitted
from ..execute import execute
from ..ids import new_run_id
from ..isolations import AUTO
from ..request import CodeRequest, Execution

if TYPE_CHECKING:
    from ..executor import Executor
    from .background import Background
    from .background_reports import RunState


def can_park(executor: Executor, request: CodeRequest) -> bool:
    """Return whether a run could go on after its worker is gone: it is recorded, in `restricted`, and permitted."""
    may_escalate = request.isolation == AUTO and executor.settings.approve_container
    return (
        executor.journal.keeps
        and request.session is None
        and not may_escalate
        and request.isolation in {AUTO, Isolation.RESTRICTED}
        and _may_go_on(executor, request)
    )


def _may_go_on(executor: Executor, request: CodeRequest) -> bool:
    """Return whether the policy lets a run go on in the background."""
    try:
        admitted(replace(request, background=True), executor)
    except RequestRefused:
        return False
    return True


async def executed_or_parked(
    executor: Executor, background: Background, request: CodeRequest, *, progress: Progress
) -> Execution | RunState:
    """Run code as `execute` does; where its user gives no answer to a question, have the run wait for one.

    A run that cannot be parked takes it for a no.
    """
    inner = request.caller.ask
    if inner is None:
        return await execute(executor, request, progress=progress)
    parks = can_park(executor, request)
    run_id = new_run_id()
    open_question: dict[str, object] = {}

    async def ask(text: str, choices: Sequence[str]) -> str | None:
        if not open_question:
            try:
                return await inner(text, choices)
            except NobodyAnswers:
                if not parks:
                    return None
        if not open_question:
            open_question.update(question=text, choices=list(choices), scope=request.caller.scope)
            await executor.journal.settled(run_id)
            executor.journal.leave_open(run_id)
            asyncio.get_running_loop().call_soon(running.cancel)
        await asyncio.Event().wait()
        return None

    asked = replace(request, run_id=run_id, caller=replace(request.caller, ask=ask))
    running = asyncio.create_task(execute(executor, asked, progress=progress))
    try:
        return await running
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not open_question or task is None or task.cancelling():
            raise
    return await background.park(request, run_id, open_question)
