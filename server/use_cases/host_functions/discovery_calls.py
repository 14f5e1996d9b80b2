"""The host functions that find upstream tools: the same answers as the MCP tools give, since both ask `discovery`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast

from ....sandbox.job import Json
from ..upstream_tools import discovery
from ..upstream_tools.registry import Registry
from .broker import Calls, host_function

_NAMES_MAX = 20
_LONGEST = {"query": 4 * 1024 * 1024}
"""As long as what code sends may be; searched for is its beginning."""


@dataclass(frozen=True, slots=True)
class DiscoveryCalls:
    """Answers what is asked about upstream tools.

    Where everything is filtered (`filters`), code may search for what its model must not see: that is not remembered.
    """

    registry: Registry
    filters: bool

    @host_function(waits=True, longest=_LONGEST)
    async def search_tools(
        self,
        calls: Calls,
        *,
        query: str,
        category: str | None = None,
        detail_level: str = "summary",
        limit: int | None = None,
    ) -> Json:
        """Return the tools that fit a query."""
        return await discovery.search(
            self.registry,
            calls.caller.identity,
            query,
            category=category,
            detail_level=detail_level,
            limit=limit,
            asked_by=None if self.filters else calls.caller.scope,
        )

    @host_function(waits=True)
    async def get_tool_definition(
        self, calls: Calls, *, tool_name: str, category: str | None = None, detail_level: str = "full"
    ) -> Json:
        """Return what is known of a tool."""
        who = calls.caller.identity
        return await discovery.definition(self.registry, who, tool_name, category=category, detail_level=detail_level)

    @host_function(waits=True)
    async def list_servers(self, calls: Calls) -> Json:
        """Return every server."""
        return await discovery.servers(self.registry, calls.caller.identity)

    @host_function(waits=True)
    async def list_names(self, calls: Calls, *, server: str | None = None) -> Json:
        """Return the names by which code finds servers, or the tools of one."""
        return await discovery.names(self.registry, calls.caller.identity, server)

    @host_function(waits=True)
    async def named_servers(self, calls: Calls, *, names: Mapping[str, Json]) -> Json:
        """Return which names mean servers."""
        few = dict(islice(names.items(), _NAMES_MAX))
        return await discovery.named_servers(self.registry, calls.caller.identity, few)

    @host_function(waits=True)
    async def list_tools(
        self, calls: Calls, *, server: str | None, tool: str | None = None, detail_level: str = "summary"
    ) -> Json:
        """Return the tools of a server, or of all."""
        who = calls.caller.identity
        return await discovery.tools_of(self.registry, who, server, tool=tool, detail_level=detail_level)

    @host_function(waits=True)
    async def describe_server(self, calls: Calls, *, server: str) -> Json:
        """Return a server with its tools."""
        return await discovery.server(self.registry, calls.caller.identity, server)

    @host_function(waits=True)
    async def describe_servers(self, calls: Calls) -> Json:
        """Return every server with its tools."""
        return cast("Json", await discovery.servers_with_tools(self.registry, calls.caller.identity))

    @host_function(waits=True)
    async def capability_summary(self, calls: Calls) -> Json:
        """Return which servers there are."""
        return await discovery.summary(self.registry, calls.caller.identity)
