"""Security boundary: the catalog as each caller is shown it. What the policy hides of it is not there for that caller.

A tool that a caller may not call, and a server of which it may call none, are left out before anything is looked up,
listed, counted or searched, so that no answer and no time that one takes depends on whether they exist.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....tools_registry.models import Tool
from ...base.host_work import Kind, checked, in_thread
from ...base.identity import Identity
from ...base.lru import Lru
from ...governance.policy.access import ALLOWED, Decider, Ruling, call_access
from .tool_rules import READ_RESOURCE, resource_reader, shows

if TYPE_CHECKING:
    from ....tools_registry.catalog import Catalog
    from ....tools_registry.configuration import ServerConfig
    from ....tools_registry.models import Json
    from .wiring import Wired

CALLERS_KEPT = 1024
"""Callers whose view is kept; those who see the same share one."""
_EFFECTS: tuple[Mapping[str, Json], ...] = (
    {"readOnlyHint": True},
    {"readOnlyHint": False, "destructiveHint": False},
    {"readOnlyHint": False, "destructiveHint": True},
)
"""What a tool may say of itself that is not known yet."""


class Views:
    """What a policy shows of a catalog to each caller."""

    def __init__(self, policy: Decider) -> None:
        self._policy = policy
        self._state: tuple[object, ...] = ()
        self._of_callers: Lru[Identity, Catalog] = Lru(CALLERS_KEPT)
        self._of_contents: weakref.WeakValueDictionary[tuple[frozenset[str], ...], Catalog] = (
            weakref.WeakValueDictionary()
        )

    async def of(self, who: Identity, wired: Wired) -> Catalog:
        """Return what a caller is shown; without a policy that is the catalog itself."""
        if not self._policy.governs:
            return wired.catalog
        caller = Identity(who.tenant, who.principal, who.rights)
        state = (wired, wired.catalog.revision, self._policy.version)
        if self._state != state:
            self._of_callers.clear()
            self._of_contents.clear()
            self._state = state
        found = self._of_callers.used(caller)
        if found is None:
            found = await in_thread(Kind.SEARCH, lambda: self._made(caller, wired), charged=False)
            if self._state != state:
                return found
            self._of_callers[caller] = found
        return found

    def _made(self, who: Identity, wired: Wired) -> Catalog:
        tools = [
            tool
            for tool in checked(wired.catalog.tools(), every=8)
            if shows(self._policy, who, tool, wired.configuration)
        ]
        with_tools = {tool.server for tool in tools}
        servers = frozenset(
            name for name in wired.catalog.servers() if name in with_tools or self.shows_server(who, name, wired)
        )
        contents = (frozenset(tool.full_name for tool in tools), servers)
        found = self._of_contents.get(contents)
        if found is None:
            found = wired.catalog.showing(tools, servers)
            self._of_contents[contents] = found
        return found

    def shows_server(self, who: Identity, server: str, wired: Wired) -> bool:
        """Return whether a caller is shown a server of which it sees no tool: it may read its resources.

        Of a server whose tools are not known, it counts whether a tool of that name might be called.
        """
        if not self._policy.governs:
            return True
        config = wired.configuration.servers.get(server)
        if wired.catalog.tools(server=server):
            return self._policy.decide(who, call_access(resource_reader(server), config)).allowed
        return self._at_best(who, server, READ_RESOURCE, config).allowed

    def ruling_of(self, who: Identity, server: str | None, name: str, wired: Wired) -> Ruling:
        """Return what the policy says at best of a tool that a name means, whether or not there is one.

        `server` is the one whose name stands before it. Without one it takes as long.
        """
        if not self._policy.governs:
            return ALLOWED
        if server is None:
            prefix, _, tool = name.partition(".")
            return self._at_best(who, prefix, tool, None)
        return self._at_best(who, server, wired.tool_named(server, name), wired.configuration.enabled[server])

    def _at_best(self, who: Identity, server: str, tool: str, config: ServerConfig | None) -> Ruling:
        """Return what the policy says of a tool of that name at best, whatever it says that it does."""
        category = (None if config is None else config.category) or server
        rulings = [
            self._policy.decide(who, call_access(Tool(tool, server, category, annotations=effects), config))
            for effects in _EFFECTS
        ]
        return next((each for each in rulings if each.allowed), rulings[0])
