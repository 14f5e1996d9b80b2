"""Names the attached servers in the description of `execute_code` and in the instructions, in both protocol eras.

The words are the same from one request to the next, so that a client's prompt cache holds, and change with the servers
alone; then clients are notified that the list of tools changed. When skills have changed, which clients read as
resources, they are notified that the list of resources did. The list of prompts never changes. Whichever server made a
change, the clients of every server on the same database are notified.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ToolsListChanged
from pydantic import BaseModel

from ...governance.caller import Caller
from ...governance.scopes import caller_of
from ...use_cases.upstream_tools.registry import Registry
from .strict_tool import StrictTool

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

_LIST = "tools/list"
_SUBSCRIBE = "subscriptions/listen"
_RESOURCES = frozenset({"resources/list", "skills/list"})
_GREETINGS = frozenset({"initialize", "server/discover"})
_TOGETHER_SECONDS = 0.1
"""Changes of skills within so long make one notification."""
_MODERN_SINCE = "2026-07-28"
"""The first version of the protocol in which clients subscribe to changes."""


class AttachedServers:
    """A middleware of the SDK that puts the attached servers into what describes sealab."""

    def __init__(self, registry: Registry, tool: StrictTool, skills: Callable[[Caller], Awaitable[str]]) -> None:
        """Make it; `skills` returns the lines on skills that a new conversation gets."""
        self.bus = InMemorySubscriptionBus()
        """Carries changes to clients that subscribed to them."""
        self._registry = registry
        self._skills = skills
        self._tool = tool
        self._described = tool.description
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._resource_connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._watched = False
        self._telling: set[asyncio.Task[None]] = set()
        self._tells_soon = False

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Bring the description up to date before tools are listed; add to the instructions of a greeting."""
        if ctx.method in _RESOURCES and ctx.protocol_version < _MODERN_SINCE:
            self._resource_connections.add(ctx.session._connection)
        if ctx.method == _SUBSCRIBE:  # perhaps of a client that listed the tools by another server
            self._watch()
        if ctx.method != _LIST and ctx.method not in _GREETINGS:
            return await call_next(ctx)
        servers = await self._registry.overview(caller_of(ctx).identity)
        self._watch()
        if ctx.method == _LIST:
            # Nothing is waited for until the tools are listed: nobody else's words get in between.
            self._tool.description = f"{self._described} Servers: {servers}." if servers else self._described
            if ctx.protocol_version < _MODERN_SINCE:
                self._connections.add(ctx.session._connection)  # it outlives the request, and says so nowhere else
            return await call_next(ctx)
        answer = await call_next(ctx)
        greeting = answer
        if isinstance(answer, BaseModel):
            greeting = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        if not isinstance(greeting, dict):
            return answer
        return _with(greeting, servers, await self._skills(caller_of(ctx)))

    def skills_changed(self) -> None:
        """Notify every client that listed the skills or subscribed to changes; returns at once."""
        if not self._tells_soon:
            self._tells_soon = True
            task = asyncio.create_task(self._tell_of_skills())
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def _watch(self) -> None:
        if not self._watched:
            self._watched = True
            self._registry.watch_overview(self._notify_clients)

    async def _notify_clients(self) -> None:
        await self.bus.publish(ToolsListChanged())
        await _notify_each(self._connections, lambda connection: connection.send_tool_list_changed())

    async def _tell_of_skills(self) -> None:
        await asyncio.sleep(_TOGETHER_SECONDS)
        self._tells_soon = False  # a change from here on makes another notification
        await self.bus.publish(ResourcesListChanged())
        await _notify_each(self._resource_connections, lambda connection: connection.send_resource_list_changed())


async def _notify_each(connections: weakref.WeakSet[Connection], tell: Callable[[Connection], Awaitable[None]]) -> None:
    for connection in list(connections):
        with suppress(Exception):  # it may have closed
            await tell(connection)


def _with(greeting: dict[str, Any], servers: str, skills: str) -> dict[str, Any]:
    """Return a greeting that names servers and skills, and says which lists clients are notified of changes of."""
    capabilities = greeting.get("capabilities", {})
    tools = {**capabilities.get("tools", {}), "listChanged": True}
    resources = {**capabilities.get("resources", {}), "listChanged": True}
    extended = {**greeting, "capabilities": {**capabilities, "tools": tools, "resources": resources}}
    lines = [f"\nAttached servers: {servers}.\n" if servers else "", f"\n{skills}\n" if skills else ""]
    if any(lines):
        extended["instructions"] = f"{greeting.get('instructions', '')}{''.join(lines)}"
    return extended
