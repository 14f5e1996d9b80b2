"""Programs that run on another server, for a caller who is connected to this one.

One request carries the program; its answer is a stream of JSON lines, each an object with one key: `progress`, `ask`,
`open`, `still` now and then, and at last `end` with the report, `refused` with the message of an error, or `not_here`.
What the user answers goes back by a request of its own. When either side goes away, the connection closes, and the run
ends as it does when a client leaves.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...base.errors import RequestRefused, ServerError
from ...base.identity import identity_from
from ...governance.caller import Caller, NobodyAnswers, NoMoreQuestions, OnProgress
from ...governance.questions import NO, Question, Reply
from ..runs.background.background_reports import execution_of
from ..runs.request import CodeRequest, Execution, request_json, request_of
from .peer_link import RUN_SILENT_SECONDS, PeerLost, PeerRefused, PeerUnreached
from .replica_errors import OutcomeUnknown

if TYPE_CHECKING:
    from ....skills_db.replicas import ReplicaRow
    from .peer_link import PeerAnswer, PeerLink
    from .replica_keys import ReplicaKeys

RUN, ANSWER, STILL = "run", "answer", "still"
OnMessage = Callable[[Mapping[str, object]], Awaitable[None]]
_OK = 200
_LINE_BYTES_MAX = 64 * 1024 * 1024
_LOST = (
    "The server that had this session, and ran this call in it, went away before it answered. What the call had done "
    "by then may stand, calls of other tools included: look before you make it again. The session is rebuilt from its "
    "journal, as its last call left it that ended, for the next call."
)


class NotHere(Exception):
    """The server that was asked does not have the session; nothing ran."""


def request_to_send(request: CodeRequest, tenant: str, keys: ReplicaKeys) -> dict[str, object]:
    """Return a request, and whose it is, as JSON."""
    caller = request.caller
    return {
        "kind": RUN,
        "tenant": tenant,
        **request_json(request),
        "run_id": request.run_id,
        "origin": caller.origin,
        "bearer": keys.sealed_bearer(caller.bearer),
        "asks": caller.ask is not None,
        "opens": caller.open_link is not None,
    }


def request_sent(head: Mapping[str, Any], keys: ReplicaKeys) -> CodeRequest:
    """Return the request that another server sends, whose caller cannot be asked yet.

    Raises `ValueError`, `KeyError` or `TypeError` for what is none.
    """
    identity = identity_from(head["identity"])
    if identity is None or identity.tenant != head["tenant"]:
        raise ValueError("no identity of that tenant")
    bearer = keys.opened_bearer(head["bearer"])
    caller = Caller(str(head["scope"]), identity=identity, origin=str(head["origin"]), bearer=bearer)
    return replace(request_of(head, caller), run_id=head.get("run_id"))


class RemoteRuns:
    """Has programs run on other servers."""

    def __init__(self, link: PeerLink, keys: ReplicaKeys) -> None:
        self._link = link
        self._keys = keys

    async def run(self, peer: ReplicaRow, tenant: str, request: CodeRequest, progress: OnProgress | None) -> Execution:
        """Run a program on another server and return its report.

        Raises `NotHere` or `PeerUnreached` where nothing ran, `OutcomeUnknown` where that is not known, and what the
        other server refuses as `RequestRefused`.
        """
        head = request_to_send(request, tenant, self._keys)
        await self._link.reach(peer)
        try:
            async with self._link.sent(peer, "POST", head, silent_seconds=RUN_SILENT_SECONDS) as answer:
                if answer.status != _OK:
                    raise PeerRefused(f"The server at {peer.address} answers with the status {answer.status}.")
                return await self._followed(peer, request, progress, answer)
        except PeerLost as error:
            raise OutcomeUnknown(_LOST) from error

    async def _followed(
        self, peer: ReplicaRow, request: CodeRequest, progress: OnProgress | None, answer: PeerAnswer
    ) -> Execution:
        """Follow a run that has begun. From here on nothing raised may say that nothing ran: it would run again."""
        try:
            return await _Following(self._link, peer, request.caller, progress).ended(answer)
        except PeerUnreached as error:  # by the answer to a question
            raise PeerLost(str(error)) from error


class _Following:
    """One run on another server, while it is at work."""

    def __init__(self, link: PeerLink, peer: ReplicaRow, caller: Caller, progress: OnProgress | None) -> None:
        self._link = link
        self._peer = peer
        self._caller = caller
        self._progress = progress
        self._asking: set[asyncio.Task[None]] = set()

    async def ended(self, answer: PeerAnswer) -> Execution:
        """Follow the run to its end. Raises `PeerLost` where its end does not come."""
        reading = asyncio.create_task(self._read(answer))
        try:
            while not reading.done():
                done, _ = await asyncio.wait({reading, *self._asking}, return_when=asyncio.FIRST_COMPLETED)
                for task in done & self._asking:
                    self._asking.discard(task)
                    task.result()
            return reading.result()
        finally:
            for task in (reading, *self._asking):
                task.cancel()
            with suppress(asyncio.CancelledError, PeerLost, NotHere, ServerError):
                await reading

    async def _read(self, answer: PeerAnswer) -> Execution:
        async for said in _lines(answer.body):
            match said:
                case {"progress": [value, total, str(message)]} if self._progress is not None:
                    await self._progress(float(value), float(total), message)
                case {"ask": [str(name), dict(asked)]} if self._caller.ask is not None:
                    self._begin(name, self._caller.ask(Question.model_validate(asked)))
                case {"open": [str(name), str(text), str(link)]} if self._caller.open_link is not None:
                    self._begin(name, _chosen(self._caller.open_link(text, link)))
                case {"end": dict(encoded)}:
                    return execution_of(encoded)
                case {"not_here": _}:
                    raise NotHere
                case {"refused": str(message)}:
                    raise RequestRefused(message)
                case {"failed": _}:
                    raise RuntimeError("A run failed on another server, whose log says more.")
        raise PeerLost("The answer ended before the run did.")

    def _begin(self, name: str, reply: Awaitable[Reply]) -> None:
        self._asking.add(asyncio.create_task(self._answer(name, reply)))

    async def _answer(self, name: str, reply: Awaitable[Reply]) -> None:
        said: dict[str, object]
        try:
            said = (await reply).as_json()
        except NobodyAnswers:
            said = {"nobody": True}
        except NoMoreQuestions as refused:
            said = {"asked": refused.asked}
        await self._link.ask(self._peer, {"kind": ANSWER, "name": name, **said})


async def _chosen(opened: Awaitable[bool]) -> Reply:
    return Reply(choice="") if await opened else NO


def with_questions(request: CodeRequest, questions: Questions, head: Mapping[str, Any]) -> CodeRequest:
    """Return a request of another server whose caller can be asked there, as far as its client can."""
    ask = questions.ask if head["asks"] is True else None
    open_link = questions.open_link if head["opens"] is True else None
    return replace(request, caller=replace(request.caller, ask=ask, open_link=open_link))


class Questions:
    """The questions of one run that another server has to put to a user; `tell` sends it a line."""

    def __init__(self, open_questions: dict[str, asyncio.Future[Mapping[str, Any]]], tell: OnMessage) -> None:
        self._open = open_questions
        self._tell = tell

    async def ask(self, question: Question) -> Reply:
        """Ask a question; as `caller.Ask`."""
        return await self._answered("ask", question.as_json())

    async def open_link(self, text: str, link: str) -> bool:
        """Ask to open a link; as `caller.OpenLink`."""
        return (await self._answered("open", text, link)).choice is not None

    async def _answered(self, kind: str, *asked: object) -> Reply:
        name = secrets.token_hex(16)
        answered = self._open[name] = asyncio.get_running_loop().create_future()
        try:
            await self._tell({kind: [name, *asked]})
            said = await answered
        finally:
            del self._open[name]
        if "choice" in said:
            return Reply.of(said)
        if "asked" in said:
            raise NoMoreQuestions(int(said["asked"]))
        raise NobodyAnswers


async def _lines(body: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """Give the JSON objects of a stream, one a line. Raises `PeerLost` for what is none."""
    rest = bytearray()
    async for piece in body:
        rest += piece
        *lines, rest = rest.split(b"\n") if b"\n" in piece else [rest]
        for line in lines:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise PeerLost("The answer is not JSON.") from None
        if len(rest) > _LINE_BYTES_MAX:
            raise PeerLost("The answer is too long.")
