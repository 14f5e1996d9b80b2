"""MCP sessions, which the 2025 era has: so many for each caller, and the idlest ends where one more is opened.

An ended session is answered 404, upon which a client initializes a new one (MCP 2025-11-25, Session Management).

A security boundary: `scopes` knows callers without credentials by their session. So an id counts only if it names a
session that is open and was opened with the same credentials. In the protocol of 2026-07-28, which has no sessions, any
other id is taken out of the request; before it, a request with one is answered 404.

Whoever is in a session can answer its questions, cancel its calls and take their answers by sending their ids. So a
token is in it only with at least the rights of every token that was there before: a principal may step up, and a lesser
token of the same principal opens a session of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....base.identity import Right, identity_in
from ....base.telemetry import tracing
from .callers import caller_of, credentials_of, header
from .error_responses import refusal

CALLERS_WORTH = 2
"""How many callers' worth of sessions there may be in all."""
_ID = b"mcp-session-id"
_VERSION = b"mcp-protocol-version"
_RETRY_SECONDS = 5
_NOT_FOUND = 404
_FAILED_FROM = 400


@dataclass(eq=False, slots=True)
class _Session:
    """One session: whose it is, and how many requests and streams are open in it."""

    id: bytes
    credentials: str
    caller: str
    rights: frozenset[Right]
    requests: int = 0
    streams: int = 0
    began: float = field(default_factory=time.monotonic, compare=False)


class McpSessions:
    """An ASGI app before the SDK's: it opens no more than `maximum` sessions for one caller, `CALLERS_WORTH` in all.

    `all_sessions` are those of all tenants of the server, which are bounded together; a tenant adds itself.
    """

    def __init__(self, app: ASGIApp, maximum: int, path: str, *, all_sessions: set[McpSessions] | None = None) -> None:
        self._app = app
        self._maximum = maximum
        self._path = path
        self._sessions: dict[bytes, _Session] = {}
        self._of: dict[str, dict[_Session, None]] = {}  # the idlest first
        self._opening: Counter[str] = Counter()
        self._all = set() if all_sessions is None else all_sessions
        self._all.add(self)
        self.ended = asyncio.Event()
        """Set whenever a session has ended; the waiting task clears it."""

    def alive(self) -> Sequence[str]:
        """Return the names of the sessions that have not ended."""
        return [name.decode("latin-1") for name in self._sessions]

    def has(self, name: str) -> bool:
        """Return whether a session of that name has not ended."""
        return name.encode("latin-1", "replace") in self._sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request in its session, if it has one, or open one."""
        if scope["path"] == f"{self._path}/":  # some clients write it so, and follow no redirect
            scope = {**scope, "path": self._path, "raw_path": self._path.encode()}
        name = header(scope, _ID)
        session = self._named(name, scope)
        version = header(scope, _VERSION)
        if version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope if session is not None else _without_id(scope), receive, send)
            return
        if name is None:
            await self._open(scope, receive, send)
            return
        if session is None:
            await refusal(_NOT_FOUND, "Session not found. Initialize a new one.")(scope, receive, send)
            return
        status = _FAILED_FROM

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        with self._used(session, scope):
            await self._app(scope, receive, watched)
        if status == _NOT_FOUND or (scope["method"] == "DELETE" and status < _FAILED_FROM):
            self._forget(session)

    def _named(self, name: bytes | None, scope: Scope) -> _Session | None:
        """Return the session of that id, if the request was sent with its credentials and no fewer rights."""
        session = None if name is None else self._sessions.get(name)
        rights = _rights_of(scope)
        if session is None or session.credentials != credentials_of(scope) or not rights >= session.rights:
            return None
        session.rights = rights
        return session

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        if scope["method"] != "POST":  # clients that only look whether there is a stream go on after this status
            answer = refusal(405, "There is no stream without a session. Send initialize by POST.")
            answer.headers["Allow"] = "POST"
            await answer(scope, receive, send)
            return
        caller = caller_of(scope)
        if not await self._make_room(caller):
            text = "As many sessions are at work as there may be. Try again in a moment, or close one with DELETE."
            await refusal(503, text, retry_after=_RETRY_SECONDS)(scope, receive, send)
            return
        opened: _Session | None = None

        async def watched(message: Message) -> None:
            nonlocal opened
            if message["type"] == "http.response.start" and message["status"] < _FAILED_FROM and opened is None:
                name = next((value for key, value in message.get("headers", []) if key.lower() == _ID), None)
                if name is not None:
                    opened = _Session(name, credentials_of(scope), caller, _rights_of(scope), requests=1)
                    self._sessions[name] = opened
                    self._of.setdefault(caller, {})[opened] = None
                    self._opening[caller] -= 1
            await send(message)

        self._opening[caller] += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            if opened is None:
                self._opening[caller] -= 1
            else:
                opened.requests -= 1
                self._touch(opened)
            if not self._opening[caller]:
                del self._opening[caller]

    async def _make_room(self, caller: str) -> bool:
        """End idle sessions until one more may be opened; return whether it may."""
        while self._count(caller) >= self._maximum:
            if not await self._end_idlest(caller):
                return False
        while sum(each.count for each in self._all) >= self._maximum * CALLERS_WORTH:
            tenant = max(self._all, key=lambda each: (each.count, each is self))
            if not await tenant._end_one_of_most(caller):
                return False
        return True

    @property
    def count(self) -> int:
        """How many sessions are open, or about to be."""
        return len(self._sessions) + self._opening.total()

    async def _end_one_of_most(self, caller: str) -> bool:
        """End the idlest session of the caller with the most; return whether there was one without work."""
        return await self._end_idlest(max(self._of, key=self._count, default=caller))

    def leave(self) -> None:
        """Count no more among those of all tenants."""
        self._all.discard(self)

    def _count(self, caller: str) -> int:
        return len(self._of.get(caller, ())) + self._opening[caller]

    async def _end_idlest(self, caller: str) -> bool:
        """End the session of a caller that was used longest ago; return whether there was one without work.

        One whose client only listens goes after those with no client at all.
        """
        idle = [each for each in self._of.get(caller, ()) if not each.requests]
        chosen = next((each for each in idle if not each.streams), idle[0] if idle else None)
        if chosen is None:
            return False
        self._forget(chosen)
        await self._end(chosen)
        return True

    async def _end(self, session: _Session) -> None:
        """End a session in the SDK, as its client would."""
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "DELETE",
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(_ID, session.id)],
        }

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unseen(_message: Message) -> None:
            pass

        await self._app(scope, nothing, unseen)

    @contextmanager
    def _used(self, session: _Session, scope: Scope) -> Iterator[None]:
        streams = scope["method"] == "GET"
        session.streams += streams
        session.requests += not streams
        self._touch(session)
        try:
            yield
        finally:
            session.streams -= streams
            session.requests -= not streams
            self._touch(session)

    def _touch(self, session: _Session) -> None:
        """Put a session behind those used before, unless it has ended."""
        if session.id in self._sessions:
            of = self._of[session.caller]
            of.pop(session, None)
            of[session] = None

    def _forget(self, session: _Session) -> None:
        if self._sessions.pop(session.id, None) is None:
            return
        self.ended.set()
        seconds = time.monotonic() - session.began
        tracing.took("mcp.server.session.duration", seconds, {"network.transport": "tcp"})
        of = self._of[session.caller]
        of.pop(session, None)
        if not of:
            del self._of[session.caller]


def _rights_of(scope: Scope) -> frozenset[Right]:
    """Return the rights of a request's token; none where the server authenticates nobody."""
    identity = identity_in(scope)
    return frozenset() if identity is None else identity.rights


def _without_id(scope: Scope) -> Scope:
    """Return a request without the id of a session."""
    return {**scope, "headers": [(key, value) for key, value in scope["headers"] if key != _ID]}
