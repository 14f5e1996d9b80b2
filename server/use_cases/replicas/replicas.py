"""This server as one of several that are one sealab, as the rest of the server uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.database import HomeDatabase
from ...base.host_work import OWNER
from ...governance.scopes import session_of
from ..runs.executor import Here
from .membership import LEASE_TIMES, LeaseTimes, Membership
from .peer_link import PeerLink, PeerLost, PeerUnreached
from .remote_runs import NotHere, RemoteRuns
from .replica_errors import SessionElsewhere
from .replica_keys import ReplicaKeys
from .seals import SealCheck
from .session_places import RETRY_SECONDS, HeldSession, SessionPlaces

if TYPE_CHECKING:
    from ....sandbox.job import Json
    from ....skills_db.replicas import ReplicaRow, ReplicaStore
    from ...governance.caller import OnProgress
    from ..runs.executor import Executor
    from ..runs.request import CodeRequest, Execution

WAIT_SECONDS = 20.0
"""How long a call waits at most for the server of its session to answer, or for its lease to run out."""
_LOST = "the server that had it went away or stopped"
_LOG = logging.getLogger(__name__)


class Replicas:
    """What one server has to do with the others. Belongs to one event loop; entered before it is used."""

    def __init__(
        self, database: HomeDatabase, key: bytes, *, address: str, version: str, times: LeaseTimes = LEASE_TIMES
    ) -> None:
        self.keys = ReplicaKeys(key)
        self.membership = Membership(
            self._store_of(database), self.keys, address, version=version, lost=self._lost, held=self._held, times=times
        )
        self.link = PeerLink(self.membership, self.keys)
        self.seals = SealCheck(self.keys.seal, self.membership.id)
        self.runs = RemoteRuns(self.link, self.keys)
        self.sessions = SessionPlaces(self.membership, self.keys)
        self.questions: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        """What runs here ask users who are connected to other servers."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Be one of the servers for as long as the context lasts."""
        await asyncio.to_thread(self.link.warm)
        await self.membership.start()
        keeping = asyncio.create_task(self.sessions.keep())
        try:
            yield
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            await self.membership.leave()
            await self.link.close()

    async def leave(self) -> None:
        """Take no more sessions, and let others have those that nothing is at work in."""
        await self.membership.mark_leaving()
        await self.sessions.leave()

    async def ask_all(self, question: Mapping[str, object]) -> Sequence[Mapping[str, Any] | ReplicaRow]:
        """Ask all other servers at once; return the answer of each, or the server where there was none."""

        async def asked(peer: ReplicaRow) -> Mapping[str, Any] | ReplicaRow:
            try:
                return await self.link.ask(peer, question)
            except (PeerLost, PeerUnreached):
                return peer

        return await asyncio.gather(*map(asked, self.membership.others))

    def why_not_ready(self) -> str | None:
        """Return why calls that need the other servers would not be taken now, or None."""
        if self.membership.is_valid:
            return None
        return "The lease of this server among its replicas is not renewed, since the database does not answer."

    async def _lost(self) -> None:
        await self.sessions.lost()

    async def _held(self, may_be_forgotten: bool) -> None:
        await self.sessions.check(may_be_forgotten=may_be_forgotten)

    @staticmethod
    def _store_of(database: HomeDatabase) -> Callable[[], ReplicaStore]:
        made: list[ReplicaStore] = []

        def store() -> ReplicaStore:
            if not made:
                from ....skills_db.replicas import ReplicaStore

                made.append(ReplicaStore(database()))
            return made[0]

        return store


@dataclass(frozen=True, slots=True)
class TenantPlaces:
    """The sessions of one tenant on all servers; see `runs.executor.Places`."""

    replicas: Replicas
    tenant: str

    async def execute(
        self, executor: Executor, request: CodeRequest, here: Here, progress: OnProgress | None
    ) -> Execution:
        """Run a program where its session is, and return its report.

        A call that did not reach the server of its session is tried again, for so long as it may wait; one that did is
        made once. Raises `SessionElsewhere`, `OutcomeUnknown`, and what `execute` raises.
        """
        session = self._session(request)
        loop = asyncio.get_running_loop()
        until = loop.time() + min(WAIT_SECONDS, request.timeout_seconds or executor.settings.timeout_seconds)
        while True:
            try:
                place = await self._place(executor, session)
                if isinstance(place, HeldSession):
                    return await self._run_here(place, here)
                return await self.replicas.runs.run(place, self.tenant, request, progress)
            except (NotHere, PeerUnreached, SessionElsewhere) as error:
                self.replicas.sessions.forget(self.tenant, session)
                if loop.time() + RETRY_SECONDS >= until:
                    raise (
                        error if isinstance(error, SessionElsewhere) else self.replicas.sessions.away(session)
                    ) from error
            await asyncio.sleep(RETRY_SECONDS)

    async def execute_for_other(self, executor: Executor, request: CodeRequest, here: Here) -> Execution:
        """Run a program that another server sends, in a session that this one has. Raises `NotHere` where it has not.

        It goes no further.
        """
        OWNER.set(executor.shares.owner(request.caller.scope))
        place = await self._place(executor, self._session(request))
        if not isinstance(place, HeldSession) or self.replicas.membership.is_leaving:
            raise NotHere
        return await self._run_here(place, here)

    async def confirm(self, session: str) -> None:
        """Raise `OutcomeUnknown` unless this server still has the session in which it has run a program."""
        await self.replicas.sessions.confirm(self.tenant, session)

    async def listed(self, scope: str) -> Sequence[Mapping[str, Json]]:
        """Return the sessions that the callers of a scope have on the other servers. Raises `SessionElsewhere`."""
        found: list[Mapping[str, Json]] = []
        for said in await self.replicas.ask_all({"kind": "sessions", "tenant": self.tenant, "scope": scope}):
            found += self._answer(said)["sessions"]
        return found

    async def close(self, session: str) -> bool:
        """End a session that another server may have; return whether one had it. Raises `SessionElsewhere`."""
        replies = await self.replicas.ask_all({"kind": "close", "tenant": self.tenant, "session": session})
        answers = [self._answer(said)["closed"] for said in replies]  # each must be known
        return True in answers

    async def store_journals(self) -> None:
        """Ask the other servers that can be reached to write what they have recorded of runs."""
        await self.replicas.ask_all({"kind": "store", "tenant": self.tenant})

    async def last_run(self, scope: str) -> tuple[str, float] | None:
        """Return the last run of a scope on the other servers, and how many seconds ago it ended."""
        replies = await self.replicas.ask_all({"kind": "last", "tenant": self.tenant, "scope": scope})
        answers = [self._answer(said).get("last") for said in replies]
        found = [(str(each[0]), float(each[1])) for each in answers if each is not None]
        return min(found, key=lambda each: each[1], default=None)

    def _answer(self, said: Mapping[str, Any] | ReplicaRow) -> Mapping[str, Any]:
        if isinstance(said, Mapping):
            return said
        seconds = self.replicas.membership.lease_seconds
        raise SessionElsewhere(
            f"One of the servers of this sealab does not answer, so what it has is not known. Ask again in {seconds:g} "
            "seconds: by then it answers, or counts as gone."
        )

    def _session(self, request: CodeRequest) -> str:
        assert request.session is not None
        return session_of(request.caller.scope, request.session)

    async def _place(self, executor: Executor, session: str) -> HeldSession | ReplicaRow:
        pools = executor.pools
        return await self.replicas.sessions.place(
            self.tenant, session, lambda: pools.end_session(session), lambda: pools.home_of(session) is not None
        )

    async def _run_here(self, held: HeldSession, here: Here) -> Execution:
        membership = self.replicas.membership
        with self.replicas.sessions.used(held):
            if not await membership.valid(RETRY_SECONDS):
                raise self.replicas.sessions.no_lease(held.session)
            execution = await self.replicas.sessions.run(held, here)
        was_lost, held.was_lost = held.was_lost, False
        report = execution.report
        if was_lost and "session" not in report and "session_ended" not in report:
            report["session_ended"] = (
                f"The session had ended before this call: {_LOST}. Its variables are gone; this call began a new one."
            )
        return execution
