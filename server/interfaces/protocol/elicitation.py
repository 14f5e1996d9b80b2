"""Asks the user, through the client, in both eras of the protocol.

Up to 2025-11-25 a server sends its question while the call waits. From 2026-07-28 on a call that has a question ends
with it, and the client calls again with the answer (SEP-2322): meanwhile the work goes on waiting here, and nowhere
else, so the second call must reach the same server.

A call that is sent again (`sent_calls`) goes on with that work too, and is asked what the first one would be.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolResult,
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)

from ....sandbox.job import Status
from ...base.errors import KNOWN_ERRORS, RequestRefused
from ...base.identity import Identity, Right
from ...base.terminal_escaping import visible
from ...governance.caller import Ask, Caller, NobodyAnswers, NoMoreQuestions, OpenLink, or_no
from ...governance.questions import NO, Question, Reply, reply_of
from ...governance.scopes import caller_of
from ...use_cases.replicas.replica_errors import OutcomeUnknown
from ...use_cases.runs.background.background_reports import RunState
from .draining import LASTING_SECONDS, Peer
from .sent_calls import EarlierCalls, SentCall, joined

ANSWER_SECONDS = 300.0
"""How long a user may take to answer; after that nobody answers."""

ROUNDS_SINCE = "2026-07-28"
"""The first version of the protocol in which a question ends the call."""

ROUNDS_MAX = 8
"""How often one call may end with questions: clients give up after ten times (`input_required_max_rounds`)."""

YIELD_SECONDS = 60.0
"""How long a question is waited for where its session is wanted by a further call: no connection shows that its client
is still there. A call that is given up so gets no answer to this question, nor to any that follows."""

_KEPT_SECONDS = 60.0
"""How long the answer of a call is kept that came while no request waited for it: its user was still being asked."""

BROKEN_MAX = 16
BROKEN_BYTES_MAX = 64_000_000
"""How many calls of one caller whose streams broke are kept to be joined, and how much these asked and were answered.

The newest is kept in any case; the oldest others end as those do whose clients closed their streams. So many answers
are kept, too, for which no request came back after a question.
"""

_SETTLE_SECONDS = 0.05
"""How long a further question is waited for, so that those that are asked at the same time make one round."""
_SETTLE_TIMES_MAX = 10


@dataclass(frozen=True, slots=True)
class Client:
    """The client of a call, as the work for the call reaches it. `newest` gives the newest request on its behalf.

    `ask` and `open_link` are None where nothing can ask its user, or have them open a link.
    """

    newest: Callable[[], Context[Any, Any]]
    ask: Ask | None = None
    open_link: OpenLink | None = None

    def asking(self, caller: Caller) -> Caller:
        """Return a caller whose user can be asked."""
        return replace(caller, ask=self.ask, open_link=self.open_link, client=client_named(self.newest()))

    async def progress(self, elapsed_seconds: float, timeout_seconds: float, message: str) -> None:
        """Report progress; as `caller.Progress`."""
        await self.newest().report_progress(elapsed_seconds, timeout_seconds, visible(message))


Work = Callable[[Client], Awaitable[CallToolResult]]
"""Does what a call asks for."""


_APPROVE: dict[str, Any] = {"type": "boolean", "title": "Approve?"}
_COVERS = "covers"
"""The field of the form that says what a yes covers; what is left out or unknown there is the first choice."""
_REFUSED: dict[str, Any] = {
    "type": "string",
    "title": "No to some of them?",
    "description": "The numbers of the calls that you refuse, such as 2, 4. The program gets an error for each.",
}
_REASON: dict[str, Any] = {"type": "string", "title": "Why not?", "description": "The program gets it."}
_CLIENT_CHARS_MAX = 80


@dataclass(slots=True)
class _Question:
    """One question that a user has not answered yet; with a `link` it is answered there, and here only opened."""

    question: Question
    answered: asyncio.Future[Reply]
    """Fails with `NobodyAnswers`."""
    link: str | None = None

    def request(self) -> ElicitRequest:
        """Return the question as it is sent."""
        if self.link is None:
            return form_request(self.question)
        return link_request(self.question.text, self.link)

    def take(self, answer: object) -> None:
        """Take what the user answered."""
        if not self.answered.done():
            self.answered.set_result(chosen(answer, self.question) if self.link is None else _opened(answer))


@dataclass(slots=True)
class _Suspended:
    """Work that is under way, with the questions that it waits for.

    `session` is the session of code in which it runs, if it does. `absent` says that its user did not answer in time.
    `sent` is there where a call may join it, and `peers` are the requests that wait for it, the newest of all `newest`.
    """

    context: Context[Any, Any]
    session: str | None = None
    link: str | None = None
    sent: SentCall | None = None
    newest: Peer = field(default_factory=Peer)
    peers: set[Peer] = field(default_factory=set)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once another request goes on in the place of the newest."""
    rounds: int = 0
    asked_at: float = 0.0
    absent: bool = False
    task: asyncio.Task[CallToolResult] | None = None
    questions: dict[str, _Question] = field(default_factory=dict)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once there are questions, or the work has ended."""
    dropping: asyncio.TimerHandle | None = None
    """Has it no more be joined after a while."""
    sizes: dict[str, int] = field(default_factory=dict)

    async def approve(self, question: Question) -> Reply:
        """Ask a question; as `caller.Ask`."""
        return await self._answered("approve", question, self.link)

    async def open(self, text: str, link: str) -> bool:
        """Ask to open a link; as `caller.OpenLink`."""
        return (await self._answered("open", Question(plain=text), link)).choice is not None

    async def _answered(self, kind: str, question: Question, link: str | None) -> Reply:
        if self.absent:
            raise NobodyAnswers
        if self.rounds >= ROUNDS_MAX:
            raise NoMoreQuestions(self.rounds)
        name = f"{kind}_{secrets.token_hex(4)}"
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.questions[name] = _Question(question, answered, link)
        self.asked.set()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answered
        except TimeoutError:
            self.absent = True
            raise NobodyAnswers from None
        finally:
            self.questions.pop(name, None)

    def broke(self) -> bool:
        """Return whether the stream of the newest request for it broke, and it may be joined for that."""
        broke_at = self.newest.broke_at
        return broke_at is not None and asyncio.get_running_loop().time() - broke_at < LASTING_SECONDS

    def size(self) -> int:
        """Return how many bytes of JSON it asked and was answered."""
        if self.sent is not None and "asked" not in self.sizes:
            self.sizes["asked"] = self.sent.size()
        task = self.task
        if "answer" not in self.sizes and task is not None and task.done():
            is_answer = not task.cancelled() and task.exception() is None
            self.sizes["answer"] = len(task.result().model_dump_json()) if is_answer else 0
        return sum(self.sizes.values())

    def ends_without(self, peer: Peer) -> bool:
        """Return whether nobody waits for it once a request does not; one that broke waits, unless it is cancelled."""
        return not any(peer.broke_at is not None or each.broke_at is None for each in self.peers - {peer})

    def give_up(self) -> None:
        """Leave what is asked unanswered, now and later."""
        self.absent = True
        for question in self.questions.values():
            if not question.answered.done():
                question.answered.set_exception(NobodyAnswers)


@dataclass(slots=True)
class Elicitations:
    """All work of one server that waits for a user."""

    suspended: dict[str, _Suspended] = field(default_factory=dict)
    wanted: Counter[str] = field(default_factory=Counter)
    """How many calls are at work in a session of code or wait for it, without those that wait for a user."""

    sent: list[_Suspended] = field(default_factory=list)
    """What calls that are sent again may join."""
    before: EarlierCalls | None = None
    """The calls with keys that are not under way here."""
    answer_of: Callable[[Context[Any, Any], RunState], CallToolResult] | None = None
    """Returns the answer of the run of such a call."""

    async def hold(
        self,
        context: Context[Any, Any],
        work: Work,
        *,
        session: str | None = None,
        parks: bool = False,
        link: str | None = None,
        sent: SentCall | None = None,
    ) -> CallToolResult:
        """Do the work of one request, or go on with what an earlier request began; return its answer or its questions.

        `session` names the session of code in which it works, with its owner. Work that `parks` gets
        `NobodyAnswers` where nobody answers; any other work gets a no. With a `link` the user is asked to open it, and
        an empty text says that they will. Where the call was `sent` before, it joins that one. Raises `RequestRefused`
        where the request answers questions that are no longer open, or has the key of another call.
        """
        if context.request_state is not None:
            return await self.resume(context, context.request_state)
        if sent is not None and (answer := await self._joined(context, sent)) is not None:
            return joined(answer)
        with self._wanted(session):
            return await self._begin(context, work, session, parks=parks, link=link, sent=sent)

    async def _begin(
        self,
        context: Context[Any, Any],
        work: Work,
        session: str | None,
        *,
        parks: bool,
        link: str | None,
        sent: SentCall | None,
    ) -> CallToolResult:
        asks, opens = link is not None or can_be_asked(context), can_open_links(context)
        held = _Suspended(context, session, link, sent)
        client = Client(lambda: held.context)
        if asks or opens:
            has_rounds = _has_rounds(context)
            asking, opening = (held.approve, held.open) if has_rounds else (_asking(held), partial(_open, held))
            asking = asking if parks else or_no(asking)
            client = Client(client.newest, asking if asks else None, opening if opens else None)
        if sent is None and client.ask is None and client.open_link is None:
            return await work(client)
        held.task = asyncio.ensure_future(work(client) if sent is None else self._noted(work(client), sent))
        if sent is not None:
            self._bound(sent)
            self.sent.append(held)
            held.task.add_done_callback(lambda _task: self._drop(held))
        held.task.add_done_callback(lambda _task: held.asked.set())
        return await self._next(held)

    async def _joined(self, context: Context[Any, Any], sent: SentCall) -> CallToolResult | None:
        """Return the answer of the call that one joins, None for one that is new."""
        for held in self.sent:
            if held.sent is not None and sent.is_again(held.sent, broke=held.broke()):
                return await self._go_on(context, held)
        if sent.key is None or self.before is None or self.answer_of is None:
            return None
        state = await self.before.first(sent)
        return None if state is None else self.answer_of(context, state)

    async def _noted(self, work: Awaitable[CallToolResult], sent: SentCall) -> CallToolResult:
        """Do the work of a call that may be sent again; where none of it ran, it is not known by its key."""
        if sent.key is None or self.before is None:
            return await work
        async with self.before.kept(sent):
            try:
                answer = await work
            except OutcomeUnknown:
                await self.before.ran(sent)
                raise
            except KNOWN_ERRORS:
                await self.before.forget(sent)
                raise
        is_busy = (answer.structured_content or {}).get("status") == Status.BUSY
        await (self.before.forget(sent) if is_busy else self.before.ran(sent))
        return answer

    def _drop(self, held: _Suspended) -> None:
        """Let no call join work that has ended, unless its stream broke: for a while after that."""
        if held not in self.sent or held.task is None or not held.task.done() or not held.newest.gone:
            return
        if held.dropping is not None:
            held.dropping.cancel()
        if held.broke() and held.sent is not None:
            held.dropping = asyncio.get_running_loop().call_later(LASTING_SECONDS, self._drop, held)
            self._bound(held.sent)
            return
        self.sent.remove(held)

    def _bound(self, sent: SentCall) -> None:
        """Let no call join the oldest of a caller whose streams broke, beyond what is kept, and end their runs."""
        scope = sent.caller.scope
        broken = [each for each in self.sent if each.sent is not None and each.sent.caller.scope == scope]
        for held in _beyond(each for each in reversed(broken) if each.broke()):
            self.sent.remove(held)
            if held.task is not None:
                held.task.cancel()
            if held.dropping is not None:
                held.dropping.cancel()

    async def _go_on(self, context: Context[Any, Any], held: _Suspended) -> CallToolResult:
        """Wait for work that another request began, for a request that goes on in its place."""
        held.context = context
        held.moved.set()
        held.moved = asyncio.Event()
        if held.questions:
            held.asked.set()
        with self._wanted(held.session):
            return await self._next(held)

    async def resume(self, context: Context[Any, Any], state: str) -> CallToolResult:
        """Go on with what an earlier request began; return its answer or its next questions.

        Raises `RequestRefused` where the request answers questions that are no longer open.
        """
        held = self.suspended.get(state)
        if held is not None and _identity_of(context).stands_for(_identity_of(held.context)):
            del self.suspended[state]
        else:
            held = None
        if held is None or held.task is None:
            raise RequestRefused(
                "The run that asked this has ended: its answer came too late, or to another server. Run the code again."
            )
        for name, answer in (context.input_responses or {}).items():
            question = held.questions.pop(name, None)
            if question is not None:
                question.take(answer)
        return await self._go_on(context, held)

    async def _next(self, held: _Suspended) -> CallToolResult:
        """Wait for the end of the work, or return its next questions, which the SDK takes in place of its result."""
        assert held.task is not None
        peer = held.newest = Peer.of(held.context.request_context.request)
        held.peers.add(peer)
        if held.sent is not None:
            peer.runs.add(held.task)
            peer.left.append(lambda: self._drop(held))
        try:
            await held.asked.wait()
            await _settled(held)
            if held.task.done() and not held.task.cancelled():
                return await held.task
            if held.task.done():
                raise RequestRefused("The call was cancelled by another that had joined it. Call again.")
        except asyncio.CancelledError:
            if held.ends_without(peer):
                held.task.cancel()
                if held in self.sent:
                    self.sent.remove(held)
            raise
        finally:
            held.peers.discard(peer)
            peer.runs.discard(held.task)
        held.asked.clear()
        held.rounds += 1
        held.asked_at = asyncio.get_running_loop().time()
        state = secrets.token_urlsafe(16)
        self.suspended[state] = held
        held.task.add_done_callback(lambda task: self._keep(state, task, caller_of(held.context.request_context).scope))
        if held.session is not None and self.wanted[held.session] > 1:
            self._yield_soon(state, held)
        required = InputRequiredResult(
            input_requests={name: question.request() for name, question in held.questions.items()}, request_state=state
        )
        return cast("CallToolResult", required)

    @contextmanager
    def _wanted(self, session: str | None) -> Iterator[None]:
        """Count a call as one that wants its session; those that wait for a user in it yield it."""
        if session is None:
            yield
            return
        for state, held in self.suspended.items():
            if held.session == session:
                self._yield_soon(state, held)
        self.wanted[session] += 1
        try:
            yield
        finally:
            self.wanted[session] -= 1
            if not self.wanted[session]:
                del self.wanted[session]

    def _yield_soon(self, state: str, held: _Suspended) -> None:
        asyncio.get_running_loop().call_at(held.asked_at + YIELD_SECONDS, self._yield, state)

    def _yield(self, state: str) -> None:
        held = self.suspended.get(state)
        if held is not None:  # its client has not come back
            held.give_up()

    def _keep(self, state: str, task: asyncio.Task[CallToolResult], scope: str) -> None:
        if not task.cancelled():
            task.exception()  # it is raised again where a request comes back for it
        if state not in self.suspended:
            return
        asyncio.get_running_loop().call_later(_KEPT_SECONDS, self.suspended.pop, state, None)
        ended = [
            held
            for held in reversed(self.suspended.values())
            if held.task is not None and held.task.done() and caller_of(held.context.request_context).scope == scope
        ]
        for held in _beyond(ended):
            for each in [each for each, other in self.suspended.items() if other is held]:
                del self.suspended[each]


def _beyond(newest_first: Iterable[_Suspended]) -> Iterator[_Suspended]:
    """Yield what is beyond the bounds of what is kept for one caller; the newest never is."""
    count = size = 0
    for held in newest_first:
        count, size = count + 1, size + held.size()
        if count > 1 and (count > BROKEN_MAX or size > BROKEN_BYTES_MAX):
            yield held


def _identity_of(context: Context[Any, Any]) -> Identity:
    """Return who sends a request; of callers without an identity of their own, nobody else knows the state."""
    return caller_of(context.request_context).identity


async def _settled(held: _Suspended) -> None:
    for _ in range(_SETTLE_TIMES_MAX):
        before = len(held.questions)
        if held.task is None or held.task.done():
            return
        await asyncio.sleep(_SETTLE_SECONDS)
        if len(held.questions) == before:
            return


def can_be_asked(context: Context[Any, Any]) -> bool:
    """Return whether the client said that it can put a form to its user, and its token may answer for one."""
    return _has_forms(context.client_capabilities) and may_approve(context)


def may_approve(context: Context[Any, Any]) -> bool:
    """Return whether the answer of the client's user to a question counts."""
    return _identity_of(context).may(Right.APPROVE)


def can_open_links(context: Context[Any, Any]) -> bool:
    """Return whether the client said that it can have its user open a link."""
    capabilities = context.client_capabilities
    return (
        capabilities is not None and capabilities.elicitation is not None and capabilities.elicitation.url is not None
    )


def only_opens_links(capabilities: ClientCapabilities | None) -> bool:
    """Return whether a client said that it can have its user open a link, and put no form to them."""
    return capabilities is not None and capabilities.elicitation is not None and not _has_forms(capabilities)


def _has_forms(capabilities: ClientCapabilities | None) -> bool:
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _has_rounds(context: Context[Any, Any]) -> bool:
    version = context.protocol_version
    return version is not None and version >= ROUNDS_SINCE


def _asking(held: _Suspended) -> Ask:
    """Return what asks the user of the newest request."""
    if held.link is not None:
        return partial(_asked_to_open, held, held.link)
    one_at_a_time = asyncio.Lock()
    absent = False

    async def ask(question: Question) -> Reply:
        nonlocal absent
        text, form = question.text, _form(question)
        try:
            async with one_at_a_time, asyncio.timeout(ANSWER_SECONDS):
                if absent:
                    raise NobodyAnswers
                answer = await _asked(held, lambda context: _elicit_form(context, text, form))
        except TimeoutError:
            absent = True
            raise NobodyAnswers from None
        except MCPError:
            return NO
        return chosen(answer, question)

    return ask


async def _asked(held: _Suspended, ask: Callable[[Context[Any, Any]], Awaitable[ElicitResult]]) -> ElicitResult:
    """Ask at the newest request, and again at each that goes on in its place."""
    while True:
        asking = asyncio.ensure_future(ask(held.context))
        moved = asyncio.ensure_future(held.moved.wait())
        try:
            await asyncio.wait({asking, moved}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
        finally:
            asking.cancel()
            moved.cancel()


async def _elicit_form(context: Context[Any, Any], text: str, form: dict[str, Any]) -> ElicitResult:
    session: ServerSession = context.session
    return await session.elicit_form(visible(text), form, related_request_id=context.request_id)


async def _elicit_url(context: Context[Any, Any], text: str, link: str) -> ElicitResult:
    session: ServerSession = context.session
    mark = secrets.token_urlsafe(16)
    return await session.elicit_url(visible(text), link, mark, related_request_id=context.request_id)


async def _asked_to_open(held: _Suspended, link: str, question: Question) -> Reply:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await _asked(held, lambda context: _elicit_url(context, question.text, link))
    except TimeoutError:
        raise NobodyAnswers from None
    except MCPError:
        return NO
    return _opened(answer)


async def _open(held: _Suspended, text: str, link: str) -> bool:
    return (await _asked_to_open(held, link, Question(plain=text))).choice is not None


def _opened(answer: object) -> Reply:
    return Reply(choice="") if isinstance(answer, ElicitResult) and answer.action == "accept" else NO


def link_request(text: str, link: str) -> ElicitRequest:
    """Return a question to a user that is answered at a link, as it is sent."""
    return ElicitRequest(params=ElicitRequestURLParams(message=visible(text), url=link))


def form_request(question: Question) -> ElicitRequest:
    """Return a question to a user as it is sent."""
    form = ElicitRequestFormParams(message=visible(question.text), requested_schema=_form(question))
    return ElicitRequest(params=form)


def _form(question: Question) -> dict[str, Any]:
    fields, choices = {"approve": _APPROVE}, question.choices
    if choices:
        covers = {"type": "string", "title": "What does a yes cover?", "enum": [*choices], "default": choices[0]}
        fields[_COVERS] = covers
    if len(question.calls) > 1:
        fields["refused"] = _REFUSED
    if question.calls:
        fields["reason"] = _REASON
    return {"type": "object", "properties": fields, "required": ["approve"]}


def chosen(answer: object, question: Question) -> Reply:
    """Return what a user answered to a question by a form."""
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        return NO
    content: Mapping[str, object] = answer.content or {}
    choices, covers = question.choices, content.get(_COVERS)
    return reply_of(
        approves=content.get("approve") is True,
        choice=next((each for each in choices if each == covers), choices[0] if choices else ""),
        reason=str(content.get("reason") or ""),
        refused=str(content.get("refused") or ""),
    )


def client_named(context: Context[Any, Any]) -> str:
    """Return what the client's program calls itself, and its version; empty where it does not say."""
    params = context.session.client_params
    info = None if params is None else params.client_info
    return "" if info is None else f"{info.name} {info.version}"[:_CLIENT_CHARS_MAX]
