"""Whose sign-in a connection uses, and the connections of each.

A security boundary: a connection is made for one owner and never used for another, since the server behind it may keep
a session that belongs to that owner's account.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NewType

from ..configuration import ServerConfig, SignInOf, Transport
from ..errors import ConnectFailed, SignInNeeded

if TYPE_CHECKING:
    from ..upstream.connection import Connection

SignInOwner = NewType("SignInOwner", str)
"""Whose sign-in it is: a text that is compared, and means nothing here."""

OPERATOR = SignInOwner("")
"""The operator's own, and that of a server which wants none."""

OWNED_MAX = 256
"""Connections that are kept for owners other than the operator; of those that no call uses, the oldest ends first."""


class OwnedConnections:
    """The connections of all servers, by owner. All tasks of one event loop may use it."""

    def __init__(self) -> None:
        self._connections: OrderedDict[tuple[str, SignInOwner], Connection] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def get(self, config: ServerConfig, owner: SignInOwner, make: Callable[[], Connection]) -> Connection:
        """Return the connection of an owner to a server, made if need be. Raises `ConnectFailed` where all are in use.

        Whoever gets it uses it before it waits for anything, or it may have ended.
        """
        key = (config.name, owner)
        known = self._connections.get(key)
        if known is not None:
            self._connections.move_to_end(key)
            return known
        if owner != OPERATOR:
            self._make_room(config)
        made = self._connections[key] = make()
        return made

    def _make_room(self, config: ServerConfig) -> None:
        owned = [key for key in self._connections if key[1] != OPERATOR]
        if len(owned) < OWNED_MAX:
            return
        for key in owned:
            link = self._connections[key].link
            if link is None or not link.users:
                task = asyncio.get_running_loop().create_task(self._connections.pop(key).close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
                return
        raise ConnectFailed(
            f"The server {config.name!r} cannot be reached: {OWNED_MAX} connections of callers are in use, which is "
            "as many as may. Call again in a moment."
        )

    def of(self, server: str) -> Iterator[Connection]:
        """Give the connections of a server, the one that was used last first."""
        for name, owner in reversed(tuple(self._connections)):
            if name == server:
                yield self._connections[name, owner]

    async def close(self) -> None:
        """End every connection."""
        await asyncio.gather(*(each.close() for each in tuple(self._connections.values())), *self._closing)


def can_sign_in(config: ServerConfig) -> bool:
    """Return whether calls of a server may be signed as its operator, who can sign in there.

    That is one over HTTP which is called with the operator's sign-in, and has no Authorization header of its own.
    """
    return (
        config.sign_in is SignInOf.OPERATOR
        and config.type in {Transport.HTTP, Transport.SSE}
        and not any(name.lower() == "authorization" for name in config.headers)
    )


def refuse_unowned(config: ServerConfig, owner: SignInOwner) -> None:
    """Raise `SignInNeeded` where a call would go to a server as nobody, or with a sign-in that is not for it."""
    if (config.sign_in is SignInOf.OPERATOR) is not (owner == OPERATOR):
        raise SignInNeeded(
            f"The server {config.name!r} is called with the sign-in of its {config.sign_in}, and this call has none. "
            "Call it from code that a signed-in caller runs."
        )
