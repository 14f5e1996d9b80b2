"""Turns to compute, shared fairly between callers: the caller with the fewest is served next.

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

_T = TypeVar("_T")

_WEIGHT_OF_NEWEST = 0.1
"""How much the newest begin counts in the mean time between two."""


@dataclass(slots=True, eq=False)
class _Begin(Generic[_T]):
    """A job that waits to begin."""

    what: _T
    served: asyncio.Future[Turn[_T]]


@dataclass(slots=True)
class _Queue(Generic[_T]):
    """Who of one caller waits: those that have begun are served first."""

    goes_on: deque[Turn[_T]] = field(default_factory=deque)
    begins: deque[_Begin[_T]] = field(default_factory=deque)


class Turn(Generic[_T]):
    """The turn of one job. `held` says whether it computes now, since the time `since` of the loop."""

    __slots__ = ("_again", "_ended", "_turns", "caller", "held", "since", "what")

    def __init__(self, turns: Turns[_T], caller: str, what: _T) -> None:
        self._turns = turns
        self._again: asyncio.Future[None] | None = None
        self._ended = False
        self.caller = caller
        self.what = what
        self.held = False
        self.since = 0.0

    @property
    def wanted(self) -> bool:
        """Whether its job has begun and waits for it."""
        return self._again is not None

    def give_back(self) -> None:
        """Let another have it, until `take_again`."""
        if self.held:
            self.held = False
            self._turns._freed(self.caller)

    def take_if_free(self) -> bool:
        """Take one again where no other has to wait for that; return whether it is held."""
        if not self.held and not self._ended and self._turns.free > 0:
            self._leave()
            self._turns._given(self)
        return self.held

    async def take_again(self) -> None:
        """Wait for one, before all jobs of this caller that have not begun. Tasks of one job may wait together."""
        if self.held or self.take_if_free() or self._ended:
            return
        if self._again is None:
            self._again = asyncio.get_running_loop().create_future()
            self._turns._queue(self.caller).goes_on.append(self)
            self._turns.changes += 1
        await asyncio.shield(self._again)

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
        again, self._again = self._again, None
        if again is not None:
            self._turns._queue(self.caller).goes_on.remove(self)
            self._turns.changes += 1
            self._turns._tidy(self.caller)
            if not again.done():
                again.set_result(None)

    def _serve(self) -> None:
        """Have it, as the next one; it has left the queue."""
        again, self._again = self._again, None
        self._turns._given(self)
        if again is not None and not again.done():
            again.set_result(None)


class Turns(Generic[_T]):
    """At most `maximum` turns at once.

    A free turn goes to the waiting caller that has the fewest turns now, of equals to the one that had none for the
    longest time. The jobs of one caller are served in their order, those that have begun before those that have not.
    At most `queue_max` jobs wait to begin, each for at most `queue_seconds`; where one more comes, it is refused, or
    the newest of the caller that has more of them waiting. `fits` says whether a job may begin now; what does not fit
    waits. Belongs to one event loop.
    """

    def __init__(
        self,
        maximum: int,
        *,
        queue_max: int = 1000,
        queue_seconds: float = 30.0,
        fits: Callable[[str, _T], bool] = lambda _caller, _what: True,
    ) -> None:
        self.maximum = maximum
        self.free = maximum
        self._queue_max = queue_max
        self._queue_seconds = queue_seconds
        self._fits = fits
        self._running: Counter[str] = Counter()
        self._queues: dict[str, _Queue[_T]] = {}  # the caller that had none for longest first
        self._begun: dict[str, set[Turn[_T]]] = {}
        self._all_begun = 0
        self.changes = 0
        """Goes up whenever a turn is given, given back or wanted again."""
        self._begins = 0
        self._seconds_between = 0.0
        self._began = 0.0

    @property
    def running(self) -> int:
        """How many turns are taken."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """How many jobs wait to begin."""
        return self._begins

    @property
    def wanted(self) -> bool:
        """Whether a caller waits for a turn."""
        return bool(self._queues)

    @property
    def begun_by_all(self) -> int:
        """How many jobs have begun and not ended."""
        return self._all_begun

    def begun_by(self, caller: str) -> int:
        """Return how many jobs of that caller have begun and not ended."""
        return len(self._begun.get(caller, ()))

    def begun(self) -> Iterator[Turn[_T]]:
        """Give the turn of each job that has begun and not ended, held or not."""
        for turns in self._begun.values():
            yield from turns

    def taken_by(self, caller: str) -> int:
        """Return how many turns that caller has."""
        return self._running[caller]

    def next_caller(self) -> str | None:
        """Return the caller that gets the next turn, or None where none waits that could use one now."""
        return next(filter(self._is_ready, sorted(self._queues, key=self._running.__getitem__)), None)

    @asynccontextmanager
    async def turn(self, caller: str, what: _T, *, nested: bool = False) -> AsyncIterator[Turn[_T]]:
        """Wait for a turn and hold it.

        A `nested` job is waited for by one that has begun, and so is never refused for the length of the queue.
        Raises `Busy`.
        """
        turn = await self._begin(caller, what, nested=nested)
        try:
            yield turn
        finally:
            turn.end()

    def serve(self) -> None:
        """Give free turns to the next callers, as long as one waits that may begin or go on."""
        while self.free > 0 and self._queues and self._serve_one():
            pass

    async def _begin(self, caller: str, what: _T, *, nested: bool) -> Turn[_T]:
        if self.free > 0 and not self._queues and self._fits(caller, what):
            return self._start(caller, what)
        if not nested:
            self._make_room(caller)
        waits = _Begin(what, asyncio.get_running_loop().create_future())
        begins = self._queue(caller).begins
        if nested:
            begins.appendleft(waits)
        else:
            begins.append(waits)
        self._begins += 1
        self.serve()
        try:
            async with asyncio.timeout(self._queue_seconds):
                return await waits.served
        except TimeoutError:
            if not waits.served.cancelled():  # it was decided in the same moment
                return waits.served.result()
            self._forget(caller, waits)
            raise Busy(f"No run could begin for {self._queue_seconds:g} seconds.", self._seconds_to_wait()) from None
        except asyncio.CancelledError:
            if waits.served.cancelled():
                self._forget(caller, waits)
            elif waits.served.exception() is None:  # the turn came in the same moment
                waits.served.result().end()
            raise

    def _start(self, caller: str, what: _T) -> Turn[_T]:
        turn = Turn(self, caller, what)
        self._begun.setdefault(caller, set()).add(turn)
        self._all_begun += 1
        self._given(turn)
        return turn

    def _left(self, turn: Turn[_T]) -> None:
        self._all_begun -= 1
        begun = self._begun[turn.caller]
        begun.discard(turn)
        if not begun:
            del self._begun[turn.caller]

    def _make_room(self, caller: str) -> None:
        """Refuse this job, or the newest that waits of a caller with more of them, where too many wait."""
        if self._begins < self._queue_max:
            return
        most = max(self._queues, key=lambda each: len(self._queues[each].begins))
        own = len(self._queues[caller].begins) if caller in self._queues else 0
        refusal = Busy(f"{self._begins} runs wait to begin already.", self._seconds_to_wait())
        if len(self._queues[most].begins) <= own + 1:
            raise refusal
        newest = self._queues[most].begins[-1]
        self._forget(most, newest)
        if not newest.served.done():
            newest.served.set_exception(refusal)

    def _seconds_to_wait(self) -> float:
        return min(max(1, math.ceil(self._begins * self._seconds_between)), max(1.0, self._queue_seconds))

    def _queue(self, caller: str) -> _Queue[_T]:
        return self._queues.setdefault(caller, _Queue())

    def _tidy(self, caller: str) -> None:
        queue = self._queues.get(caller)
        if queue is not None and not queue.goes_on and not queue.begins:
            del self._queues[caller]

    def _forget(self, caller: str, waits: _Begin[_T]) -> None:
        queue = self._queues.get(caller)
        if queue is not None and waits in queue.begins:
            queue.begins.remove(waits)
            self._begins -= 1
            self._tidy(caller)

    def _given(self, turn: Turn[_T]) -> None:
        self.changes += 1
        self.free -= 1
        self._running[turn.caller] += 1
        turn.held = True
        turn.since = asyncio.get_running_loop().time()

    def _freed(self, caller: str) -> None:
        self.changes += 1
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        self.free += 1
        if caller in self._queues:
            self._queues[caller] = self._queues.pop(caller)
        self.serve()

    def _is_ready(self, caller: str) -> bool:
        queue = self._queues[caller]
        return bool(queue.goes_on) or (bool(queue.begins) and self._fits(caller, queue.begins[0].what))

    def _serve_one(self) -> bool:
        caller = self.next_caller()
        if caller is None:
            return False
        queue = self._queues[caller]
        if queue.goes_on:
            queue.goes_on.popleft()._serve()
        else:
            waits = queue.begins.popleft()
            self._begins -= 1
            if not waits.served.done():  # else it was cancelled a moment ago
                self._note_begin()
                waits.served.set_result(self._start(caller, waits.what))
        self._last_of(caller)
        return True

    def _last_of(self, caller: str) -> None:
        """Let the others that have as many turns be served before this caller is again."""
        self._queues[caller] = self._queues.pop(caller)
        self._tidy(caller)

    def _note_begin(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._began:
            self._seconds_between += (now - self._began - self._seconds_between) * _WEIGHT_OF_NEWEST
        self._began = now


def of_one_caller(places: int) -> int:
    """Return how many places one caller may have: most of all, but never the last ones where there are several."""
    return max(1, places - max(1, places // 4))
