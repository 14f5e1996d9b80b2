"""The server behind the guard, as a stream of whole messages: a process on two pipes, or an address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO

import anyio
from anyio.abc import Process
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from ....sandbox.wire import bounded_json
from ....tools_registry.configuration import ServerConfig
from ....tools_registry.json_lines import LARGE_CHARS, Lines, TooLong
from ....tools_registry.upstream.message_faults import MESSAGE_BYTES_MAX
from ....tools_registry.upstream.reading import as_sent
from ....tools_registry.upstream.stdio_transport import end_process, start_process
from ....tools_registry.upstream.transports import InputWatch, opened
from ...use_cases.upstream_tools.large_json import read_large, with_checkpoints
from .messages import Message, mapping, method_of, params_of, written

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_EXIT_SECONDS = 1.0
"""How long a process whose output has ended may take to end."""
_LOOK_SECONDS = 0.01
_MEMBERS = ("jsonrpc", "id", "method", "params", "result")
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


@dataclass(frozen=True, slots=True)
class Incoming:
    """What came from the server: a line that is still to be read, or a message, and how large it is."""

    line: bytes | TooLong | None = None
    message: Message | None = None

    @property
    def size(self) -> int:
        """How many bytes are held for it."""
        return len(self.line) if isinstance(self.line, bytes) else 0

    @property
    def is_large(self) -> bool:
        """Whether the event loop should not wait until it is read, or walked through."""
        if self.message is not None:
            return not bounded_json.is_light(self.message)
        return self.size > LARGE_CHARS


class GuardedServer(Protocol):
    """A server that is connected."""

    def incoming(self) -> AsyncIterator[Incoming]:
        """Give what comes, until the server has ended."""
        ...

    async def send(self, message: Message) -> None:
        """Send it a message; one to a server that has ended is dropped, since its end is reported by `incoming`."""
        ...

    async def fate(self) -> str:
        """Return how it ended, once it has."""
        ...


class ServerProcess:
    """A server on the two pipes of a process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._sending = anyio.Lock()

    async def incoming(self) -> AsyncIterator[Incoming]:
        """Give its lines."""
        assert self._process.stdout is not None
        cut = Lines(MESSAGE_BYTES_MAX)
        with suppress(*_GONE):
            while True:
                for line in cut.feed(await self._process.stdout.receive()):
                    if isinstance(line, TooLong) or line.strip():
                        yield Incoming(line)
        if (rest := cut.rest()) is not None:
            yield Incoming(rest)

    async def send(self, message: Message) -> None:
        """Write it a line."""
        assert self._process.stdin is not None
        line = await written(message)
        async with self._sending:
            with suppress(*_GONE):
                await self._process.stdin.send(line)

    async def fate(self) -> str:
        """Return how it ended."""
        with anyio.move_on_after(_EXIT_SECONDS):
            while self._process.returncode is None:  # noqa: ASYNC110 - it has no event of its own end alone
                await anyio.sleep(_LOOK_SECONDS)
        code = self._process.returncode
        return "closed its output" if code is None else f"ended with the exit code {code}"


class ServerAddress:
    """A server at an address: over HTTP each message has headers that repeat some of it."""

    def __init__(self, streams: TransportStreams) -> None:
        self._read, self._write = streams
        self._version: str | None = None
        self._headers_of_tools: dict[str, Mapping[tuple[str, ...], str]] = {}

    async def incoming(self) -> AsyncIterator[Incoming]:
        """Give its messages."""
        with suppress(*_GONE):
            while True:
                item = await self._read.receive()
                if isinstance(item, SessionMessage):
                    message = _as_message(item)
                    self._note(message)
                    yield Incoming(message=message)

    async def send(self, message: Message) -> None:
        """Send it a message. Raises `ValueError` for one that HTTP cannot carry."""
        headers = self._headers(message)
        item = SessionMessage(
            jsonrpc_message_adapter.validate_python(message, by_name=False), ClientMessageMetadata(headers=headers)
        )
        with suppress(*_GONE):
            await self._write.send(item)

    async def fate(self) -> str:
        """Return how it ended."""
        return "closed the connection"

    def _headers(self, message: Message) -> dict[str, str]:
        method, params = method_of(message), params_of(message)
        said = mapping(params.get("_meta")).get(_VERSION_KEY)
        if not isinstance(said, str) or method is None:
            return {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: said, MCP_METHOD_HEADER: method}
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call" and name in self._headers_of_tools:
                headers |= mcp_param_headers(self._headers_of_tools[name], mapping(params.get("arguments")))
        return headers

    def _note(self, message: Message) -> None:
        """Keep what later headers repeat: the version that was agreed on, and which arguments of tools."""
        result = mapping(message.get("result"))
        if isinstance(version := result.get("protocolVersion"), str):
            self._version = version
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            schema, name = mapping(tool).get("inputSchema"), mapping(tool).get("name")
            if isinstance(name, str) and find_invalid_x_mcp_header(schema) is None:
                self._headers_of_tools[name] = x_mcp_header_map(schema)


def _as_message(item: SessionMessage) -> Message:
    """Return a message as it came, and not what stands in for it."""
    model = item.message
    message: Message = {name: getattr(model, name) for name in _MEMBERS if name in model.model_fields_set}
    if isinstance(model, JSONRPCError):
        message["error"] = model.error.model_dump(by_alias=True, exclude_unset=True)
    elif isinstance(model, JSONRPCResponse):
        message["result"] = dict(as_sent(model.result))
    return message


@asynccontextmanager
async def process_of(config: ServerConfig, stderr: TextIO) -> AsyncIterator[ServerProcess]:
    """Start the server's process, which ends with the block. Raises `OSError` where it cannot be started."""
    process = await start_process(config, stderr)
    try:
        yield ServerProcess(process)
    finally:
        with anyio.CancelScope(shield=True):
            await end_process(process)


@asynccontextmanager
async def address_of(config: ServerConfig, stderr: TextIO) -> AsyncIterator[ServerAddress]:
    """Give the server at an address."""
    watch = InputWatch(on_garbage=lambda _error: None, on_end=lambda: None)
    async with opened(
        config, stderr=stderr, auth=None, read_large=read_large, in_thread=with_checkpoints, watch=watch
    ) as streams:
        yield ServerAddress(streams)
