"""Asks upstream servers what tools they have: one at a time of each, shared by all that wait for its answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from ....skills_db.errors import SkillsDbError
from ....tools_registry.errors import ConnectFailed, RegistryError, ServerUnusable, StateUnavailable
from ....tools_registry.sign_in.owners import OPERATOR, SignInOwner
from ...base.errors import HostWorkBusy
from ...base.host_work import Kind, in_thread
from ...governance.shares.shared_bounds import PartLacking, Parts
from .registry_state import SharedLook
from .wiring import Wired

ASK_SECONDS = 20.0
"""How long a search waits for servers that have never said what they have."""

_ASK_AGAIN_SECONDS = 60.0


class Asking:
    """The connections of one tenant in use, and the questions to its servers. Belongs to one event loop."""

    def __init__(self, tenant: str, parts: Parts, shared: SharedLook, take_shared: Callable[[Wired], None]) -> None:
        """`take_shared` reads what other servers of the database found out; it blocks."""
        self._tenant = tenant
        self._parts = parts
        self._shared = shared
        self._take_shared = take_shared
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, server: str) -> bool:
        """Return whether a server is being asked."""
        return server in self._tasks

    def close(self) -> None:
        """Cancel the questions that are under way."""
        for task in self._tasks.values():
            task.cancel()

    @asynccontextmanager
    async def connected(self, wired: Wired, server: str, owner: SignInOwner) -> AsyncIterator[None]:
        """Keep the connections open, and a place among the requests at once to a server. Raises `ConnectFailed`."""
        config = wired.configuration.server(server)
        most = config.max_connections
        with wired.in_use():
            if most is None:
                yield
                return
            name = json.dumps(["upstream", server], ensure_ascii=False)
            seconds = config.connect_timeout_seconds
            try:
                await self._parts.take(name, most, caller=str(owner), wait_seconds=seconds)
            except PartLacking:
                raise ConnectFailed(
                    f"The server {server!r} has {most} requests at work, as many as it may be sent at once "
                    f"(max_connections), and none has ended for {seconds:g} seconds. Nothing was sent; try again in a "
                    "moment."
                ) from None
            except (SkillsDbError, HostWorkBusy) as error:
                raise StateUnavailable(str(error)) from error
            try:
                yield
            finally:
                self._parts.give_back(name)

    def unasked(self, wired: Wired) -> list[str]:
        """Return the servers of which nothing is known, and which were not asked in vain a moment ago."""
        now = asyncio.get_running_loop().time()
        return [
            server
            for server in wired.configuration.enabled
            if not wired.catalog.is_listed(server)
            and not wired.catalog.tools(server=server)
            and now - wired.failed.get(server, (-_ASK_AGAIN_SECONDS, ""))[0] >= _ASK_AGAIN_SECONDS
        ]

    def asked(self, wired: Wired, server: str) -> asyncio.Task[None]:
        """Return the task that asks a server what it has: one at a time, shared by all that wait for it."""
        task = self._tasks.get(server)
        if task is None:
            task = asyncio.create_task(self.ask_quietly(wired, server))
            self._tasks[server] = task
            task.add_done_callback(lambda _task: self._tasks.pop(server, None))
        return task

    async def ask_quietly(self, wired: Wired, server: str, owner: SignInOwner = OPERATOR) -> None:
        """Ask a server what it has with the sign-in of an owner; where that fails, `wired.failed` says why."""
        try:
            async with self._asks_alone(wired, server, owner) as is_asked, self.connected(wired, server, owner):
                if not is_asked:
                    await self.list_tools(wired, server, owner)
        except RegistryError as error:
            wired.failed[server] = (asyncio.get_running_loop().time(), str(error))

    @asynccontextmanager
    async def _asks_alone(self, wired: Wired, server: str, owner: SignInOwner) -> AsyncIterator[bool]:
        """Let one sealab server at a time ask a server that was never listed; yield whether another has listed it."""
        if not self._shared.is_shared or wired.catalog.is_listed(server) or owner != OPERATOR:
            yield False
            return
        name = json.dumps(["ask", self._tenant, server], ensure_ascii=False)
        try:
            await self._parts.take(name, 1, wait_seconds=ASK_SECONDS / 2)
        except (PartLacking, SkillsDbError, HostWorkBusy):
            yield False  # the other one is slow, or there is no knowing: to ask twice does no harm
            return
        try:
            self._shared.expire()
            if await self._shared.has_changed():
                await in_thread(Kind.DATABASE, partial(self._take_shared, wired), charged=False)
            yield wired.catalog.is_listed(server)
        finally:
            self._parts.give_back(name)

    async def list_tools(self, wired: Wired, server: str, owner: SignInOwner) -> None:
        """List the tools of a server that is connected. Raises `RegistryError`."""
        listed = await wired.upstreams.list_tools(server, owner)
        await asyncio.to_thread(wired.catalog.replace_server, server, listed.tools, listed.version, listed.left_out)
        wired.fresh.add(server)
        wired.failed.pop(server, None)

    async def ask(self, wired: Wired, server: str) -> None:
        """Ask a server what it has, or wait for the answer to one who does. Raises `ServerUnusable`."""
        await asyncio.shield(self.asked(wired, server))
        if server in wired.failed:
            reason = wired.failed[server][1]
            raise ServerUnusable(reason)
