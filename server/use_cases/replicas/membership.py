"""This server among those that share its database: its lease, the others, and the time that all of them have.

The lease is renewed by one statement for all sessions together, and judged here by the monotonic clock, from before the
renewal was sent: so it never seems to last longer than the database thinks. While it cannot be renewed, nothing of a
session is answered; it may be renewed late, unless another server has taken something meanwhile. Then all is given up.

When a standby was promoted (`shared_state.histories`), a server whose lease lasts has still all that it held, whatever
the database knows of it. One whose lease has run out cannot know what others took that the database has lost: it waits
until these have said so, and gives up what is theirs then.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ...base.daemon_threads import DaemonThreads
from ...base.errors import KNOWN_ERRORS
from ...base.host_work import Kind, in_thread

if TYPE_CHECKING:
    from ....skills_db.replicas import ReplicaRow, ReplicaStore
    from .replica_keys import ReplicaKeys

_LOG = logging.getLogger(__name__)
_SWEEP_SECONDS = 60.0
_LEAVE_SECONDS = 2.0
_WAITING_MAX = 100
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a lease lasts, how often it is renewed, and for how long one that ran out may still be renewed."""

    lease_seconds: float = 6.0
    beat_seconds: float = 1.5
    margin_seconds: float = 0.5
    """How much earlier a lease ends here than in the database: clocks of two machines do not run equally fast."""
    grace_seconds: float = 60.0


LEASE_TIMES = LeaseTimes()


class Membership:
    """This server's row; for its event loop.

    `lost` is awaited when the lease was lost, before there is a new one, and `held` before it counts as renewed, with
    whether the database may have forgotten what was given to this server last.
    """

    def __init__(
        self,
        store: Callable[[], ReplicaStore],
        keys: ReplicaKeys,
        address: str,
        *,
        version: str,
        lost: Callable[[], Awaitable[None]],
        held: Callable[[bool], Awaitable[None]] | None = None,
        times: LeaseTimes = LEASE_TIMES,
    ) -> None:
        self.id = secrets.token_hex(8)
        self.term = 1
        self.address = address
        self.is_leaving = False
        self.history: str | None = None
        """That of the database, as it was when the lease was renewed last."""
        self._store = store
        self._keys = keys
        self._version = version
        self._lost = lost
        self._held = held
        self._times = times
        self._joined = False
        self._valid_until = float("-inf")
        self._offset: float | None = None
        self._others: dict[str, ReplicaRow] = {}
        self._strangers: frozenset[str] = frozenset()
        self._renewed = asyncio.Condition()
        self._swept = 0.0
        self._looked = 0.0
        self._is_silent = False
        self._task: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._threads = DaemonThreads(1, "lease", _WAITING_MAX)  # work for calls must not delay a lease

    async def start(self) -> None:
        """Join, and renew the lease from now on; while the database cannot be reached it is tried again."""
        await self._beat()
        self._task = asyncio.create_task(self._keep())

    async def leave(self) -> None:
        """Renew it no more, and let others have at once what this server had."""
        self.is_leaving = True
        for task in (self._task, self._sweeping):
            if task is not None:
                task.cancel()
        self._valid_until = float("-inf")
        if self._joined:
            with suppress(*KNOWN_ERRORS, TimeoutError):
                async with asyncio.timeout(_LEAVE_SECONDS):
                    await self.ask_apart(lambda store: store.leave(self.id))

    async def mark_leaving(self) -> None:
        """Announce that this server takes no more sessions."""
        self.is_leaving = True
        await self._beat()

    @property
    def is_valid(self) -> bool:
        """Whether the lease lasts."""
        return time.monotonic() < self._valid_until

    @property
    def lease_seconds(self) -> float:
        """How long the lease of a server lasts that has gone."""
        return self._times.lease_seconds

    async def valid(self, seconds: float) -> bool:
        """Return whether the lease lasts; where it does not, wait so long for it to be renewed."""
        if self.is_valid:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._renewed:
                await self._renewed.wait_for(lambda: self.is_valid)
        return self.is_valid

    def now(self) -> float | None:
        """Return the database's time in seconds since 1970; None where it was never heard."""
        return None if self._offset is None else time.monotonic() + self._offset

    def other(self, replica: str) -> ReplicaRow | None:
        """Return another server that was alive when the lease was renewed last."""
        found = self._others.get(replica)
        return found if found is not None and found.is_alive else None

    @property
    def others(self) -> tuple[ReplicaRow, ...]:
        """The other servers that were alive when the lease was renewed last."""
        return tuple(each for each in self._others.values() if each.is_alive)

    def knows_dead(self, replica: str) -> bool:
        """Return whether it is known of a server that its lease has run out."""
        return (found := self._others.get(replica)) is not None and not found.is_alive

    async def look_soon(self, *, at_once: bool) -> None:
        """Look which servers there are now, if that can be; not `at_once`, not more often than the lease is renewed."""
        now = time.monotonic()
        if at_once or now - self._looked > self._times.beat_seconds:
            self._looked = now
            with suppress(*KNOWN_ERRORS):
                await self.look()

    async def look(self) -> None:
        """Look which servers there are now. Raises what reading the database raises."""
        self._note(await self.ask(lambda store: store.all()))

    async def ask(self, question: Callable[[ReplicaStore], _T]) -> _T:
        """Ask the database. Raises what that raises."""
        return await in_thread(Kind.DATABASE, lambda: question(self._store()), charged=False)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._times.beat_seconds)
            await self._beat()

    async def _beat(self) -> None:
        """Renew the lease, or join, or join anew. Whatever goes wrong, it is tried again: without it no session is."""
        try:
            async with asyncio.timeout(self._times.lease_seconds):
                await self._renew()
            self._is_silent = False
        except (*KNOWN_ERRORS, TimeoutError) as error:
            if not self._is_silent:
                _LOG.warning(
                    "The lease of this server cannot be renewed, and is tried again: %s", str(error) or "no answer"
                )
            self._is_silent = True
        except Exception:  # noqa: BLE001 - see above
            _LOG.exception("The lease of this server cannot be renewed, and is tried again.")

    async def _renew(self) -> None:
        times, began = self._times, time.monotonic()
        seconds = times.lease_seconds
        if not self._joined:
            given = (self.id, self.term, self.address, self._keys.address_mark(self.id, self.address), self._version)
            await self.ask_apart(lambda store: store.join(*given, seconds=seconds))
            self._joined = True
        is_leaving = self.is_leaving
        beat = await self.ask_apart(
            lambda store: store.beat(self.id, self.term, seconds=seconds, is_leaving=is_leaving)
        )
        ended = time.monotonic()
        self._offset = beat.now - (began + ended) / 2
        self._note(beat.replicas)
        if not beat.kept:
            _LOG.warning("Another server has taken over from this one, whose lease had run out. Its sessions end.")
            self._valid_until = float("-inf")
            self.history = None
            self.term += 1
            self._joined = False
            await self._lost()
            return
        is_new_history = self.history not in {None, beat.history}
        has_lapsed = ended >= self._valid_until
        if is_new_history and has_lapsed and not beat.is_settled:
            return
        if self._held is not None:
            await self._held(is_new_history and not has_lapsed)
        self.history = beat.history  # no sooner: until the database knows what is held here, the lease must last
        async with self._renewed:
            self._valid_until = began + seconds - times.margin_seconds
            self._renewed.notify_all()
        if ended - self._swept > _SWEEP_SECONDS and (self._sweeping is None or self._sweeping.done()):
            self._swept = ended
            self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        """Remove what is long over, in another thread: that may take longer than a lease lasts."""
        grace = self._times.grace_seconds
        try:
            await self.ask(lambda store: store.remove_dead(grace_seconds=grace))
        except KNOWN_ERRORS as error:
            _LOG.debug("What is known of servers that have gone stays in the database for a while: %s", error)

    async def ask_apart(self, question: Callable[[ReplicaStore], _T]) -> _T:
        """Ask the database, for what a lease is renewed by. Raises what that raises."""
        return await asyncio.wrap_future(self._threads.submit(lambda: question(self._store())))

    def _note(self, found: tuple[ReplicaRow, ...]) -> None:
        """Note the others, without rows that no server with the same master key wrote: nothing is sent there."""
        self._others = {each.id: each for each in found if each.id != self.id and self._keys.marked(each)}
        strangers = frozenset(each.id for each in found) - {self.id, *self._others}
        if strangers - self._strangers:
            _LOG.warning(
                "The database has servers that were not entered with the VAULT_KEY of this one, and are sent nothing. "
                "Set the same on all."
            )
        self._strangers = strangers
