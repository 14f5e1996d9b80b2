"""All upstream MCP servers: each connected when it is first used, kept warm, and connected anew after it died.

Servers share nothing, so one that is dead or slow delays no other. What a server says about its tools is pinned when
first seen, see `pins.py`. The SDK's client is imported with the first call, not with this module.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from ..configuration import Configuration, ServerConfig, Transport
from ..errors import RegistryError, ServerUnknown, ToolUnknown
from ..json_lines import ReadJson, read_in_thread
from ..kept import KeptText
from ..models import Json
from ..sign_in.owners import OPERATOR, OwnedConnections, SignInOwner, can_sign_in, refuse_unowned
from ..threads import InThread, in_default_thread
from .injection import flags
from .lenient import LeftOut, RawTool
from .pins import PINS, Pins, Seen, StandingApproval, refusal
from .results import Keep, ToolResult, value_of

if TYPE_CHECKING:
    import httpx2
    from mcp.client.session import ElicitationFnT

    from .connection import Connection
    from .link import UpstreamLink

__all__ = [
    "Inspection",
    "Keep",
    "Listed",
    "OnListChanged",
    "OnProgress",
    "RawTool",
    "ServerInfo",
    "State",
    "ToolResult",
    "UpstreamStatus",
    "Upstreams",
]

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes the progress of a call so far, the total if known, and the server's message if it gave one."""

OnListChanged = Callable[[str, SignInOwner], Awaitable[None]]
"""Takes the name of a server that says that its tools changed, and whose connection it said so on."""

OnState = Callable[[str, RegistryError | None], object]
"""Takes, in a thread, the name of a server and why it cannot be connected; None where it can."""

SignFor = Callable[[ServerConfig, SignInOwner], "httpx2.Auth | None"]
"""Gives what signs an owner's requests to a server, None where the operator is not signed in. Called in a thread."""


_URI_SHOWN = 200

_LOG = logging.getLogger(__name__)


class State(StrEnum):
    """How a server stands."""

    IDLE = "idle"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    FAILED = "failed"
    QUARANTINED = "quarantined"
    DISABLED = "disabled"
    UNUSABLE = "unusable"


_SHOWN_STATES = {
    State.IDLE: "ready",
    State.CONNECTING: "starting",
    State.CONNECTED: "ready",
    State.UNUSABLE: "failing",
    State.FAILED: "failing",
}
"""What callers see as a state, where it is not its own name: one that is idle is connected when it is called."""


@dataclass(frozen=True, slots=True)
class UpstreamStatus:
    """How a server stands: why it cannot be used, the calls under way, the connections so far, the tools left out.

    `since` is when its connection began, was made or failed, in seconds since 1970; None where there was none.
    """

    state: State
    reason: str = ""
    calls: int = 0
    starts: int = 0
    left_out: tuple[LeftOut, ...] = ()
    since: float | None = field(default=None, compare=False)

    def as_json(self, configured_at: float | None) -> dict[str, Json]:
        """Return `{state, since, last_error, left_out}` for callers.

        The state is `ready`, `starting`, `failing`, `disabled` or `quarantined`; of a server without a connection it
        is as old as its entry in `mcp.json`.
        """
        since = self.since or configured_at
        moment = datetime.fromtimestamp(since).astimezone().isoformat(timespec="seconds") if since else None
        return {
            "state": _SHOWN_STATES.get(self.state, self.state.value),
            "since": moment and moment.replace("+00:00", "Z"),
            "last_error": self.reason or None,
            "left_out": [{"tool": each.tool, "reason": each.reason} for each in self.left_out],
        }


@dataclass(frozen=True, slots=True)
class Listed:
    """A server's tools, its version as it states it (empty where it does not), and what of its list is left out."""

    tools: tuple[RawTool, ...]
    version: str
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a connected server says about itself; what it does not say is empty."""

    name: str
    version: str
    protocol: str
    instructions: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything that `sealab servers test` shows: all tools, what changed, flags of some, and what is left out."""

    info: ServerInfo
    tools: tuple[RawTool, ...]
    seen: Seen
    quarantined: tuple[str, ...]
    flags: Mapping[str, tuple[str, ...]]
    left_out: tuple[LeftOut, ...]


class Upstreams:
    """The servers of a configuration. All tasks of one event loop may use it."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        state: Path | None = None,
        pins: KeptText | None = None,
        keep: Keep | None = None,
        on_list_changed: OnListChanged | None = None,
        on_state: OnState | None = None,
        elicit: ElicitationFnT | None = None,
        sign_for: SignFor | None = None,
        era: Literal["auto", "legacy"] = "auto",
        read_large: ReadJson = read_in_thread,
        in_thread: InThread = in_default_thread,
    ) -> None:
        """`state` is the folder where pins are kept; without one nothing outlives the object.

        `pins` is where they are kept in place of that.
        `on_state` is called, in a thread, with the operator's servers that cannot be connected, and that can be again.
        `keep` takes what is not text, `elicit` answers what a server asks of the user, `sign_for` signs for the owners
        of a server's sign-ins, `era` says how the protocol version is found, `read_large` reads large answers, and
        `in_thread` does what else takes long.
        """
        self.configuration = configuration
        self._keep = keep
        self._on_list_changed = on_list_changed
        self._on_state = on_state
        self._elicit = elicit
        self._sign_for = sign_for
        self._era: Literal["auto", "legacy"] = era
        self._read_large = read_large
        self._in_thread = in_thread
        self._pins = Pins(pins or (None if state is None else state / PINS))
        self._seen: dict[str, Seen] = {}
        self._quarantine: dict[str, RegistryError] = {}
        self._connections = OwnedConnections()
        self._is_imported = False
        self._notifications: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every connection and every process that was started."""
        for task in self._notifications:
            task.cancel()
        await self._connections.close()

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, object],
        *,
        on_progress: OnProgress | None = None,
        timeout_seconds: float | None = None,
        keep: Keep | None = None,
        owner: SignInOwner = OPERATOR,
    ) -> ToolResult:
        """Call a tool and return what it gave; `keep` goes before the one given at first. Cancelling cancels the call.

        `owner` says with whose sign-in. A call is never made with another's, nor without one that the server wants.

        The time-out is the server's own from `mcp.json` unless one is given; connecting has its own time.
        Raises a `RegistryError`: `ServerUnknown`, `ServerUnusable`, `ToolUnknown`, `Quarantined`, `ConnectFailed`,
        `SignInNeeded`, `CallRefused`, `ToolFailed`, `AnswerRefused`, `CallTimedOut` or `ConnectionLost`.
        """
        config = self.configuration.server(server)
        if not config.permits(tool):
            raise ToolUnknown(
                f"The tool {tool!r} of the server {server!r} is not allowed here. "
                'Use another, or have the user change "allow" and "deny" in mcp.json.'
            )
        refuse_unowned(config, owner)
        await self._refuse_quarantined(server)
        definition, result = await (await self._connection(config, owner)).call(
            tool,
            arguments,
            timeout_seconds=config.call_timeout_seconds if timeout_seconds is None else timeout_seconds,
            on_progress=on_progress,
        )
        return await value_of(
            tool,
            result,
            definition.get("output_schema"),
            keep or self._keep,
            read_large=self._read_large,
            in_thread=self._in_thread,
            is_checked=config.type is not Transport.OPENAPI,  # a document is less exact than what it describes
        )

    async def list_tools(self, server: str, owner: SignInOwner = OPERATOR) -> Listed:
        """Return a server's tools, those that `allow` and `deny` permit, as that owner sees them.

        Raises as `call` does, without the errors of a tool: a quarantined server's descriptions are not given out.
        """
        config = self.configuration.server(server)
        await self._refuse_quarantined(server)
        link = await (await self._connection(config, owner)).listed()
        if link.refusal is not None:
            raise link.refusal
        tools = tuple(tool for tool in link.tools if config.permits(str(tool["name"])))
        return Listed(tools, _info(config, link).version, link.left_out)

    async def read_resource(
        self, server: str, uri: str, *, keep: Keep | None = None, owner: SignInOwner = OPERATOR
    ) -> Json:
        """Return what a resource of a server holds, see `resources.read_contents`. Raises as `list_tools`."""
        connection = await self._usable(server, owner)
        from .reading import whole
        from .resources import read_contents

        result = await connection.ask(f"The resource {uri[:_URI_SHOWN]!r}", lambda client: client.read_resource(uri))
        return await read_contents(uri, whole(result), keep or self._keep, self._read_large, self._in_thread)

    async def list_resources(self, server: str, owner: SignInOwner = OPERATOR) -> list[Json]:
        """Return the resources of a server and the templates of their addresses. Raises as `list_tools`."""
        connection = await self._usable(server, owner)
        from .resources import list_resources

        return await connection.ask("The list of resources", partial(list_resources, in_thread=self._in_thread))

    async def list_prompts(self, server: str, owner: SignInOwner = OPERATOR) -> list[Json]:
        """Return the prompts of a server. Raises as `list_tools`."""
        connection = await self._usable(server, owner)
        from .resources import list_prompts

        return await connection.ask("The list of prompts", partial(list_prompts, in_thread=self._in_thread))

    async def _usable(self, server: str, owner: SignInOwner) -> Connection:
        config = self.configuration.server(server)
        refuse_unowned(config, owner)
        await self._refuse_quarantined(server)
        return await self._connection(config, owner)

    async def server_info(self, server: str) -> ServerInfo:
        """Connect to a server, if it is not, and return what it says about itself. Raises as `list_tools`."""
        config = self.configuration.server(server)
        await self._refuse_quarantined(server)
        link = await (await self._connection(config, OPERATOR)).listed()
        return _info(config, link)

    async def inspect(self, server: str, owner: SignInOwner = OPERATOR) -> Inspection:
        """Look at a server as a user does who decides about it, quarantined or not. Raises as `server_info`."""
        config = self.configuration.server(server)
        link = await (await self._connection(config, owner)).listed()
        quarantined = await asyncio.to_thread(self._pins.quarantined, server)
        flagged = {str(tool["name"]): found for tool in link.tools if (found := flags_of(tool))}
        return Inspection(
            _info(config, link), link.tools, self._seen.get(server, Seen()), quarantined, flagged, link.left_out
        )

    async def accept(self, server: str, owner: SignInOwner = OPERATOR) -> Inspection:
        """Pin what a server says now about its tools and end its quarantine; return what was accepted."""
        inspection = await self.inspect(server, owner)
        await asyncio.to_thread(self._pins.accept, server, inspection.tools)
        self._quarantine.pop(server, None)
        for connection in self._connections.of(server):
            if connection.link is not None:
                connection.link.refusal = None
        return inspection

    async def approve(self, server: str, tool: str, scope: str, rule: StandingApproval) -> None:
        """Note that the user of a scope said yes to all calls of a tool that a rule allows."""
        await asyncio.to_thread(self._pins.approve, server, tool, scope, rule)

    async def approved(self, server: str, scope: str | None = None) -> dict[str, list[StandingApproval]]:
        """Return the rules by which the user of a scope said yes, by tool; without a scope, those of all."""
        return await asyncio.to_thread(self._pins.approved, server, scope)

    async def ask_again(self, server: str) -> None:
        """Forget every yes to all calls of a server's tools."""
        await asyncio.to_thread(self._pins.ask_again, server)

    async def quarantined(self) -> frozenset[str]:
        """Return the servers that are quarantined, in this process or by another, without connecting."""
        return frozenset(self._quarantine) | await asyncio.to_thread(self._pins.quarantines)

    def status(self, server: str) -> UpstreamStatus:
        """Return the state of a server, without connecting. Raises `ServerUnknown`."""
        if server in self.configuration.problems:
            return UpstreamStatus(State.UNUSABLE, str(self.configuration.unusable(server)))
        if server not in self.configuration.servers:
            raise ServerUnknown(f"There is no server {server!r} in mcp.json. See `sealab servers list`.")
        if self.configuration.servers[server].disabled:
            return UpstreamStatus(State.DISABLED, "It is disabled in mcp.json.")
        connections = tuple(self._connections.of(server))
        if not connections:
            return UpstreamStatus(State.IDLE)
        links = [each.link for each in connections if each.link is not None]
        calls, starts = sum(link.users for link in links), sum(each.starts for each in connections)
        status = UpstreamStatus(State.IDLE, "", calls, starts, since=connections[0].since)
        if links and not any(link.ready.done() for link in links):
            return replace(status, state=State.CONNECTING)
        if server in self._quarantine:
            return replace(status, state=State.QUARANTINED, reason=str(self._quarantine[server]))
        if links:
            return replace(status, state=State.CONNECTED, left_out=links[0].left_out)
        if connections[0].failure is not None:
            return replace(status, state=State.FAILED, reason=str(connections[0].failure))
        return status

    async def statuses(self) -> dict[str, UpstreamStatus]:
        """Return the state of each server of `mcp.json`, also as other processes found it, without connecting."""
        found = {name: self.status(name) for name in (*self.configuration.servers, *self.configuration.problems)}
        for name in await self.quarantined() & self.configuration.enabled.keys():
            changed = await asyncio.to_thread(self._pins.quarantined, name)
            if changed:
                found[name] = replace(found[name], state=State.QUARANTINED, reason=str(refusal(name, changed)))
        return found

    def stderr_of(self, server: str) -> str:
        """Return the last of what the server wrote to its stderr, at most 64 KiB."""
        connection = next(self._connections.of(server), None)
        return "" if connection is None else connection.stderr.text

    async def _connection(self, config: ServerConfig, owner: SignInOwner) -> Connection:
        if not self._is_imported:
            await asyncio.to_thread(_import_client)
            self._is_imported = True
        return self._connections.get(config, owner, partial(self._made, config, owner))

    def _made(self, config: ServerConfig, owner: SignInOwner) -> Connection:
        from .connection import Connection
        from .link import LinkOptions

        options = LinkOptions(
            era=self._era,
            auth=lambda: self._auth(config, owner),
            elicit=self._elicit,
            on_listed=lambda tools: self._judge(config.name, tools),
            on_change=lambda: self._notify(config.name, owner),
            on_state=lambda: self._tell_state(connection, owner),
            read_large=self._read_large,
            in_thread=self._in_thread,
        )
        connection = Connection(config, options)
        return connection

    def _tell_state(self, connection: Connection, owner: SignInOwner) -> None:
        tell = self._on_state
        if tell is not None and owner == OPERATOR:  # the failure is read when the thread runs
            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, lambda: tell(connection.config.name, connection.failure))

    def _auth(self, config: ServerConfig, owner: SignInOwner) -> httpx2.Auth | None:
        if owner == OPERATOR and (self._sign_for is None or not can_sign_in(config)):
            return None
        if self._sign_for is None:
            raise AssertionError("nothing signs for owners")
        return self._sign_for(config, owner)

    def _judge(self, server: str, tools: tuple[RawTool, ...]) -> RegistryError | None:
        """Pin and compare what a server lists; called in a thread, for each list."""
        try:
            self._seen[server] = self._pins.see(server, tools)
            changed = self._pins.quarantined(server)
        except RegistryError as error:
            return error
        if not changed:
            return None
        if server not in self._quarantine:
            _LOG.warning("The upstream server %s is quarantined: what it says about its tools changed.", server)
        self._quarantine[server] = refusal(server, changed)
        return self._quarantine[server]

    async def _refuse_quarantined(self, server: str) -> None:
        """Refuse without starting the server; another process may have accepted it in the meantime."""
        changed = await asyncio.to_thread(self._pins.quarantined, server)
        if changed:
            self._quarantine[server] = refusal(server, changed)
            raise self._quarantine[server]
        if self._quarantine.pop(server, None) is not None:
            for connection in self._connections.of(server):
                connection.renew()

    def _notify(self, server: str, owner: SignInOwner) -> None:
        if self._on_list_changed is None:
            return

        async def notifying(tell: OnListChanged) -> None:
            await tell(server, owner)

        task = asyncio.get_running_loop().create_task(
            notifying(self._on_list_changed), name=f"tools of {server} changed"
        )
        self._notifications.add(task)
        task.add_done_callback(self._notifications.discard)


def _import_client() -> None:
    """Import the SDK's client, which takes long enough to be done in a thread."""
    from .link import quiet_sdk

    quiet_sdk()


def flags_of(tool: RawTool) -> tuple[str, ...]:
    """Return what in a tool's definition speaks to the model, see `injection.flags`."""
    return flags(str(tool.get("description", "")), tool.get("input_schema", {}), str(tool.get("title", "")))


def _info(config: ServerConfig, link: UpstreamLink) -> ServerInfo:
    said = link.client.server_info
    return ServerInfo(
        name=said.name if said else config.name,
        version=said.version if said else "",
        protocol="OpenAPI" if config.type is Transport.OPENAPI else link.client.protocol_version,
        instructions=link.client.instructions or "",
    )
