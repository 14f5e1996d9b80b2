"""Background runs: queued in the database, run by whichever server has room, and reported to those who ask later.

The queue is rows with a lease (`skills_db.journal.background_store`), not an engine of its own. Measured side by side,
DBOS 3.4 on SQLite takes 18 ms for an empty workflow and a second from its queue to its result, 1.5 s to import and
75 MB; these rows take 9 ms, in a database that is open anyway. DBOS would keep programs in clear, and needs a list of
the dead to recover another process's work, which only a lease can give.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from .....sandbox.errors import Busy
from .....skills_db.errors import JournalNotFound
from .....skills_db.journal.records import ENDED, QUEUED, RUNNING
from ....base.errors import KNOWN_ERRORS, RequestRefused
from ....base.host_work import Kind, cancellations, in_thread
from ....base.identity import Right
from ....governance.audit.trail import UNAUDITED, AuditTrail
from ....governance.caller import Caller, NobodyAnswers, OnProgress
from ....governance.questions import NO, THIS_CALL, Question, Reply
from ....governance.scopes import is_principal
from ..admission import admitted, can_park
from ..execute import execute
from ..request import CodeRequest, Execution, new_run_id, request_json
from .background_reports import (
    PATH,
    Approval,
    RunState,
    answer_json,
    cancelled,
    execution_json,
    question_json,
    run_state,
)
from .journaled_reports import recorded

if TYPE_CHECKING:
    from .....skills_db.journal.approval_links import ApprovalLink
    from .....skills_db.journal.background_store import BackgroundStore
    from .....skills_db.journal.records import StoredJournal
    from .....skills_db.sql import Connection
    from ...journal.journal import Journal
    from ..executor import Executor
    from .background_work import BackgroundWork

WAIT_SECONDS_MAX = 300.0
"""How long one question for a run may wait for its end."""
_POLL_SECONDS = (0.25, 0.5, 1.0, 2.0)
"""How often a run is looked for that another process runs; the last for good."""
_T = TypeVar("_T")
Beside = Callable[["Connection"], None]


@dataclass(frozen=True, slots=True)
class RunAccess:
    """What a caller may do with a run: `scope` is whose it has to be, None for anybody's.

    Who `answers_alone` may answer its question, and neither read its report nor end it.
    """

    scope: str | None
    answers_alone: bool = False


@dataclass(frozen=True, slots=True)
class Background:
    """Takes background runs, and answers how far they are. `work` is this process's part in running them."""

    executor: Callable[[], Executor]
    journal: Journal
    work: BackgroundWork
    queue_max: int
    audit: AuditTrail = UNAUDITED
    place: str = ""
    """What stands before the token in the path of a link that answers a question: the tenant, with a slash."""

    async def submit(self, request: CodeRequest, beside: Beside | None = None) -> RunState:
        """Queue a run. Once this returns, it survives the end of the server.

        `beside` is done in the transaction that queues it; nothing is queued where that raises.
        Raises `RequestRefused` for what the operator does not allow, `Busy` where the caller or its tenant has used up
        its share, and what writing to the database raises.
        """
        if request.session is not None:
            raise RequestRefused(
                "A background run has no session, since it may begin in another process. Leave out session, or run it "
                "in the foreground."
            )
        executor = self.executor()
        request = replace(request, background=True)
        try:
            admitted(request, executor)
        except KNOWN_ERRORS as error:
            self.audit.run_refused(request.caller, "", error)
            raise
        if request.timeout_seconds is None:
            request = replace(request, timeout_seconds=executor.settings.timeout_seconds)
        try:
            await executor.shares.admit(request.caller.scope)
        except Busy as busy:
            self.audit.limited(request.caller, busy.limit)
            raise
        run_id, scope, encoded = request.run_id or new_run_id(), request.caller.scope, request_json(request)
        expires = self.work.now() + self.journal.life_of(scope)
        more = {} if beside is None else {"beside": beside}
        put = await self._ask(
            lambda store: store.put(run_id, scope, encoded, expires=expires, most=self.queue_max, **more)
        )
        if not put:
            self.audit.limited(request.caller, "BACKGROUND_QUEUE_MAX")
            raise RequestRefused(
                f"{self.queue_max} background runs of yours wait to begin, which is the most. Wait until some have "
                "ended, or cancel some with get_run(run_id, cancel=true)."
            )
        self.work.wake()
        return RunState(run_id, QUEUED)

    async def park(self, request: CodeRequest, run_id: str, question: Mapping[str, object]) -> RunState:
        """Park a run of the foreground, whose journal was left open, until an answer comes; then it goes on.

        Raises what writing to the database raises.
        """
        await self.journal.release(run_id)
        expires = self.work.now() + self.journal.life_of(request.caller.scope)
        encoded = request_json(replace(request, background=True))
        await self._ask(
            lambda store: store.put_parked(run_id, request.caller.scope, encoded, question, expires=expires)
        )
        return await self.queued_state(run_id, request.caller.scope)

    async def reach(self, run_id: str, caller: Caller) -> RunAccess:
        """Return how far a caller reaches a run: who has the right, those of others of the tenant too.

        Raises what reading the database raises.
        """
        own = RunAccess(caller.scope)
        if not is_principal(caller.scope):
            return own
        if caller.identity.may(Right.ADMIN):
            return RunAccess(None)
        if caller.identity.may(Right.APPROVE):
            try:
                await self.queued_state(run_id, caller.scope)
            except JournalNotFound:
                with suppress(JournalNotFound):
                    if (await self.queued_state(run_id, None)).approval is not None:
                        return RunAccess(None, answers_alone=True)
        return own

    async def state(
        self, run_id: str, scope: str | None, *, wait_seconds: float = 0.0, known_question: Approval | None = None
    ) -> RunState:
        """Return how far a run of the scope or of any is; with `wait_seconds`, once it ended or that time is over.

        It does not wait for a run that has a question, unless that is the `known_question`.
        Raises `RequestRefused` for too long a wait, and `JournalNotFound` where the scope has no such run.
        """
        if not 0 <= wait_seconds <= WAIT_SECONDS_MAX:
            raise RequestRefused(
                f"wait_seconds is {wait_seconds:g}, which is not allowed. Give 0 to {WAIT_SECONDS_MAX:g}, and ask "
                "again if the run has not ended by then."
            )
        loop = asyncio.get_running_loop()
        until, looks = loop.time() + wait_seconds, 0
        while True:
            end = self.work.end_of(run_id)
            state = await self._state(run_id, scope)
            left = until - loop.time()
            if state.execution is not None or state.approval not in {None, known_question} or left <= 0:
                return state
            # A run of this process sets an event when it ends; a run of another process is polled.
            poll = _POLL_SECONDS[min(looks, len(_POLL_SECONDS) - 1)]
            looks += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, poll) if end is None else left):
                    await (asyncio.Event() if end is None else end).wait()

    async def reached(self, run_id: str, reach: RunAccess, caller: Caller, *, wait_seconds: float = 0.0) -> RunState:
        """Return as much of a run as the caller reaches of it. Raises as `state`."""
        if not reach.answers_alone:
            return await self.state(run_id, reach.scope, wait_seconds=wait_seconds)
        with suppress(JournalNotFound):
            state = await self.queued_state(run_id, None)
            if state.approval is not None:  # its question, and nothing else of it
                return replace(state, execution=None, progress=None)
        return await self.state(run_id, caller.scope)  # it waits no more, and is the run of another to this scope

    async def cancel(self, run_id: str, scope: str | None) -> None:
        """End a background run of the scope, or of any. Raises `JournalNotFound` where it has no such run."""
        await self._ask(lambda store: store.cancel(run_id, execution_json(cancelled(run_id)), scope=scope))
        await self.work.cancel(run_id)

    async def answer(self, approval: Approval, reply: Reply, scope: str | None, *, by: Caller | None) -> bool:
        """Answer what a run of the scope waits with; return False where it was answered before.

        Without a scope it is the operator's answer, or that of a link, which is `by` nobody who is known.
        """
        encoded = answer_json(approval.asked, reply)
        taken = await self._ask(lambda store: store.answer(approval.run_id, approval.number, encoded, scope=scope))
        self.work.wake()
        if taken:
            decision = "declined" if reply.choice is None else f"approved: {reply.choice or THIS_CALL}"
            given_at = "page" if by is None else "client"
            self.audit.approval_answered(by, approval.run_id, (), decision, by=given_at)
        return taken

    async def link_at(self, request: object, state: RunState, approval: Approval) -> str | None:
        """Return the link at which a run's question is answered, at the address to which a client sent its request.

        None where the request came over no HTTP: then there is no page. A link answers the question, so it is for the
        client alone, to show to its user, and never stands where the model reads it.
        """
        headers, url = getattr(request, "headers", None), getattr(request, "url", None)
        if headers is None or url is None:
            return None
        expires = state.expires or 0
        token = await self._ask(lambda store: store.link(approval.run_id, approval.number, expires))
        return f"{url.scheme}://{headers['host']}{PATH}{self.place}{token}"

    async def program(self, run_id: str) -> str:
        """Return the program of a run that has not ended; empty where there is none."""
        request = await self._ask(lambda store: store.request(run_id))
        return "" if request is None else str(request.get("code", ""))

    async def linked(self, token: str) -> ApprovalLink | None:
        """Return what the token of a link stands for, None where it is none of this database's."""
        return await self._ask(lambda store: store.linked(token))

    async def _state(self, run_id: str, scope: str | None) -> RunState:
        try:
            return await self.queued_state(run_id, scope)
        except JournalNotFound:
            return await self._foreground(run_id, scope)

    async def queued_state(self, run_id: str, scope: str | None) -> RunState:
        """Return how far a background run is. Raises `JournalNotFound` where the scope, if named, has no such run."""
        state = run_state(await self._ask(lambda store: store.state(run_id, scope=scope)))
        progress = self.work.progress_of(run_id)
        return state if progress is None or state.status == ENDED else replace(state, progress=progress)

    async def _foreground(self, run_id: str, scope: str | None) -> RunState:
        await self.journal.stored()
        try:
            record = await self._recorded(run_id, scope)
        except JournalNotFound:
            raise JournalNotFound(
                f"You have no run {run_id}. Give the run_id that execute_code returned, with the credentials it was "
                "called with; reports are kept as long as journals."
            ) from None
        run = record.run
        state = RunState(run_id, run.status, None, None, run.began, run.ended or run.began, run.expires)
        if run.status == RUNNING:
            return state
        return replace(state, execution=await recorded(self.executor(), record))

    async def _recorded(self, run_id: str, scope: str | None) -> StoredJournal:
        """Return the journal of a run, which another server may not have written yet. Raises `JournalNotFound`."""
        places = self.executor().places

        async def look() -> StoredJournal:
            return await in_thread(Kind.DATABASE, lambda: self.journal.store().journal(run_id, scope=scope))

        if places is None:
            return await look()
        with suppress(JournalNotFound):
            record = await look()
            if record.run.status != RUNNING:
                return record
        await places.store_journals()
        return await look()

    async def _ask(self, question: Callable[[BackgroundStore], _T]) -> _T:
        return await in_thread(Kind.DATABASE, lambda: question(self.journal.background()), charged=False)


async def executed_or_parked(
    executor: Executor, background: Background, request: CodeRequest, *, progress: OnProgress
) -> Execution | RunState:
    """Run code as `execute` does; where its user gives no answer to a question, have the run wait for one.

    A run that cannot be parked takes it for a no.
    """
    inner = request.caller.ask
    if inner is None:
        return await execute(executor, request, progress=progress)
    parks = can_park(executor, request)
    run_id = request.run_id or new_run_id()
    open_question: dict[str, object] = {}

    async def ask(question: Question) -> Reply:
        if not open_question:
            try:
                return await inner(question)
            except NobodyAnswers:
                if not parks:
                    return NO
        if not open_question:
            open_question.update(question_json(question), scope=request.caller.scope)
            await executor.journal.settled(run_id)
            executor.journal.leave_open(run_id)
            asyncio.get_running_loop().call_soon(running.cancel)
        await asyncio.Event().wait()
        return NO

    asked = replace(request, run_id=run_id, caller=replace(request.caller, ask=ask))
    running, before = asyncio.create_task(execute(executor, asked, progress=progress)), cancellations()
    try:
        return await running
    except asyncio.CancelledError:
        if not open_question or cancellations() > before:
            raise
    return await background.park(request, run_id, open_question)
