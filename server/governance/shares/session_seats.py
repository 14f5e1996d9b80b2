"""Places of sessions over all servers on one database: taken with the first call of a session, kept while it is alive.

A session ends by itself too, when it was idle for long; so it is looked now and then which are alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from ....sandbox.errors import SessionRefused
from ....sandbox.host.repl_sessions import SessionState, shown
from ....sandbox.job import Isolation
from .shared_bounds import PartLacking, Parts

LOOK_SECONDS = 1.0
"""How often it is looked which sessions are alive."""
SPARED_SECONDS = 1.5
"""How long a new session waits until another server gives back what it has to spare."""


class SessionPools(Protocol):
    """Where sessions are alive."""

    def home_of(self, session: str) -> Isolation | None:
        """Return where a session is alive, None where it is not."""

    async def end_session(self, name: str) -> bool:
        """End a session."""

    def sessions_of(self, caller: str) -> list[tuple[Isolation, SessionState]]:
        """Return the sessions of a caller."""


@dataclass(frozen=True, slots=True)
class SessionBound:
    """One bound: the name of what is shared, how many there may be, and the setting that says so."""

    name: str
    most: int
    setting: str


@dataclass(slots=True, eq=False)
class _Held:
    """The place of one session."""

    caller: str
    pools: SessionPools
    names: list[str] = field(default_factory=list)
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class SessionSeats:
    """The places that the sessions of one tenant have here. Belongs to one event loop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._held: dict[str, _Held] = {}
        self._looking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def place(
        self, caller: str, session: str, pools: SessionPools, bounds: Sequence[SessionBound]
    ) -> AsyncIterator[None]:
        """Hold a place for a session while a call is at work in it, and after it as long as the session is alive.

        Where none is left, an idle session of the caller here ends for it. Raises `SessionRefused` where there is none.
        """
        held = self._held.setdefault(session, _Held(caller, pools))
        held.users += 1
        try:
            async with held.taking:
                for bound in bounds[len(held.names) :]:
                    await self._take(held, session, bound)
            yield
        finally:
            held.users -= 1
            self._free_if_ended(session, held)
            if self._held and (self._looking is None or self._looking.done()):
                self._looking = asyncio.create_task(self._keep_looking())

    def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _take(self, held: _Held, session: str, bound: SessionBound) -> None:
        while True:
            try:
                await self._parts.take(bound.name, bound.most, caller=held.caller, wait_seconds=SPARED_SECONDS)
            except PartLacking:
                if not await self._end_idlest(held.caller, session):
                    raise SessionRefused(
                        f"{bound.most} sessions are alive on all servers together, as many as may be "
                        f"({bound.setting}), and none of yours here is idle. Use one that is there, leave out "
                        "`session`, or wait until one has ended."
                    ) from None
            else:
                held.names.append(bound.name)
                return

    async def _end_idlest(self, caller: str, but: str) -> bool:
        """End the session of a caller that was idle for the longest; return whether there was one."""
        for name, held in sorted(self._held.items(), key=lambda each: -_idle_seconds(*each)):
            if held.caller == caller and name != but and not held.users and held.names:
                await held.pools.end_session(name)
                self._free_if_ended(name, held)
                return True
        return False

    def _free_if_ended(self, session: str, held: _Held) -> None:
        if not held.users and held.pools.home_of(session) is None and self._held.get(session) is held:
            del self._held[session]
            for name in held.names:
                self._parts.give_back(name)

    async def _keep_looking(self) -> None:
        while self._held:
            await asyncio.sleep(LOOK_SECONDS)
            for session, held in list(self._held.items()):
                self._free_if_ended(session, held)


def _idle_seconds(session: str, held: _Held) -> float:
    own = (state for _, state in held.pools.sessions_of(held.caller) if state.name == shown(session))
    return next((state.idle_seconds or 0.0 for state in own), 0.0)
