"""The host functions that speak of runs: how far one is, and which sessions its caller has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol, cast

from ...sandbox.errors import HostCallError
from ...sandbox.host.pools import Pools
from ...sandbox.job import Json
from ..errors import RequestRefused, ServerError
from ..journal.changes import MADE_HERE, Change
from ..journal.journal import Journal
from ..scopes import session_of
from .broker import Arguments, Calls, Handler

MESSAGE_CHARS_MAX = 200
"""Characters of a message about progress."""

_CLOSE = "close_session"
_TEXT = (str,)


class OtherServers(Protocol):
    """The sessions that other servers of the same sealab have; see `runs.executor.Places`."""

    async def listed(self, scope: str) -> Sequence[Mapping[str, Json]]:
        """Return those of a scope, as `list_sessions` does."""
        ...

    async def close(self, session: str) -> bool:
        """End one, as the sandbox names it; return whether it was there."""
        ...


def handlers(pools: Pools, journal: Journal, others: OtherServers | None = None) -> Mapping[str, Handler]:
    """Return what answers for runs and sessions, by name."""
    return {
        "progress": Handler(
            _progress,
            {"fraction": (int, float), "message": _TEXT},
            frozenset({"fraction", "message"}),
            {"message": MESSAGE_CHARS_MAX},
        ),
        "list_sessions": Handler(partial(_list_sessions, pools, others), {}, frozenset()),
        _CLOSE: Handler(
            partial(_close_session, pools, journal, others), {"name": _TEXT}, frozenset({"name"}), changes=_closes
        ),
    }


def _closes(_arguments: Arguments) -> Change:
    return MADE_HERE


async def _progress(calls: Calls, arguments: Arguments) -> Json:
    fraction = cast("float", arguments["fraction"])
    if not 0 <= fraction <= 1:
        raise HostCallError("progress() takes a number from 0 to 1. Write done / total.", type="ValueError")
    if calls.report_progress is not None:
        calls.report_progress(fraction, cast("str", arguments["message"]))
    return None


def sessions_told(pools: Pools, scope: str) -> list[dict[str, Json]]:
    """Return the sessions of a scope that this server has, as code gets them."""
    return [
        {"name": each.name, "isolation": isolation.value, "calls": each.calls, "idle_seconds": each.idle_seconds}
        for isolation, each in pools.sessions_of(scope)
    ]


async def _list_sessions(pools: Pools, others: OtherServers | None, calls: Calls, _arguments: Arguments) -> Json:
    found: list[Mapping[str, Json]] = [*sessions_told(pools, calls.caller.scope)]
    if others is not None:
        try:
            found += await others.listed(calls.caller.scope)
        except ServerError as error:
            raise HostCallError(str(error), type="OSError") from error
    closed = _closed_dry(calls)
    return cast(
        "Json", sorted((each for each in found if each["name"] not in closed), key=lambda each: str(each["name"]))
    )


async def _close_session(
    pools: Pools, journal: Journal, others: OtherServers | None, calls: Calls, arguments: Arguments
) -> Json:
    name = cast("str", arguments["name"])
    try:
        session = session_of(calls.caller.scope, name)
    except RequestRefused as error:
        raise HostCallError(str(error), type="ValueError") from error
    if not calls.dry_run:
        was_alive = pools.close_session(session)
        if others is not None and not was_alive:
            try:
                was_alive = await others.close(session)
            except ServerError as error:
                raise HostCallError(str(error), type="OSError") from error
        could_be_rebuilt = await journal.close_session(calls.caller.scope, name)
        return was_alive or could_be_rebuilt
    is_there = pools.home_of(session) is not None
    if others is not None and not is_there:
        listed = await _list_sessions(pools, others, calls, {})
        is_there = any(each["name"] == name for each in cast("list[Mapping[str, Json]]", listed))
    is_there = is_there and name not in _closed_dry(calls)
    if is_there:
        calls.log.note_dry(_CLOSE, {"name": name})
    return is_there


def _closed_dry(calls: Calls) -> set[Json]:
    """Return the sessions that a dry run would have ended."""
    noted = [each["arguments"] for each in calls.log.dry if each["tool"] == _CLOSE]
    return {cast("Mapping[str, Json]", arguments)["name"] for arguments in noted}
