"""Turns to compute, shared fairly: the tenant with the fewest is served next, and in it the caller with the fewest.

A job takes a turn before it begins, gives it back while it waits for something, and takes one again before it goes on.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..errors import Busy
from ..job import Owner

_T = TypeVar("_T")

_WEIGHT_OF_NEWEST = 0.1
"""How much the newest begin counts in the mean time between two."""


@dataclass(slots=True)
class _Queue(Generic[_T]):
    """The turns of one caller that are waited for: of jobs that have begun, which are served first, and of others."""

    goes_on: deque[Turn[_T]] = field(default_factory=deque)
    begins: deque[Turn[_T]] = field(default_factory=deque)


class Turn(Generic[_T]):
    """The turn of one job. `held` says whether it computes now, since the time `since` of the loop."""

    __slots__ = ("_begun", "_ended", "_served", "_turns", "held", "owner", "since", "what")

    def __init__(self, turns: Turns[_T], owner: Owner, what: _T) -> None:
        self._turns = turns
        self._served: asyncio.Future[None] | None = None
        self._begun = False
        self._ended = False
        self.owner = owner
        self.what = what
        self.held = False
        self.since = 0.0

    @property
    def wanted(self) -> bool:
        """Whether its job has begun and waits for it."""
        return self._begun and self._served is not None

    def give_back(self) -> None:
        """Let another have it, until `take_again`."""
        if self.held:
            self.held = False
            self._turns._freed(self.owner)

    def take_if_free(self) -> bool:
        """Take one again where no other has to wait for that; return whether it is held."""
        if self._turns.free > 0:
            self.take_beyond()
        return self.held

    async def take_again(self) -> None:
        """Wait for one, before all jobs of this caller that have not begun. Tasks of one job may wait together."""
        if self.take_if_free() or self._ended:
            return
        if self._served is None:
            self._served = asyncio.get_running_loop().create_future()
            self._turns._queue(self.owner).goes_on.append(self)
            self._turns.changes += 1
        await asyncio.shield(self._served)

    def take_beyond(self) -> None:
        """Take one even where none is free: its job computes already, and cannot be stopped."""
        if not self.held and not self._ended:
            self._leave()
            self._turns._given(self)

    def end(self) -> None:
        """Give it back for good."""
        if not self._ended:
            self._ended = True
            self._leave()
            self._turns._left(self)
            self.give_back()

    def _leave(self) -> None:
        """Wait no longer."""
        if self._served is not None:
            self._turns._queue(self.owner).goes_on.remove(self)
            self._turns.changes += 1
            self._turns._tidy(self.owner)
            self._wake()

    def _wake(self) -> None:
        served, self._served = self._served, None
        if served is not None and not served.done():
            served.set_result(None)


class Turns(Generic[_T]):
    """At most `maximum` turns at once.

    A free turn goes to the waiting tenant that has the fewest turns now, of equals to the one that had none for the
    longest time; within the tenant to its waiting caller by the same rule. So one more job of a tenant waits for one
    turn to become free at most, however many jobs of others wait. The jobs of one caller are served in their order,
    those that have begun before those that have not. At most `queue_max` jobs wait to begin, each for at most
    `queue_seconds`; where one more comes, it is refused, or the newest of the tenant, and in it of the caller, that has
    more of them waiting. `refusal` says why a job may not begin now, or None where it may; what may not waits, and
    its error gives that reason at the end. Belongs to one event loop.
    """

    def __init__(
        self,
        maximum: int,
        *,
        queue_max: int = 1000,
        queue_seconds: float = 30.0,
        refusal: Callable[[Owner, _T], str | None] = lambda _owner, _what: None,
    ) -> None:
        self.maximum = maximum
        self.free = maximum
        self._queue_max = queue_max
        self._queue_seconds = queue_seconds
        self._refusal = refusal
        self._running: Counter[Owner] = Counter()
        self._running_of: Counter[str] = Counter()
        self._queues: dict[str, dict[str, _Queue[_T]]] = {}  # by tenant and caller, who had none for longest first
        self._begun: dict[Owner, set[Turn[_T]]] = {}
        self._begun_of: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self.changes = 0
        """Goes up whenever a turn is given, given back or wanted again."""
        self._seconds_between = 0.0
        self._began = 0.0

    @property
    def running(self) -> int:
        """How many turns are taken."""
        return self._running_of.total()

    @property
    def waiting(self) -> int:
        """How many jobs wait to begin."""
        return self._waiting.total()

    @property
    def wanted(self) -> bool:
        """Whether a caller waits for a turn."""
        return bool(self._queues)

    @property
    def begun_by_all(self) -> int:
        """How many jobs have begun and not ended."""
        return self._begun_of.total()

    def begun_by(self, owner: Owner) -> int:
        """Return how many jobs of that caller have begun and not ended."""
        return len(self._begun.get(owner, ()))

    def begun_by_tenant(self, tenant: str) -> int:
        """Return how many jobs of that tenant have begun and not ended."""
        return self._begun_of[tenant]

    def begun(self) -> Iterator[Turn[_T]]:
        """Give the turn of each job that has begun and not ended, held or not."""
        for turns in self._begun.values():
            yield from turns

    def taken_by(self, owner: Owner) -> int:
        """Return how many turns that caller has."""
        return self._running[owner]

    def taken_by_tenant(self, tenant: str) -> int:
        """Return how many turns that tenant has."""
        return self._running_of[tenant]

    def next_owner(self) -> Owner | None:
        """Return the caller that gets the next turn, or None where none waits that could use one now."""
        for tenant in sorted(self._queues, key=self._running_of.__getitem__):
            owners = [Owner(tenant, caller) for caller in self._queues[tenant]]
            owners.sort(key=self._running.__getitem__)
            if (found := next(filter(self._is_ready, owners), None)) is not None:
                return found
        return None

    @asynccontextmanager
    async def turn(self, owner: Owner, what: _T, *, nested: bool = False) -> AsyncIterator[Turn[_T]]:
        """Wait for a turn and hold it.

        A `nested` job is waited for by one that has begun, and so is never refused for the length of the queue.
        Raises `Busy`.
        """
        turn = await self._begin(owner, what, nested=nested)
        try:
            yield turn
        finally:
            turn.end()

    def serve(self) -> None:
        """Give free turns to the next callers, as long as one waits that may begin or go on."""
        while self.free > 0 and self._queues and self._serve_one():
            pass

    async def _begin(self, owner: Owner, what: _T, *, nested: bool) -> Turn[_T]:
        turn = Turn(self, owner, what)
        if self.free > 0 and not self._queues and self._refusal(owner, what) is None:
            self._start(turn)
            return turn
        if not nested:
            self._make_room(owner)
        served = turn._served = asyncio.get_running_loop().create_future()
        begins = self._queue(owner).begins
        if nested:
            begins.appendleft(turn)
        else:
            begins.append(turn)
        self._waiting[owner.tenant] += 1
        self.serve()
        try:
            async with asyncio.timeout(self._queue_seconds):
                await served
        except TimeoutError:
            if not turn._begun:  # else it was decided in the same moment
                self._forget(turn)
                why = self._refusal(owner, what) or "all turns of the server to compute were taken"
                raise Busy(
                    f"No run could begin for {self._queue_seconds:g} seconds: {why}.",
                    self._seconds_to_wait(),
                    limit=_limit_in(why),
                ) from None
        except asyncio.CancelledError:
            if turn._begun:  # the turn came in the same moment
                turn.end()
            else:
                self._forget(turn)
            raise
        return turn

    def _start(self, turn: Turn[_T]) -> None:
        turn._begun = True
        self._begun.setdefault(turn.owner, set()).add(turn)
        self._begun_of[turn.owner.tenant] += 1
        self._given(turn)

    def _left(self, turn: Turn[_T]) -> None:
        owner = turn.owner
        _count_down(self._begun_of, owner.tenant)
        begun = self._begun[owner]
        begun.discard(turn)
        if not begun:
            del self._begun[owner]

    def _make_room(self, owner: Owner) -> None:
        """Refuse this job, or the newest that waits of whoever has more of them, where too many wait."""
        if self.waiting < self._queue_max:
            return
        refusal = Busy(
            f"{self.waiting} runs wait to begin already, as many as may on this server (QUEUE_MAX).",
            self._seconds_to_wait(),
            limit="QUEUE_MAX",
        )
        tenant = owner.tenant
        if self._waiting:
            most, waiting = self._waiting.most_common(1)[0]
            if waiting > self._waiting[tenant] + 1:
                tenant = most
        queues = self._queues.get(tenant, {})
        own = len(queues[owner.caller].begins) if tenant == owner.tenant and owner.caller in queues else 0
        caller = max(queues, key=lambda each: len(queues[each].begins), default=None)
        if caller is None or (tenant == owner.tenant and len(queues[caller].begins) <= own + 1):
            raise refusal
        newest = queues[caller].begins[-1]
        self._forget(newest)
        if newest._served is not None and not newest._served.done():
            newest._served.set_exception(refusal)

    def _seconds_to_wait(self) -> float:
        return min(max(1, math.ceil(self.waiting * self._seconds_between)), max(1.0, self._queue_seconds))

    def _queue(self, owner: Owner) -> _Queue[_T]:
        return self._queues.setdefault(owner.tenant, {}).setdefault(owner.caller, _Queue())

    def _queue_of(self, owner: Owner) -> _Queue[_T] | None:
        return self._queues.get(owner.tenant, {}).get(owner.caller)

    def _tidy(self, owner: Owner) -> None:
        queue = self._queue_of(owner)
        if queue is not None and not queue.goes_on and not queue.begins:
            queues = self._queues[owner.tenant]
            del queues[owner.caller]
            if not queues:
                del self._queues[owner.tenant]

    def _forget(self, turn: Turn[_T]) -> None:
        queue = self._queue_of(turn.owner)
        if queue is not None and turn in queue.begins:
            queue.begins.remove(turn)
            _count_down(self._waiting, turn.owner.tenant)
            self._tidy(turn.owner)

    def _given(self, turn: Turn[_T]) -> None:
        self.changes += 1
        self.free -= 1
        self._running[turn.owner] += 1
        self._running_of[turn.owner.tenant] += 1
        turn.held = True
        turn.since = asyncio.get_running_loop().time()

    def _freed(self, owner: Owner) -> None:
        self.changes += 1
        _count_down(self._running, owner)
        _count_down(self._running_of, owner.tenant)
        self.free += 1
        self._last_of(owner)
        self.serve()

    def _is_ready(self, owner: Owner) -> bool:
        queue = self._queues[owner.tenant][owner.caller]
        return bool(queue.goes_on) or (bool(queue.begins) and self._refusal(owner, queue.begins[0].what) is None)

    def _serve_one(self) -> bool:
        owner = self.next_owner()
        if owner is None:
            return False
        queue = self._queue(owner)
        if queue.goes_on:
            turn = queue.goes_on.popleft()
            self._given(turn)
            turn._wake()
        else:
            turn = queue.begins.popleft()
            _count_down(self._waiting, owner.tenant)
            if turn._served is not None and not turn._served.done():  # else it was cancelled a moment ago
                self._note_begin()
                self._start(turn)
                turn._wake()
        self._last_of(owner)
        self._tidy(owner)
        return True

    def _last_of(self, owner: Owner) -> None:
        """Let the others that have as many turns be served before this caller and its tenant are again."""
        if self._queue_of(owner) is not None:
            queues = self._queues[owner.tenant] = self._queues.pop(owner.tenant)
            queues[owner.caller] = queues.pop(owner.caller)
        elif owner.tenant in self._queues:
            self._queues[owner.tenant] = self._queues.pop(owner.tenant)

    def _note_begin(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._began:
            self._seconds_between += (now - self._began - self._seconds_between) * _WEIGHT_OF_NEWEST
        self._began = now


_Key = TypeVar("_Key")


def _count_down(counter: Counter[_Key], key: _Key) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def of_one_caller(places: int) -> int:
    """Return how many places one caller may have: most of all, but never the last ones where there are several."""
    return max(1, places - max(1, places // 4))


def _limit_in(why: str) -> str:
    """Return the setting that a reason names in brackets at its end, else that of how long runs wait."""
    _, bracket, name = why.removesuffix(")").rpartition("(")
    return name if bracket and why.endswith(")") else "QUEUE_SECONDS"
