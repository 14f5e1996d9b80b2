"""Calls upstream tools from a Python program, as this user's sealab is configured: what generated stubs call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar

from ....sandbox.job import Json
from ...base.errors import RequestRefused
from ...base.home import find_home
from ...base.identity import LOCAL_IDENTITY
from .registry import Registry
from .wiring import config_of

_OPEN: ContextVar[Registry | None] = ContextVar("the registry whose servers are kept warm", default=None)


@asynccontextmanager
async def connected(home: str | None = None) -> AsyncIterator[None]:
    """Keep the servers that calls start until the block ends; else each call starts and ends its server."""
    registry = Registry(find_home(home, os.environ))
    token = _OPEN.set(registry)
    try:
        yield
    finally:
        _OPEN.reset(token)
        await registry.close()


async def call_tool(name: str, arguments: Mapping[str, Json]) -> object:
    """Call a tool by its full name and return its structured content, else parsed JSON, else text.

    No user can be asked here: a tool that may write runs where `mcp.json` says `"approve": "never"` for its server.
    Raises `RequestRefused` for others, `RegistryError` and `HostCallError` for a call that fails.
    """
    registry = _OPEN.get()
    if registry is not None:
        return await _called(registry, name, arguments)
    async with connected():
        opened = _OPEN.get()
        assert opened is not None
        return await _called(opened, name, arguments)


async def _called(registry: Registry, name: str, arguments: Mapping[str, Json]) -> object:
    from . import approval, discovery
    from .tool_arguments import checked

    tool = await discovery.found(registry, LOCAL_IDENTITY, name)
    server = config_of(tool, await registry.configuration())
    decision = approval.decide(tool, server)
    if decision is approval.Decision.REFUSE:
        raise RequestRefused(approval.why_refused(tool.name, server))
    if decision is approval.Decision.ASK:
        raise RequestRefused(
            f'{approval.why_unasked(tool, server)} Set "approve": "never" for the server {server.name!r} in mcp.json.'
        )
    given = await asyncio.to_thread(checked, tool, arguments)
    return (await registry.call(tool, given, on_progress=None, keep=None)).value
