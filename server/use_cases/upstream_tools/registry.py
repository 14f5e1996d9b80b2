"""Every upstream tool as this server knows it: the catalog, the index over it, and the connections, wired together.

Nothing is read before it is needed, and no server is started before one of its tools is called or looked for by name.
A server that has never said what it has is asked when tools are searched, since it could not be found otherwise; what
it said is kept, so that this happens once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ....tools_registry.configuration import Configuration, ServerConfig, SignInOf
from ....tools_registry.errors import RegistryError, ToolUnknown
from ....tools_registry.sign_in.owners import OPERATOR, SignInOwner
from ...base.errors import HostWorkRefused
from ...base.home import Home
from ...base.host_work import Kind, in_thread
from ...base.identity import LOCAL_IDENTITY, Identity, Right
from ...base.lru import Lru
from ...base.telemetry import tracing
from ...governance.policy.access import NO_CALL, NO_POLICY, Attributes, Decider, call_access
from ...governance.shares.shared_bounds import Parts
from .approval import Decision, decide
from .asking import ASK_SECONDS, Asking
from .extras import Extra, Extras, helper_for_tool_name
from .learned_facts import LearnedFacts, ShownReturnTypes
from .overview import overview
from .registry_report import RegistryReport, published_chars, report_of
from .registry_state import RegistryState, SharedLook, in_files
from .tool_rules import RuledServer, ruled
from .views import Views
from .wiring import DefinitionsFolder, FileStamp, Wired, index_of, is_permitted, log_problems, wire

if TYPE_CHECKING:
    from ....tools_registry.catalog import Catalog
    from ....tools_registry.describing.details import Describer
    from ....tools_registry.models import Json, Tool
    from ....tools_registry.search.ranking import SearchIndex
    from ....tools_registry.upstream.lenient import LeftOut
    from ....tools_registry.upstream.pins import StandingApproval
    from ....tools_registry.upstream.upstreams import Keep, OnProgress, ToolResult, Upstreams
    from ...governance.sign_ins.sign_ins import SignIns

LOOK_SECONDS = 0.5
"""Seconds for which one look at files and shared state serves a question or a call."""

INDEX_SECONDS = 2.0
"""How long a search waits for a new index where there is an old one."""

INDEXES_KEPT = 16
"""Indexes, one for all callers who are shown the same; the one used longest ago ends first."""

_WATCH_SECONDS = 2.0
"""How often it is looked whether other servers are attached."""
_WARM_AFTER_SECONDS = 1.0
"""Until a client's first questions are answered."""
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class KnownTools:
    """What there is of tools of some names: each tool, or why the operator does not let it be called.

    `unknown` are the names that mean no tool, or several. What a server may have that cannot be asked is left out.
    """

    tools: Mapping[str, Tool | ToolUnknown]
    unknown: Sequence[str]
    configuration: Configuration
    quarantined: frozenset[str]


@dataclass(slots=True)
class Look:
    """What was found in a block of `Registry.one_look`; it holds for `LOOK_SECONDS`."""

    registry: Registry
    until: float
    wired: Wired | None = None
    has_extras: bool = False

    @property
    def holds(self) -> bool:
        """Whether it still holds."""
        return time.monotonic() < self.until

    def end(self) -> None:
        """Look anew from now on: for instance after somebody was asked."""
        self.until = 0.0


_LOOK: ContextVar[Look | None] = ContextVar("_LOOK", default=None)


class Registry:
    """All tools of all servers; any task of the event loop may use it. `close` ends every connection."""

    def __init__(
        self,
        home: Home,
        environment: Mapping[str, str] | None = None,
        *,
        discovers: bool = False,
        policy: Decider = NO_POLICY,
        sign_ins: SignIns | None = None,
        state: RegistryState | None = None,
        parts: Parts | None = None,
    ) -> None:
        """`sign_ins` has the sign-ins of callers and of the operator; without them nothing is signed.

        `state` has what is known of servers, where that is not in files of the home. `parts` are those of the bounds
        that servers share.
        """
        self.sign_ins = sign_ins
        self._views = Views(policy)
        self._indexes: Lru[tuple[Catalog, bool], tuple[tuple[object, ...], SearchIndex]] = Lru(INDEXES_KEPT)
        self.policy = policy
        """What says of each caller which tools it may see and call."""
        self._home = home
        self._discovers = discovers
        self._environment = os.environ if environment is None else environment
        self._wired: Wired | None = None
        self._wiring = asyncio.Lock()
        self._definitions = DefinitionsFolder(home.tools)
        self._indexing = asyncio.Lock()
        self._state = in_files(home) if state is None else state
        self._shared = SharedLook(self._state.shared)
        self._asking = Asking(home.tenant, Parts(None) if parts is None else parts, self._shared, self._take_shared)
        self.learned = LearnedFacts(self._state, self._shared, self._in_background)
        """What was learned of tools."""
        self._hurried = asyncio.Event()
        self._background: set[asyncio.Task[Any]] = set()
        self._sent_chars = 0
        self._defined: dict[str, tuple[Wired, int]] = {}
        self._flagged: dict[str, tuple[Tool, tuple[str, ...]]] = {}
        self._overview: tuple[object, str] = None, ""
        self.shown_return_types = ShownReturnTypes()
        """Which return types each caller has seen."""
        self.extra_documents: Extras | None = None
        """What else searches find, such as skills; brought up to date before anything is searched or listed."""

    async def close(self) -> None:
        """End every connection and keep what was learned."""
        self._asking.close()
        for task in self._background:
            task.cancel()
        if self._wired is not None:
            await self._wired.upstreams.__aexit__(None, None, None)
        await self.learned.close()

    def warm(self) -> None:
        """Read the catalog and build the index soon, so that the first search need not wait."""
        self._in_background(self._warmed())

    async def catalog(self) -> Catalog:
        """Return the catalog, as `mcp.json` and the files below `tools/` are now. Raises `RegistryError`."""
        await self._refresh_extras()
        return (await self._current()).catalog

    async def view(self, who: Identity) -> Catalog:
        """Return the catalog as a caller is shown it. Raises `RegistryError`."""
        await self._refresh_extras()
        return await self._views.of(who, await self._current())

    async def shows_server(self, who: Identity, server: str) -> bool:
        """Return whether a caller is shown a server, be it one that cannot be used. Raises `RegistryError`."""
        wired = await self._current()
        view = await self._views.of(who, wired)
        return server in view.servers() or self._views.shows_server(who, server, wired)

    async def hidden(self, who: Identity, name: str) -> tuple[str, str] | None:
        """Return for the audit log which tool a name means that the policy hides, and by which rules.

        What a server has that was never asked is `server.?`. Takes as long whether or not there is such a tool.
        """
        if not self.policy.governs:
            return None
        wired = await self._current()
        tool = await in_thread(Kind.SEARCH, partial(wired.catalog.spelled, name))
        server = wired.named_server(name)
        by_name = self._views.ruling_of(who, server, name, wired)
        if tool is not None:
            ruling = self.policy.decide(who, call_access(tool, wired.configuration.servers.get(tool.server)))
            return None if ruling.allowed else (tool.full_name, ruling.named)
        return None if server is None or by_name.allowed else (f"{server}.?", by_name.named)

    async def configuration(self) -> Configuration:
        """Return what `mcp.json` says now. Raises `RegistryError`."""
        return (await self._current()).configuration

    async def upstreams(self) -> Upstreams:
        """Return the connections. Raises `RegistryError`."""
        return (await self._current()).upstreams

    async def index(self, who: Identity = LOCAL_IDENTITY) -> SearchIndex:
        """Return an index over all tools that a caller is shown, and over what `extra_documents` give.

        Where a new one is not built within `INDEX_SECONDS`, that is the last one of these servers. Callers to whom the
        policy shows the same share one of their own, since words of other tools change what a search says.
        """
        wired = await self._current()
        view = await self._views.of(who, wired)
        key = (view, view is wired.catalog or who.may(Right.SKILLS_READ))
        old = self._indexes.get(key)
        build = self._in_background(self._built(wired, key))
        await asyncio.wait({build}, timeout=None if old is None else INDEX_SECONDS)
        return old[1] if old is not None and not build.done() else build.result()

    async def _built(self, wired: Wired, key: tuple[Catalog, bool]) -> SearchIndex:
        async with self._indexing:
            await self._refresh_extras()
            view, has_extras = key
            version, extras = self._extras() if has_extras else (None, ())
            state = (view.revision, version)
            found = self._indexes.get(key)  # which is searched meanwhile
            if found is None or found[0] != state:
                build = partial(index_of, view, wired.configuration, [each.document for each in extras])
                found = state, await in_thread(Kind.SEARCH, build, charged=False)
            self._indexes[key] = found
            return found[1]

    @contextmanager
    def one_look(self) -> Iterator[Look]:
        """Look once in the block for what has changed: files, what servers share, skills."""
        look = Look(self, time.monotonic() + LOOK_SECONDS)
        before = _LOOK.set(look)
        try:
            yield look
        finally:
            look.end()  # tasks that began in the block know it too
            _LOOK.reset(before)

    def _look(self) -> Look:
        look = _LOOK.get()
        return look if look is not None and look.registry is self and look.holds else Look(self, 0.0)

    async def _refresh_extras(self) -> None:
        look = self._look()
        if self.extra_documents is not None and not look.has_extras:
            await self.extra_documents.refresh()
            look.has_extras = True

    def _extras(self) -> tuple[object, Sequence[Extra]]:
        return (None, ()) if self.extra_documents is None else self.extra_documents()

    def extras(self, who: Identity) -> Sequence[Extra]:
        """Return what searches find beside tools, which are skills, where a caller may read those."""
        return self._extras()[1] if who.may(Right.SKILLS_READ) else ()

    async def beside(self, name: str, category: str | None = None, who: Identity = LOCAL_IDENTITY) -> Extra | None:
        """Return what a name means beside tools that a caller is shown: its full name, or its own if none has it."""
        catalog = await self.view(who)
        for each in self.extras(who):
            document = each.document
            if category in {None, document.category} and (
                name == document.key or (name == document.name and (category is not None or name not in catalog))
            ):
                return each
        return None

    async def describer(self, who: Identity = LOCAL_IDENTITY) -> Describer:
        """Return what describes tools to a caller, with what was learned of their answers."""
        from ....tools_registry.describing.details import Describer

        return Describer(await self.catalog(), await self.learned.types(), await self.asks(who))

    async def asks(self, who: Identity) -> Callable[[Tool], bool]:
        """Return what says whether a user is asked before a caller's call of a tool. Raises `RegistryError`."""
        servers = (await self.configuration()).servers

        def asks(tool: Tool) -> bool:
            server = servers.get(tool.server)
            return server is not None and decide(tool, self.ruled(who, tool, server).server) is Decision.ASK

        return asks

    def ruled(self, who: Identity, tool: Tool, server: ServerConfig, context: Attributes = NO_CALL) -> RuledServer:
        """Return the server's entry as it holds for a caller, a tool, and what a call of it is known of."""
        return ruled(self.policy, who, tool, server, context)

    async def shown(self, who: Identity, tools: Iterable[Tool]) -> list[Tool]:
        """Return which of some tools a caller is shown. Raises `RegistryError`."""
        if self.policy.governs:
            view = await self.view(who)
            return [tool for tool in tools if tool.full_name in view]
        configuration = await self.configuration()
        return [tool for tool in tools if is_permitted(tool, configuration)]

    async def statistics(self, who: Identity = LOCAL_IDENTITY) -> RegistryReport:
        """Count what a caller is shown, without starting a server or reading anything that was not read before."""
        wired = self._wired
        if wired is None:
            return report_of({}, [], [], 0, self._sent_chars)
        view = await self._views.of(who, wired)
        servers = wired.configuration.servers
        if view is not wired.catalog:
            servers = {name: each for name, each in servers.items() if name in view.servers()}
        tools = [tool for tool in view.tools() if is_permitted(tool, wired.configuration)]
        enabled = wired.configuration.enabled.keys() & servers.keys()
        states = [wired.upstreams.status(server).state.value for server in enabled]
        chars = await asyncio.to_thread(published_chars, tools)
        return report_of(servers, states, tools, chars, self._sent_chars)

    async def definition_chars(self, server: str) -> int:
        """Return how long the definitions of a server's tools are, which a client of it would load."""
        wired = await self._current()
        known = self._defined.get(server)
        if known is None or known[0] is not wired:
            tools = wired.catalog.tools(server=server)
            chars = await in_thread(Kind.SEARCH, partial(published_chars, tools), charged=False)
            known = self._defined[server] = wired, chars
        return known[1]

    async def flags(self, tool: Tool) -> tuple[str, ...]:
        """Return what in a tool's texts addresses the model; it is looked for once, since that takes long."""
        known = self._flagged.get(tool.full_name)
        if known is None or known[0] is not tool:
            from ....tools_registry.upstream.injection import flags

            look = partial(flags, tool.description, tool.input_schema, tool.title)
            found = await in_thread(Kind.SEARCH, look, charged=False)
            known = self._flagged[tool.full_name] = tool, found
        return known[1]

    async def overview(self, who: Identity | None = None) -> str:
        """Describe in one line which servers are attached and what for; empty without one. Starts no server.

        With `who` only of tools that the policy lets that caller call.

        Where `mcp.json` cannot be read, that is what was last said.
        """
        if not self._discovers and not await asyncio.to_thread(self._home.servers_file.exists):
            return ""
        try:
            wired = await self._current()
        except RegistryError:
            return self._overview[1]
        if who is not None and self.policy.governs:
            return await asyncio.to_thread(_overview_of, wired, await self._views.of(who, wired))
        state = (wired.catalog, wired.catalog.revision)
        if self._overview[0] != state:
            self._overview = state, await asyncio.to_thread(_overview_of, wired, wired.catalog)
        return self._overview[1]

    def watch_overview(self, notify: Callable[[], Awaitable[None]]) -> None:
        """Call `notify` whenever the overview has changed, until `close`."""
        self._in_background(self._watched(notify))

    def notice_change(self) -> None:
        """Look anew at what servers share, since others changed it, or may have; returns at once."""
        self._shared.expire()
        self._hurried.set()

    async def _watched(self, notify: Callable[[], Awaitable[None]]) -> None:
        last = await self.overview()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurried.wait(), _WATCH_SECONDS)
            self._hurried.clear()
            now = await self.overview()
            if now != last:
                last = now
                await notify()

    async def quarantined(self) -> frozenset[str]:
        """Return the servers that are quarantined, without starting one."""
        return await (await self._current()).upstreams.quarantined()

    def count_sent(self, chars: int) -> None:
        """Count what was sent to a model of tools, to compare with what all definitions would have cost."""
        self._sent_chars += chars

    async def find(self, name: str, category: str | None = None, who: Identity = LOCAL_IDENTITY) -> Tool:
        """Return the tool of a name as `Catalog.get` does, asking its server what it has where that is not known.

        Of what the policy hides from the caller, it is as if it were not there. Raises `RegistryError`.
        """
        wired = await self._current()
        server = self._named_server(wired, who, name)
        view = await self._views.of(who, wired)
        if "." not in name:
            await self.list_unlisted(who)  # else it would mean one tool now and none later, when more servers have it
        elif name not in view and server is not None and not wired.catalog.is_listed(server):
            await self._asking.ask(wired, server)
        try:
            return await _got(await self._views.of(who, wired), name, category)
        except ToolUnknown:
            wired.refuse_what_is_denied(server, name)
            helper = helper_for_tool_name(name)
            if helper is not None:
                raise ToolUnknown(helper) from None
            if server is None or server in wired.fresh or not _is_operators(wired, server):
                raise
            await self._asking.ask(wired, server)
            return await _got(await self._views.of(who, wired), name, category)

    def _named_server(self, wired: Wired, who: Identity, name: str) -> str | None:
        """Return the server whose name stands before that of a tool which the policy may let the caller call."""
        named = [*wired.named_servers(name)]
        for server in named:
            if self._views.ruling_of(who, server, name, wired).allowed:
                return server
        if not named:  # a decision takes time too
            self._views.ruling_of(who, None, name, wired)
        return None

    async def known(self, names: Collection[str], who: Identity = LOCAL_IDENTITY) -> KnownTools:
        """Return what there is of tools of names that a caller is shown. Raises `RegistryError`.

        Servers whose tools are not known are asked, all at once, for `ASK_SECONDS` at most.
        """
        wired = await self._current()
        servers = {name: self._named_server(wired, who, name) for name in names}
        unlisted = {server for server in servers.values() if server is not None and not wired.catalog.is_listed(server)}
        if any("." not in name for name in servers):
            unlisted.update(each for each in self._asking.unasked(wired) if self._views.shows_server(who, each, wired))
        if unlisted:
            await asyncio.wait([self._asking.asked(wired, server) for server in unlisted], timeout=ASK_SECONDS)
        view = await self._views.of(who, wired)
        tools: dict[str, Tool | ToolUnknown] = {name: view.get(name) for name in servers if name in view}
        rest = {name: server for name, server in servers.items() if name not in tools}
        unknown: list[str] = []
        if rest:  # other spellings are compared with every tool
            tools |= await in_thread(Kind.SEARCH, partial(_known, wired, view, rest))
            rest = {name: server for name, server in rest.items() if name not in tools}
            old = {server for server in rest.values() if server is not None and server not in wired.fresh}
            if old:
                await asyncio.wait([self._asking.asked(wired, server) for server in old], timeout=ASK_SECONDS)
                if old & wired.fresh:
                    return await self.known(names, who)  # by what they have now
            unknown = _unknown(wired, view, rest)
        return KnownTools(tools, unknown, wired.configuration, await wired.upstreams.quarantined())

    async def rules(self, tool: Tool, scope: str) -> list[StandingApproval]:
        """Return the rules by which the user of a scope said yes to calls of a tool."""
        return (await (await self.upstreams()).approved(tool.server, self._approving(scope))).get(tool.name, [])

    async def approve(self, tool: Tool, scope: str, rule: StandingApproval) -> None:
        """Note that the user of a scope said yes to all calls of a tool that a rule allows."""
        await (await self.upstreams()).approve(tool.server, tool.name, self._approving(scope), rule)

    def _approving(self, scope: str) -> str:
        """Return as whose a yes is kept: pins are the operator's, and a principal is another one in each tenant."""
        return scope if self._home.operators is None else f"{scopes_of_tenant(self._home.tenant)}{scope}"

    async def refresh(self, server: str) -> bool:
        """List a server's tools unless done in this session; return whether it was. Raises `RegistryError`.

        A server that is called with sign-ins of callers is listed where one of them calls it.
        """
        wired = await self._current()
        if server in wired.fresh or not _is_operators(wired, server):
            return False
        await self._asking.ask(wired, server)
        return True

    async def list_unlisted(self, who: Identity = LOCAL_IDENTITY) -> None:
        """List the tools of every server that were never listed, all at once, and wait `ASK_SECONDS` at most.

        Servers that the caller is not shown are not waited for: some of their tools may be shown once they are known.
        """
        wired = await self._current()
        tasks = {server: self._asking.asked(wired, server) for server in self._asking.unasked(wired)}
        shown = [task for server, task in tasks.items() if self._views.shows_server(who, server, wired)]
        if shown:
            await asyncio.wait(shown, timeout=ASK_SECONDS)

    async def unreachable(self, who: Identity = LOCAL_IDENTITY) -> dict[str, str]:
        """Return why the tools are not known, for each configured server of which a caller is shown none."""
        wired = await self._current()
        reasons = {
            server: str(wired.configuration.unusable(server))
            for server in wired.configuration.problems
            if self._views.shows_server(who, server, wired)
        }
        for server in wired.configuration.enabled:
            if not self._views.shows_server(who, server, wired):
                continue
            if not wired.catalog.tools(server=server):
                if server in wired.failed:
                    reasons[server] = wired.failed[server][1]
                elif server in self._asking:
                    reasons[server] = "It has not answered yet. Search again in a moment."
        return reasons

    async def standing(self, who: Identity = LOCAL_IDENTITY) -> dict[str, dict[str, Json]]:
        """Return the state of each server of `mcp.json` that a caller is shown, see `UpstreamStatus.as_json`.

        Starts none. Of what is left out, that is named which the policy may let the caller call.
        """
        from ....tools_registry.upstream.upstreams import State

        wired, unreachable = await self._current(), await self.unreachable(who)
        configured_at = wired.configured[0] / 1e9
        standing: dict[str, dict[str, Json]] = {}
        for server, found in (await wired.upstreams.statuses()).items():
            if not await self.shows_server(who, server):
                continue
            left_out = [each for each in wired.catalog.left_out(server) if self._may_show(wired, who, server, each)]
            status = replace(found, left_out=tuple(left_out))
            if server in unreachable and not status.reason:
                state = State.FAILED if server in wired.failed else State.CONNECTING
                status = replace(status, state=state, reason=unreachable[server])
            standing[server] = status.as_json(configured_at)
        return standing

    def _may_show(self, wired: Wired, who: Identity, server: str, left_out: LeftOut) -> bool:
        config, name = wired.configuration.enabled.get(server), f"{server}.{left_out.tool}"
        return (
            config is not None
            and config.permits(left_out.tool)
            and self._views.ruling_of(who, server, name, wired).allowed
        )

    async def listed_by_callers(self, name: str, who: Identity) -> ServerConfig | None:
        """Return the server of a tool that has to be listed with a sign-in of a caller, before the tool is known."""
        wired = await self._current()
        server = self._named_server(wired, who, name)
        if server is None or server in wired.fresh or name in wired.catalog:
            return None
        config = wired.configuration.enabled[server]
        if config.sign_in is SignInOf.OPERATOR:
            return None
        wired.refuse_what_is_denied(server, name)
        return config

    async def list_as(self, server: str, owner: SignInOwner) -> None:
        """List a server's tools with the sign-in of an owner. Raises `RegistryError`."""
        wired = await self._current()
        async with self._asking.connected(wired, server, owner):
            await self._asking.list_tools(wired, server, owner)

    async def call(
        self,
        tool: Tool,
        arguments: Mapping[str, object],
        *,
        on_progress: OnProgress | None,
        keep: Keep | None,
        owner: SignInOwner = OPERATOR,
    ) -> ToolResult:
        """Call a tool with the sign-in of an owner and learn from its answer. Raises `RegistryError`.

        Cancelling cancels the call.
        """
        wired = await self._current()
        async with self._asking.connected(wired, tool.server, owner):
            with tracing.upstream_call(tool.name, tool.server, wired.configuration.server(tool.server).url):
                result = await wired.upstreams.call(
                    tool.server, tool.name, arguments, on_progress=on_progress, keep=keep, owner=owner
                )
        await self.learned.observe(tool, arguments, result.value)
        self.learned.keep_soon()
        if tool.server not in wired.fresh:
            self._in_background(self._asking.ask_quietly(wired, tool.server, owner))
        return result

    async def read_resource(self, server: str, uri: str, *, keep: Keep | None, owner: SignInOwner = OPERATOR) -> Json:
        """Return what a resource of a server holds. Raises `RegistryError`."""
        wired = await self._current()
        async with self._asking.connected(wired, server, owner):
            return await wired.upstreams.read_resource(server, uri, keep=keep, owner=owner)

    async def listed_beside_tools(
        self, server: str, kind: Literal["resources", "prompts"], owner: SignInOwner = OPERATOR
    ) -> list[Json]:
        """Return the resources or the prompts of a server. Raises `RegistryError`."""
        wired = await self._current()
        async with self._asking.connected(wired, server, owner):
            if kind == "prompts":
                return await wired.upstreams.list_prompts(server, owner)
            return await wired.upstreams.list_resources(server, owner)

    async def _current(self) -> Wired:
        look = self._look()
        if look.wired is None:
            look.wired = await self._looked()
        return look.wired

    async def _looked(self) -> Wired:
        async with self._wiring:
            changed = await self._shared.has_changed()  # before anything is read, which is then as new at least
            configured, defined = await asyncio.to_thread(self._stamp)
            wired = self._wired
            if wired is None or wired.configured != configured:
                sign_for = None if self.sign_ins is None else self.sign_ins.signs
                read = partial(wire, state=self._state, discovers=self._discovers, sign_for=sign_for)
                self._wired = await asyncio.to_thread(
                    read, self._home, self._environment, configured, defined, self._list_changed
                )
                if wired is not None:
                    self._in_background(wired.wind_up())
            elif wired.defined != defined:
                await asyncio.to_thread(wired.catalog.reload_files)
                wired.defined = defined
                log_problems(wired.catalog)
            assert self._wired is not None
            if changed:
                await in_thread(Kind.DATABASE, partial(self._take_shared, self._wired), charged=False)
            return self._wired

    def _stamp(self) -> tuple[FileStamp, int]:
        """Return what changes when the configuration does, and what does when the definitions do."""
        return _modified(self._home.servers_file), self._definitions.last_change()

    def _take_shared(self, wired: Wired) -> None:
        wired.catalog.reload_lists()
        self.learned.refresh()

    async def _list_changed(self, server: str, owner: SignInOwner) -> None:
        if self._wired is not None and server in self._wired.configuration.enabled:
            await self._asking.ask_quietly(self._wired, server, owner)

    async def _warmed(self) -> None:
        await asyncio.sleep(_WARM_AFTER_SECONDS)
        try:
            await self.index()
        except (RegistryError, HostWorkRefused) as error:
            _LOG.warning("Upstream tools cannot be used: %s", error)

    def _in_background(self, work: Coroutine[None, None, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it raises it


def _is_operators(wired: Wired, server: str) -> bool:
    return wired.configuration.server(server).sign_in is SignInOf.OPERATOR


def scopes_of_tenant(tenant: str) -> str:
    """Return what the scopes of a tenant begin with, as whose the operator keeps what their users said."""
    return f"tenant\0{tenant}\0"


async def _got(catalog: Catalog, name: str, category: str | None) -> Tool:
    """Return what `Catalog.get` does: what is no full name is compared with the name of every tool."""
    if category is None and name in catalog:
        return catalog.get(name)
    return await in_thread(Kind.SEARCH, partial(catalog.get, name, category))


def _known(wired: Wired, view: Catalog, servers: Mapping[str, str | None]) -> dict[str, Tool | ToolUnknown]:
    known: dict[str, Tool | ToolUnknown] = {}
    for name, server in servers.items():
        tool = view.known(name)
        if tool is not None:
            known[name] = tool
            continue
        try:
            wired.refuse_what_is_denied(server, name)
        except ToolUnknown as refusal:
            known[name] = refusal
    return known


def _unknown(wired: Wired, view: Catalog, servers: Mapping[str, str | None]) -> list[str]:
    shown = wired.configuration.enabled.keys() & view.servers().keys()
    all_known = all(wired.catalog.is_listed(server) or wired.catalog.tools(server=server) for server in shown)
    return [
        name
        for name, server in servers.items()
        if (server in wired.fresh if server is not None else all_known or "." in name)
    ]


def _overview_of(wired: Wired, shown: Catalog) -> str:
    enabled = wired.configuration.enabled.keys() & shown.servers().keys()
    tools: dict[str, list[str]] = {shown.server_alias(server): [] for server in enabled}
    for tool in shown.tools():
        alias = shown.server_alias(tool.server)
        if alias in tools and is_permitted(tool, wired.configuration):
            tools[alias].append(tool.name)
    return overview(tools)


def _modified(path: Path) -> FileStamp:
    """Return what changes when the file does, or when a link to it leads elsewhere, as in a mounted ConfigMap."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_ino, found.st_size
