"""Bounds that hold over all servers on one PostgreSQL database: this server has a part of each, and renews it.

What is taken of a part that is large enough asks nobody. Where it is too small, more is asked for at once, and a server
that has some to spare gives it back within `SETTLE_SECONDS`. The parts never add up to more than the bound, so that at
no time more is taken than it, with one exception: a server that is cut off from the database keeps what it has taken
until that ends, though the others may have been given its part once its time is up.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....sandbox.job import Owner
from ....skills_db.errors import SkillsDbError
from ...base.errors import HostWorkBusy
from ...base.fair_line import FairLine
from ...base.host_work import Kind, ended_within, in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....skills_db.shared_state.part_store import PartAsked, PartGiven, PartStore
    from ...base.database import HomeDatabase

SETTLE_SECONDS = 1.0
"""How often a server that has a part of something looks whether others need it."""
AGAIN_SECONDS = 0.2
"""How soon it asks again for what it needs and was not given."""
HELD_SECONDS = 15.0
"""How long a part is a server's that does not renew it."""
CLOSING_SECONDS = 2.0
"""How long the end of the process waits for the database."""
_MARGIN_SECONDS = 2.0
"""How much earlier it stops to take of it, since the answer took its time."""
_RECENT_SECONDS = 5.0
_ANSWERS_LEAST = 2
"""So many answers hold one whose question was asked after somebody began to wait."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Part:
    """What this server has of one bound."""

    most: int
    held_seconds: float
    used: int = 0
    granted: int = 0
    asked: int = 0
    """What the last or present request asks for; no more is taken meanwhile, since it may be less than before."""
    until: float = 0.0
    of_others: int = 0
    others_lack: int = 0
    taken_at: float = 0.0
    answers: int = 0
    """How often the database has answered."""
    waiting: FairLine[asyncio.Future[None]] = field(default_factory=FairLine)

    def has_room(self, now: float) -> bool:
        """Return whether one more may be taken without asking."""
        return self.used < min(self.granted, self.asked) and now < self.until

    def needed(self) -> int:
        """Return what is taken, and what those need that wait."""
        return self.used + len(self.waiting)

    def wanted(self, now: float) -> int:
        """Return what to ask for: what is needed, and half of what is left while others lack nothing."""
        needed = self.needed()
        is_used = needed > 0 and now - self.taken_at < _RECENT_SECONDS
        spare = 0 if self.others_lack or not is_used else (self.most - self.of_others - needed) // 2
        return min(self.most, needed + max(0, spare))


class PartLacking(Exception):
    """Nothing of a bound was left within the time that may be waited."""


class Parts:
    """The parts that this server has of bounds, by their names. Belongs to one event loop.

    `database` is the operator's, None where no other server shares it: then each bound is this server's whole.
    """

    def __init__(self, database: HomeDatabase | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._holder = secrets.token_hex(8)
        self._store: PartStore | None = None
        self._parts: dict[str, _Part] = {}
        self._hurried = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_shared(self) -> bool:
        """Whether other servers may share the bounds."""
        return self._database is not None

    async def take(
        self, name: str, most: int, *, caller: str = "", wait_seconds: float, held_seconds: float = HELD_SECONDS
    ) -> None:
        """Take one of a bound, which `give_back` returns; callers that wait are served in turn.

        Raises `PartLacking` where none was left for so long and the database has said so, and what the database raises
        where it cannot be asked.
        """
        part = self._parts.setdefault(name, _Part(most, held_seconds))
        part.most = most
        part.taken_at = self._clock()
        if self._database is None:
            part.granted = part.asked = most
            part.until = math.inf
        if not part.waiting and part.has_room(part.taken_at):
            part.used += 1
            return
        if self._closed:
            raise PartLacking(name)
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        part.waiting.put(Owner("", caller), served)
        if self._database is not None:
            self._ask()
        answers, left = part.answers, wait_seconds
        try:
            while not served.done():
                await asyncio.wait({served}, timeout=left)
                if self._database is None or part.answers >= answers + _ANSWERS_LEAST:
                    break
                left = AGAIN_SECONDS  # a database that is slow, or opened first, has not said that nothing is left
        except asyncio.CancelledError:
            if served.done() and served.exception() is None:
                self.give_back(name)
            served.cancel()
            part.waiting.drop(lambda each: each.done())
            raise
        if not served.done():
            served.cancel()
            part.waiting.drop(lambda each: each.done())
            raise PartLacking(name)
        served.result()

    def give_back(self, name: str) -> None:
        """Return one that was taken."""
        part = self._parts.get(name)
        if part is not None and part.used:
            part.used -= 1
            self._serve(part)
            if self._database is None and not part.needed():
                del self._parts[name]

    def used(self, name: str) -> int:
        """Return how many are taken by this server."""
        part = self._parts.get(name)
        return 0 if part is None else part.used

    def of_others(self, name: str) -> int:
        """Return what the other servers had of a bound when this one last asked."""
        part = self._parts.get(name)
        return 0 if part is None else part.of_others

    async def close(self) -> None:
        """Give all back, and lend no more: who waits, or asks for more, raises `PartLacking`."""
        self._closed = True
        if self._serving is not None:
            self._serving.cancel()
            with suppress(asyncio.CancelledError):
                await self._serving
        self._fail(self._parts, PartLacking("the server is closing"))
        if self._store is not None:
            store = self._store
            with suppress(SkillsDbError):  # else they are the others' once their time is up
                await ended_within(CLOSING_SECONDS, lambda: store.leave(self._holder))

    def _ask(self) -> None:
        """Settle the parts now."""
        self._hurried.set()
        if self._serving is None and not self._closed:
            self._serving = asyncio.create_task(self._keep_settling())

    async def _keep_settling(self) -> None:
        while True:
            self._hurried.clear()
            await self._settle()
            lacks = any(part.waiting for part in self._parts.values())
            if lacks:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurried.wait(), SETTLE_SECONDS if self._parts else None)

    async def _settle(self) -> None:
        now = self._clock()
        due = {name: part for name, part in self._parts.items() if self._is_due(part, now)}
        if not due:
            return
        from ....skills_db.shared_state.part_store import PartAsked

        asked: dict[str, PartAsked] = {}
        for name, part in due.items():
            part.asked = part.wanted(now)
            asked[name] = PartAsked(part.most, part.asked, part.needed(), part.held_seconds)
        try:
            given = await in_thread(Kind.DATABASE, lambda: self._opened().settle(self._holder, asked), charged=False)
        except Exception as error:  # noqa: BLE001 - those that wait for it raise it
            if not isinstance(error, SkillsDbError | HostWorkBusy):
                _LOG.exception("Bounds that servers share cannot be settled.")
            self._fail(due, error)
            return
        self._take_over(due, given, now)

    def _is_due(self, part: _Part, now: float) -> bool:
        """Return whether a part has to be asked for, renewed, or looked at for what others need of it."""
        if part.waiting or part.granted > part.used or part.wanted(now) != part.granted:
            return True
        return now > part.until - part.held_seconds / 2

    def _take_over(self, due: Mapping[str, _Part], given: Mapping[str, PartGiven], began: float) -> None:
        for name, part in due.items():
            found = given[name]
            part.granted, part.of_others, part.others_lack = found.amount, found.of_others, found.others_lack
            part.asked = found.amount
            part.answers += 1
            part.until = began + part.held_seconds - _MARGIN_SECONDS
            self._serve(part)
            if not (part.used or part.waiting or part.granted):
                self._parts.pop(name, None)

    def _fail(self, due: Mapping[str, _Part], error: Exception) -> None:
        for part in due.values():
            part.asked = part.granted
            while part.waiting:
                waiting = part.waiting.take()
                if not waiting.done():
                    waiting.set_exception(error)

    def _serve(self, part: _Part) -> None:
        """Let those go on that wait, as many as there is room for."""
        now = self._clock()
        while part.waiting and part.has_room(now):
            waiting = part.waiting.take()
            if not waiting.done():
                part.used += 1
                waiting.set_result(None)

    def _opened(self) -> PartStore:
        if self._store is None:
            from ....skills_db.shared_state.part_store import PartStore

            assert self._database is not None
            self._store = PartStore(self._database())
        return self._store
