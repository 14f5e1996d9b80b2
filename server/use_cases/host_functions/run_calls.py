"""The host functions that speak of runs: how far one is, and which sessions its caller has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from ....sandbox.errors import HostCallError
from ....sandbox.host.pools import Pools
from ....sandbox.job import Json
from ...base.host_call import MADE_HERE
from ...governance.scopes import session_of
from ..journal.journal import Journal
from .broker import Calls, host_function

MESSAGE_CHARS_MAX = 200
"""Characters of a message about progress."""
_CLOSE = "close_session"


class OtherServers(Protocol):
    """The sessions that other servers of the same sealab have; see `runs.executor.Places`."""

    async def listed(self, scope: str) -> Sequence[Mapping[str, Json]]:
        """Return those of a scope, as `list_sessions` does."""
        ...

    async def close(self, session: str) -> bool:
        """End one, as the sandbox names it; return whether it was there."""
        ...


def sessions_json(pools: Pools, scope: str) -> list[dict[str, Json]]:
    """Return the sessions of a scope that this server has, as code gets them."""
    return [
        {"name": each.name, "isolation": isolation.value, "calls": each.calls, "idle_seconds": each.idle_seconds}
        for isolation, each in pools.sessions_of(scope)
    ]


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Answers for runs and sessions, of which `others` may have some."""

    pools: Pools
    journal: Journal
    others: OtherServers | None = None

    @host_function(longest={"message": MESSAGE_CHARS_MAX})
    async def progress(self, calls: Calls, *, fraction: float, message: str) -> None:
        """Report how far the code is."""
        if not 0 <= fraction <= 1:
            raise HostCallError("progress() takes a number from 0 to 1. Write done / total.", type="ValueError")
        if calls.report_progress is not None:
            calls.report_progress(fraction, message)

    @host_function()
    async def list_sessions(self, calls: Calls) -> Json:
        """Return the caller's sessions, on every server."""
        return cast("Json", await self._listed(calls))

    @host_function(changes=MADE_HERE)
    async def close_session(self, calls: Calls, *, name: str) -> bool:
        """End a session and return whether there was one; a dry run notes it down."""
        session = session_of(calls.caller.scope, name)
        if not calls.dry_run:
            was_alive = self.pools.close_session(session)
            if self.others is not None and not was_alive:
                was_alive = await self.others.close(session)
            could_be_rebuilt = await self.journal.close_session(calls.caller.scope, name)
            return was_alive or could_be_rebuilt
        is_there = any(each["name"] == name for each in await self._listed(calls))
        if is_there:
            calls.log.note_dry(_CLOSE, {"name": name})
        return is_there

    async def _listed(self, calls: Calls) -> list[Mapping[str, Json]]:
        found: list[Mapping[str, Json]] = [*sessions_json(self.pools, calls.caller.scope)]
        if self.others is not None:
            found += await self.others.listed(calls.caller.scope)
        closed = _closed_dry(calls)
        return sorted((each for each in found if each["name"] not in closed), key=lambda each: str(each["name"]))


def _closed_dry(calls: Calls) -> set[Json]:
    noted = [each["arguments"] for each in calls.log.dry if each["tool"] == _CLOSE]
    return {cast("Mapping[str, Json]", arguments)["name"] for arguments in noted}
