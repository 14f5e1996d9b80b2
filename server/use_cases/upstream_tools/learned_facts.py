"""What is learned of tools while they are searched and called, kept for later, and for other servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ....sandbox.wire.bounded_json import is_light
from ....tools_registry.upstream.results import says_shape
from ...base.database import Opening
from ...base.errors import HostWorkRefused
from ...base.host_work import Kind, ended_within, in_thread
from ...base.lru import Lru
from .registry_state import RegistryState, SharedLook

if TYPE_CHECKING:
    from ....tools_registry.describing.learned import LearnedTypes
    from ....tools_registry.models import Json, Tool
    from ....tools_registry.search.usage import SearchUsage

_KEEP_SECONDS = 3.0
"""How long after a call what was learned is kept for other servers; at the end of the process it always is."""
CLOSING_SECONDS = 2.0
"""How long the end of the process waits for that."""
_SHOWN_RETURNS_MAX = 20_000
_LOG = logging.getLogger(__name__)


class ShownReturnTypes:
    """Which callers have seen what which tools return, so that reports say it once. The newest are kept."""

    def __init__(self) -> None:
        self._shown: Lru[tuple[str, str], None] = Lru(_SHOWN_RETURNS_MAX)

    def note(self, scope: str, tool: str) -> None:
        """Note that a caller has seen what a tool returns."""
        self._shown[scope, tool] = None

    def has(self, scope: str, tool: str) -> bool:
        """Return whether a caller has seen what a tool returns."""
        return (scope, tool) in self._shown


class LearnedFacts:
    """What answers look like, and what is called after which search. Nothing is read before it is needed."""

    def __init__(
        self,
        state: RegistryState,
        shared: SharedLook,
        in_background: Callable[[Coroutine[None, None, None]], asyncio.Task[Any]],
    ) -> None:
        self._types = Opening(partial(_learned_types, state))
        self._usage = Opening(partial(_usage, state))
        self._shared = shared
        self._in_background = in_background
        self._keeping: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Keep what was learned."""
        for kept in (self._types.made, self._usage.made):
            if kept is not None and not await ended_within(CLOSING_SECONDS, kept.save):
                _LOG.warning("What was learned of tools could not be kept: the database did not answer in time.")

    async def types(self) -> LearnedTypes:
        """Return what is known of the answers of tools."""
        made = self._types.made
        return await asyncio.to_thread(self._types) if made is None else made

    async def usage(self) -> SearchUsage:
        """Return what was called after which search."""
        made = self._usage.made
        return await asyncio.to_thread(self._usage) if made is None else made

    async def observe(self, tool: Tool, arguments: Mapping[str, object], value: Json) -> None:
        """Learn from an answer of a tool, where the tool does not say what its answers are."""
        if says_shape(tool.output_schema):
            return
        observe = partial((await self.types()).observe, tool.full_name, value, arguments)
        if is_light([value, cast("Json", arguments)]):
            observe()
        else:
            await asyncio.to_thread(observe)

    def refresh(self) -> None:
        """Take in what other servers kept. Blocks."""
        for kept in (self._types.made, self._usage.made):
            if kept is not None:
                kept.refresh()

    def keep_soon(self) -> None:
        """Keep what was learned for the other servers, where there are some; returns at once."""
        if self._shared.is_shared and (self._keeping is None or self._keeping.done()):
            self._keeping = self._in_background(self._keep())

    async def _keep(self) -> None:
        await asyncio.sleep(_KEEP_SECONDS)
        for kept in (self._types.made, self._usage.made):
            if kept is not None and kept.has_unsaved:
                try:
                    await in_thread(Kind.DATABASE, kept.save, charged=False)
                except HostWorkRefused as error:
                    _LOG.warning("What was learned of tools is kept later: %s", error)


def _learned_types(state: RegistryState) -> LearnedTypes:
    from ....tools_registry.describing.learned import LearnedTypes

    return LearnedTypes(state.learned)


def _usage(state: RegistryState) -> SearchUsage:
    from ....tools_registry.search.usage import SearchUsage

    return SearchUsage(state.usage)
