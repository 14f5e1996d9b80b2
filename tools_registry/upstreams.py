"""All upstream MCP servers: each connected when it is first used, kept warm, and restarted after it died."""
# ruff: noqa: ARG002 - the signatures stand before the connections that use them

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from .configuration import Configuration
from .errors import ServerUnusable

RawTool = Mapping[str, object]
"""A tool as its server lists it: name, description, input_schema, output_schema, annotations, title; JSON values."""

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes the progress of a call so far, the total if known, and the server's message if it gave one."""

Keep = Callable[[bytes, str, str], Awaitable[str]]
"""Takes content with its MIME type and a name, keeps it, and returns the handle by which code can fetch it."""

OnListChanged = Callable[[str], Awaitable[None]]
"""Takes the name of a server whose tools changed."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A server's tools, and its version as it states it (empty where it does not)."""

    tools: tuple[RawTool, ...]
    version: str


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a connected server says about itself."""

    name: str
    version: str
    protocol: str
    instructions: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave: `value` is structured content, else parsed JSON, else text, with handles for the rest."""

    value: object


@dataclass(frozen=True, slots=True)
class Status:
    """How a server stands: `idle`, `connecting`, `connected`, `failed`, `quarantined`, `disabled` or `unusable`.

    `reason` says why where it cannot be used; `calls` counts those under way, `starts` the connections made so far.
    """

    state: str
    reason: str = ""
    calls: int = 0
    starts: int = 0


class Upstreams:
    """The servers of a configuration. Enter and leave it in one task; call it from any."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        state: Path | None = None,
        keep: Keep | None = None,
        on_list_changed: OnListChanged | None = None,
    ) -> None:
        """`state` is the folder where pins and sign-ins are kept; without one nothing outlives the object."""
        self.configuration = configuration
        self._state = state
        self._keep = keep
        self._on_list_changed = on_list_changed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, object],
        *,
        on_progress: OnProgress | None = None,
        timeout_seconds: float | None = None,
        keep: Keep | None = None,
    ) -> ToolResult:
        """Call a tool and return what it gave; `keep` goes before the one given at first.

        Raises a `RegistryError`: `ServerUnknown`, `ServerUnusable`, `Quarantined`, `ConnectFailed`, `SignInNeeded`,
        `CallRefused`, `ToolFailed`, `AnswerRefused`, `CallTimedOut`, `ConnectionLost`.
        """
        self.configuration.server(server)
        raise ServerUnusable(f"The server {server!r} cannot be called by this version. Use a later one.")

    async def list_tools(self, server: str) -> Listed:
        """Ask a server for all its tools. Raises as `call` does, without the errors of a tool."""
        self.configuration.server(server)
        raise ServerUnusable(f"The server {server!r} cannot be asked by this version. Use a later one.")

    async def server_info(self, server: str) -> ServerInfo:
        """Connect to a server, if it is not, and return what it says about itself. Raises as `list_tools`."""
        self.configuration.server(server)
        raise ServerUnusable(f"The server {server!r} cannot be asked by this version. Use a later one.")

    def status(self, server: str) -> Status:
        """Say how a server stands, without connecting."""
        if server in self.configuration.problems:
            return Status("unusable", self.configuration.problems[server])
        return Status("disabled" if self.configuration.servers[server].disabled else "idle")

    def stderr_of(self, server: str) -> str:
        """Return the last of what the server wrote to its stderr."""
        self.configuration.server(server)
        return ""
