"""Which server has a session of code: this one, under its lease, or another one, to which a call for it goes.

A session is held by one server at a time. Here that is remembered; otherwise the database says who it is, or makes it
this one where nobody that is alive has it. A session that was lost elsewhere is rebuilt from its journal by its next
call. At the end of each program it is looked whether the lease still lasts: if not, its answer is not given.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ....sandbox.host.repl_sessions import shown
from ....skills_db.errors import SkillsDbError
from ...base.errors import HostWorkBusy
from ...base.host_work import cancellations
from ...base.lru import Lru
from ..runs.executor import Here
from .replica_errors import OutcomeUnknown, SessionElsewhere

if TYPE_CHECKING:
    from ....skills_db.replicas import ReplicaRow
    from ..runs.request import Execution
    from .membership import Membership
    from .replica_keys import ReplicaKeys

CONFIRM_SECONDS = 5.0
"""How long the answer of a program waits for a lease that could not be renewed in time."""
RETRY_SECONDS = 0.2
"""How often it is tried anew to reach the server of a session, or to take it over."""
IDLE_SECONDS = 5.0
"""How often sessions are let go of that have no worker any more."""
KNOWN_MAX = 10_000
"""Sessions of other servers whose place is remembered."""
_LOG = logging.getLogger(__name__)

_MOVED = (
    "The session {} has moved to another server while this call was at work, since this server had lost touch with the "
    "database. What the call had done by then may stand, calls of other tools included: look before you make it again."
)
_AWAY = (
    "The server that has the session {} cannot be reached now, so nothing of this call ran. Make it again in {:.0f} "
    "seconds: by then it answers, or another server has taken over."
)
_NO_LEASE = (
    "This server has lost touch with the database, which says who has the session {}, so nothing of this "
    "call ran. Make it again in {:.0f} seconds."
)


@dataclass(slots=True, eq=False)
class HeldSession:
    """A session that this server has. `was_lost` until its next call has begun it anew."""

    name: str
    tenant: str
    session: str
    epoch: int
    was_lost: bool
    end: Callable[[], Awaitable[object]]
    """Ends its worker."""
    is_alive: Callable[[], bool]
    """Says whether it has one."""
    users: int = 0
    is_lost: bool = False
    running: set[asyncio.Future[Execution]] = field(default_factory=set)


class SessionPlaces:
    """The sessions of all tenants of one server; for its event loop."""

    def __init__(self, membership: Membership, keys: ReplicaKeys) -> None:
        self.membership = membership
        self._keys = keys
        self._held: dict[str, HeldSession] = {}
        self._elsewhere: Lru[str, str] = Lru(KNOWN_MAX)
        self._taking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One for each session that is being taken, as long as somebody waits for it."""
        self._is_leaving = False

    async def place(
        self, tenant: str, session: str, end: Callable[[], Awaitable[object]], is_alive: Callable[[], bool]
    ) -> HeldSession | ReplicaRow:
        """Return a session as this server has it, or the server that has it.

        Raises `SessionElsewhere` where neither can be said, and what reading the database raises.
        """
        name = self._keys.session_name(tenant, session)
        if (held := self._held.get(name)) is not None:
            return held
        known = self.membership.other(self._elsewhere.get(name, ""))
        if known is not None and not known.is_leaving:
            return known
        lock = self._taking.setdefault(name, asyncio.Lock())
        async with lock:
            if (held := self._held.get(name)) is not None:
                return held
            return await self._taken(name, tenant, session, end, is_alive)

    async def _taken(
        self,
        name: str,
        tenant: str,
        session: str,
        end: Callable[[], Awaitable[object]],
        is_alive: Callable[[], bool],
    ) -> HeldSession | ReplicaRow:
        membership = self.membership
        if not await membership.valid(CONFIRM_SECONDS):
            raise self.no_lease(session)
        term, history = membership.term, membership.history
        holder = await membership.ask(
            lambda store: store.take(name, membership.id, term, settle_seconds=membership.lease_seconds)
        )
        if holder.replica == membership.id:
            if (term, history) != (membership.term, membership.history) or not membership.is_valid:
                raise self.no_lease(session)
            self._elsewhere.pop(name, None)
            held = self._held[name] = HeldSession(name, tenant, session, holder.epoch, holder.was_lost, end, is_alive)
            return held
        if not holder.replica:
            raise self.away(session)
        if (other := membership.other(holder.replica)) is None:
            await membership.look()
            other = membership.other(holder.replica)
        if other is None:
            raise self.away(session)
        self._elsewhere[name] = other.id
        return other

    def forget(self, tenant: str, session: str) -> None:
        """Ask the database again where a session is."""
        self._elsewhere.pop(self._keys.session_name(tenant, session), None)

    def away(self, session: str) -> SessionElsewhere:
        """Return what to raise where the server of a session cannot be reached."""
        return SessionElsewhere(_AWAY.format(repr(shown(session)), self.membership.lease_seconds))

    def no_lease(self, session: str) -> SessionElsewhere:
        """Return what to raise where this server cannot say that a session is its own."""
        return SessionElsewhere(_NO_LEASE.format(repr(shown(session)), self.membership.lease_seconds))

    @contextmanager
    def used(self, held: HeldSession) -> Iterator[None]:
        """Keep a session here for as long as a call is at work in it."""
        held.users += 1
        try:
            yield
        finally:
            held.users -= 1

    async def confirm(self, tenant: str, session: str) -> None:
        """Raise `OutcomeUnknown` unless this server still has a session, in which it has run a program."""
        held = self._held.get(self._keys.session_name(tenant, session))
        if held is not None and self.membership.is_valid:
            return
        if held is not None and await self.membership.valid(CONFIRM_SECONDS) and self._held.get(held.name) is held:
            return
        raise self.moved(session)

    def moved(self, session: str) -> OutcomeUnknown:
        """Return what to raise where a session went to another server while a program was at work in it."""
        return OutcomeUnknown(_MOVED.format(repr(shown(session))))

    async def run(self, held: HeldSession, here: Here) -> Execution:
        """Run a program in a session.

        Raises `OutcomeUnknown` where the session is lost meanwhile, `SessionElsewhere` where that was so before.
        """
        if held.is_lost:
            raise self.no_lease(held.session)
        running, before = asyncio.ensure_future(here()), cancellations()
        held.running.add(running)
        try:
            with self.used(held):
                return await running
        except asyncio.CancelledError:
            if not held.is_lost or cancellations() > before:
                raise
            raise self.moved(held.session) from None
        finally:
            held.running.discard(running)

    async def lost(self) -> None:
        """End every session that is here: another server may have it."""
        await self._give_up(list(self._held.values()))

    async def check(self, *, may_be_forgotten: bool) -> None:
        """Register every session that is here in the database, and end those that it has given to another server.

        It `may_be_forgotten` who was given a session last, where the database has just gone on elsewhere.
        Raises what asking the database raises.
        """
        membership = self.membership
        held = {each.name: each.epoch for each in self._held.values()}
        if not held:
            return
        term = membership.term
        gone = await membership.ask_apart(
            lambda store: store.keep(held, membership.id, term, may_be_forgotten=may_be_forgotten)
        )
        given_up = [each for name in gone if (each := self._held.get(name)) is not None and each.epoch == held[name]]
        if given_up:
            _LOG.warning("The database has given sessions of this server to another one. They end here.")
            await self._give_up(given_up)

    async def _give_up(self, every: list[HeldSession]) -> None:
        for each in every:
            del self._held[each.name]
            each.is_lost = True
            for running in each.running:
                running.cancel()  # which ends the worker, and is awaited by who has begun it
        for each in every:
            if not each.running:
                await _ended(each)

    async def keep(self) -> None:
        """Let go, again and again, of sessions that have ended here; until it is cancelled."""
        while True:
            await asyncio.sleep(RETRY_SECONDS if self._is_leaving else IDLE_SECONDS)
            await self._let_go(lambda each: self._is_leaving or not each.is_alive())

    async def leave(self) -> None:
        """Let other servers have the sessions that no call is at work in, and from now on the others when they can."""
        self._is_leaving = True
        await self._let_go(lambda _held: True)

    async def _let_go(self, chosen: Callable[[HeldSession], bool]) -> None:
        gone: list[HeldSession] = []
        for each in list(self._held.values()):
            if not each.users and chosen(each) and self._held.get(each.name) is each:
                del self._held[each.name]  # right before it ends, so that no call begins in it
                gone.append(each)
                await _ended(each)
        if not gone:
            return
        epochs = [(each.name, each.epoch) for each in gone]
        with suppress(SkillsDbError, HostWorkBusy):  # else this server takes them anew when asked
            await self.membership.ask(lambda store: store.let_go(epochs, self.membership.id))


async def _ended(held: HeldSession) -> None:
    """End the worker of a session; where that fails, the others end all the same."""
    try:
        await held.end()
    except Exception:  # noqa: BLE001 - see above
        _LOG.exception("The worker of a session that was given up could not be ended.")
