"""Connections: as many as there are descriptors for, each with a time by which the peer has to have sent or read.

A security boundary against peers that connect and do nothing, send half of a request, or do not read their answer.
uvicorn itself has no time-out for a header or a body, and its `limit_concurrency` answers without `Retry-After`, once
the header has been read: who sends none keeps the place.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_LOG = logging.getLogger(__name__)
CONNECTIONS_MAX = 4096
"""What each connection holds adds up: with its buffers about 100 KB where something is being sent."""
_CONNECTIONS_MIN = 16
ACCEPTED_AT_ONCE = 8
"""asyncio accepts so many in each round of its loop, and a connection is counted two rounds later."""
_LISTENED_TO_SHARE = 4
"""For so many connections one more that is turned away is listened to; those beyond are closed, whatever they send."""
_LEFT_ALONE_SECONDS = 1.0
"""How long a connection may wait for its peer before it can be closed in favour of another."""
_TURNED_AWAY_SECONDS = 1.0
_LOG_SECONDS = 60.0
_RETRY_SECONDS = 1
_BUSY = b"As many connections are open as the server may hold. Try again in a moment, or close those you do not use."
_SLOW = b"The request took too long to arrive. Send it again, faster or in parts."


def connections_max() -> int:
    """Return how many connections there may be: half of the descriptors, since each run that is alive needs some."""
    try:
        soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return _CONNECTIONS_MIN
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else max(_CONNECTIONS_MIN, min(CONNECTIONS_MAX, soft // 2))


@dataclass(slots=True)
class HttpBounds:
    """What the connections of one server share."""

    maximum: int
    receive_seconds: float
    """How long a header may take, and after it a body."""
    send_seconds: float = 30.0
    """How long a peer may go without reading anything of what is sent to it."""
    silent: dict[HttpConnection, float] = field(default_factory=dict)
    """The connections that await a request, and since when: longest first."""
    turned_away: set[TurnedAway] = field(default_factory=set)
    logged: float = float("-inf")

    def protocol(self) -> type[asyncio.Protocol]:
        """Return what makes a connection, for uvicorn."""
        return cast("type[asyncio.Protocol]", partial(HttpConnection, self))


class HttpConnection(H11Protocol):
    """One connection within its bounds."""

    def __init__(self, bounds: HttpBounds, **given: Any) -> None:
        super().__init__(**given)
        self._bounds = bounds
        self._awaited: object = None
        self._clock: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Take a connection, or turn it away."""
        if len(self.connections) >= self._bounds.maximum and not self._make_room():
            self._turn_away(transport)
            return
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        self._await(None)
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what was sent."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Await the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Wait for the peer to read."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Go on writing."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _watch(self) -> None:
        """Set the clock for what the peer has to send next."""
        state = self.conn.their_state
        self._await(state if state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing() else None)

    def _await(self, awaited: object) -> None:
        if awaited is self._awaited:
            return
        self._awaited = awaited
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        self._bounds.silent.pop(self, None)
        if awaited is not None:
            self._clock = self.loop.call_later(self._bounds.receive_seconds, self._break_off)
        if awaited is h11.IDLE:
            self._bounds.silent[self] = self.loop.time()

    def _break_off(self) -> None:
        """Close the connection, with a word where a request had begun to arrive and is not answered."""
        self._await(None)
        if self.transport.is_closing():
            return
        begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        if begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_answer("408 Request Timeout", _SLOW))
        self.transport.close()

    def _make_room(self) -> bool:
        """Close the connection that awaits a request for longest; return whether there was one."""
        longest = next(iter(self._bounds.silent.items()), None)
        if longest is None or self.loop.time() - longest[1] < _LEFT_ALONE_SECONDS:
            return False
        longest[0]._break_off()
        self.connections.discard(longest[0])
        return True

    def _turn_away(self, transport: asyncio.Transport) -> None:
        bounds = self._bounds
        if self.loop.time() - bounds.logged > _LOG_SECONDS:
            bounds.logged = self.loop.time()
            _LOG.warning("Connections are turned away: %d are open, which is the most.", bounds.maximum)
        if len(bounds.turned_away) < bounds.maximum // _LISTENED_TO_SHARE:
            transport.set_protocol(TurnedAway(bounds, transport))
        else:
            transport.set_protocol(asyncio.Protocol())
            transport.write(_TURNED_AWAY)
            transport.close()

    def _await_reader(self) -> None:
        left = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() >= left:
                self.transport.abort()
            else:
                self._await_reader()

        self._unread = self.loop.call_later(self._bounds.send_seconds, look)


class TurnedAway(asyncio.Protocol):
    """A connection too many: it gets an answer that says so and is closed.

    What its peer sends is read and dropped for a moment: closing with something unread resets the connection (RFC 9112,
    9.6), and the answer may be lost with it.
    """

    def __init__(self, bounds: HttpBounds, transport: asyncio.Transport) -> None:
        self._bounds = bounds
        bounds.turned_away.add(self)
        transport.write(_TURNED_AWAY)
        if transport.can_write_eof():  # TLS knows no half-closed connection
            transport.write_eof()
        self._closing = asyncio.get_running_loop().call_later(_TURNED_AWAY_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class names it
        """Forget it."""
        self._closing.cancel()
        self._bounds.turned_away.discard(self)


def _answer(status: str, text: bytes, headers: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + text


_TURNED_AWAY = _answer("503 Service Unavailable", _BUSY, f"Retry-After: {_RETRY_SECONDS}\r\n")
