"""How one server sends a request to another: sealed, one hop, streaming, and with what is known where it fails."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from ....tools_registry.http_bodies import BodyTooLarge, bounded_body
from ...governance.rights import REPLICA_PATH as PATH
from .seals import ANSWER_HEADER, ERA_HEADER, FIRST_ERA, HEADER, answer_mark, sealed

if TYPE_CHECKING:
    from ....skills_db.replicas import ReplicaRow
    from .membership import Membership
    from .replica_keys import ReplicaKeys

CONNECT_SECONDS = 2.0
"""How long another server may take to accept a connection."""
REACH_SECONDS = 5.0
"""How long it may take to answer before it is sent anything that must not be lost."""
SILENT_SECONDS = 45.0
"""How long a request that another server works on may go without a word: each stream has one every 15 seconds."""
RUN_SILENT_SECONDS = 25.0
"""The same for a program, whose server says something every 10 seconds, and at once when it takes it."""
HEARD_SECONDS = 1.0
"""For how long a server that has answered counts as one that can be reached."""
ASK_SECONDS = 5.0
"""How long a short question may take."""
_KEEPALIVE_SECONDS = 3.0
"""How long an idle connection is kept, which is less than the 5 seconds after which uvicorn closes it."""
_CONNECTIONS_MAX = 4096
"""Each serves one request of a client, of which `connections.CONNECTIONS_MAX` are open at most: here nobody waits."""
_ANSWER_BYTES_MAX = 16 * 1024 * 1024
"""The longest answer to a short question."""
_FAILED_FROM = 400
_OK, _CONFLICT, _MISDIRECTED, _UNAVAILABLE = 200, 409, 421, 503
_ERA = re.compile("[0-9a-f]{16}")


class PeerUnreached(Exception):
    """Another server did not get a request: nothing of it was begun."""


class PeerRefused(PeerUnreached):
    """What answers at the address of a server is none, or another one, or is stopping: nothing was begun."""


class PeerLost(Exception):
    """Another server got a request, and whether it did what that asks for is not known."""


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """The answer of another server, whose body is still to come."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: AsyncIterator[bytes]


class PeerLink:
    """The connections to the other servers. Belongs to one event loop; made at the first request."""

    def __init__(self, membership: Membership, keys: ReplicaKeys) -> None:
        self._membership = membership
        self._keys = keys
        self._made: dict[bool, httpx2.AsyncClient] = {}
        """That of calls, and that of streams that stay open: thousands of these must not slow each call."""
        self._heard: dict[str, float] = {}
        self._eras: dict[str, str] = {}
        """Those of servers that have begun a new one; see `seals`."""

    async def reach(self, peer: ReplicaRow) -> None:
        """Return once another server is known to answer, which a stopped one does not, though it takes connections.

        What is then sent to it is unlikely to be lost. Raises `PeerUnreached`.
        """
        if time.monotonic() - self._heard.get(peer.id, float("-inf")) < HEARD_SECONDS:
            return
        try:
            await self.ask(peer, {"kind": "still"}, seconds=REACH_SECONDS)
        except PeerLost as error:
            raise PeerUnreached(str(error)) from error

    def warm(self) -> None:
        """Load what connections need, which takes a while. Blocks."""
        for streams in (False, True):
            self._client(streams=streams)

    async def close(self) -> None:
        """Close the connections."""
        for each in self._made.values():
            await each.aclose()

    @asynccontextmanager
    async def sent(
        self,
        peer: ReplicaRow,
        method: str,
        head: Mapping[str, object],
        body: bytes = b"",
        *,
        silent_seconds: float = SILENT_SECONDS,
    ) -> AsyncIterator[PeerAnswer]:
        """Send a request, what it is about in its `head`, and give the answer; at the end the connection is given back.

        Raises `PeerUnreached`, `PeerRefused` or `PeerLost`, the last from reading the body too.
        """
        content = json.dumps(head, separators=(",", ":")).encode("utf-8") + b"\n" + body
        response = await self._answered(peer, method, content, silent_seconds)
        if (era := _new_era(response)) is not None:  # nothing was begun
            await response.aclose()
            self._eras[peer.id] = era
            response = await self._answered(peer, method, content, silent_seconds)
        self._heard[peer.id] = time.monotonic()
        try:
            if response.status_code == _MISDIRECTED or _is_stopping(response):
                raise PeerRefused(f"The server at {peer.address} is not {peer.id}, or stops.")
            if _new_era(response) is not None:
                raise PeerUnreached(f"The server at {peer.address} takes no seal, since the clock goes back.")
            yield PeerAnswer(response.status_code, response.headers.raw, _body(response, peer))
        finally:
            await response.aclose()

    async def _answered(self, peer: ReplicaRow, method: str, content: bytes, silent_seconds: float) -> httpx2.Response:
        now = self._membership.now()
        if now is None:
            raise PeerUnreached("The time of the database is not known yet.")
        seal = sealed(
            self._keys.seal,
            sender=self._membership.id,
            to=peer.id,
            now=now,
            method=method,
            path=PATH,
            body=content,
            era=self._eras.get(peer.id, FIRST_ERA),
        )
        client = self._client(streams=method == "GET")
        request = client.build_request(
            method,
            peer.address + PATH,
            content=content,
            headers={HEADER: seal, "content-type": "application/octet-stream"},
            timeout=httpx2.Timeout(silent_seconds, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise PeerUnreached(f"{type(error).__name__} at {peer.address}") from error
        except httpx2.HTTPError as error:
            raise PeerLost(f"{type(error).__name__} at {peer.address}") from error
        if response.status_code < _FAILED_FROM and not self._is_marked(seal, response):
            await response.aclose()
            raise PeerLost(f"What answers at {peer.address} is not {peer.id}.")
        return response

    def _is_marked(self, seal: str, response: httpx2.Response) -> bool:
        right = answer_mark(self._keys.seal, seal, response.status_code)
        return hmac.compare_digest(response.headers.get(ANSWER_HEADER, "").encode(), right.encode())

    async def ask(
        self, peer: ReplicaRow, question: Mapping[str, object], *, seconds: float = ASK_SECONDS
    ) -> Mapping[str, Any]:
        """Ask a short question and return the answer. Raises as `sent`, and `PeerLost` where there is none in time."""
        try:
            async with asyncio.timeout(seconds), self.sent(peer, "POST", question) as answer:
                said = await bounded_body(answer.body, _ANSWER_BYTES_MAX)
                if answer.status != _OK:
                    raise PeerLost(f"The server at {peer.address} answers with the status {answer.status}.")
        except BodyTooLarge:
            raise PeerLost(f"The answer of the server at {peer.address} is too long.") from None
        except TimeoutError:
            raise PeerLost(f"The server at {peer.address} does not answer in {seconds:g} seconds.") from None
        try:
            found = json.loads(said)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise PeerLost(f"The answer of the server at {peer.address} is not a JSON object.")
        return found

    def _client(self, *, streams: bool) -> httpx2.AsyncClient:
        if streams not in self._made:
            self._made[streams] = httpx2.AsyncClient(
                follow_redirects=False,
                trust_env=False,
                limits=httpx2.Limits(max_connections=_CONNECTIONS_MAX, keepalive_expiry=_KEEPALIVE_SECONDS),
                headers={"Accept-Encoding": "identity"},
            )
        return self._made[streams]


def _is_stopping(response: httpx2.Response) -> bool:
    """Return whether a server takes nothing new: it says so before it begins anything."""
    return response.status_code == _UNAVAILABLE and HEADER in response.headers


def _new_era(response: httpx2.Response) -> str | None:
    """Return the era that a server has begun, where it took nothing for that."""
    era = response.headers.get(ERA_HEADER, "")
    return era if response.status_code == _CONFLICT and _ERA.fullmatch(era) else None


async def _body(response: httpx2.Response, peer: ReplicaRow) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_raw():
            yield piece
    except httpx2.HTTPError as error:
        raise PeerLost(f"{type(error).__name__} at {peer.address}") from error
