"""Opens the streams to one server, by stdio, HTTP or its OpenAPI document, and watches what comes in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TextIO, TypeVar

import httpx2
from mcp.client.streamable_http import streamable_http_client

from ..configuration import ServerConfig, Transport
from ..json_lines import ReadJson
from ..threads import InThread
from .mcp_http_client import McpHttpClient
from .message_faults import EVENT_BYTES_MAX
from .reading import Answers, Incoming
from .sse_transport import sse_streams
from .stdio_transport import stdio_streams

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from mcp.shared.message import SessionMessage

_S = TypeVar("_S", bound="ReadStream[Incoming] | WriteStream[SessionMessage]")


@dataclass(frozen=True, slots=True)
class InputWatch:
    """What is called for incoming garbage, and at the end of the input, neither of which the SDK reports."""

    on_garbage: Callable[[Exception], None]
    on_end: Callable[[], None]


@asynccontextmanager
async def opened(
    config: ServerConfig,
    *,
    stderr: TextIO,
    auth: httpx2.Auth | None,
    read_large: ReadJson,
    in_thread: InThread,
    watch: InputWatch,
) -> AsyncIterator[TransportStreams]:
    """Give a server's streams, the incoming one watched. Raises what the transport raises: `OSError`, HTTP errors."""
    answers = Answers(read_large)
    async with _streams(config, stderr, auth, answers, read_large=read_large, in_thread=in_thread) as (read, write):
        yield _Watched(read, watch, answers), _Noted(write, answers)


@asynccontextmanager
async def _streams(
    config: ServerConfig,
    stderr: TextIO,
    auth: httpx2.Auth | None,
    answers: Answers,
    *,
    read_large: ReadJson,
    in_thread: InThread,
) -> AsyncIterator[TransportStreams]:
    if config.type is Transport.STDIO:
        async with stdio_streams(config, stderr=stderr, read_large=read_large) as streams:
            yield streams
        return
    # How long an answer may take is the call's own matter, so reading has no time-out here.
    times = httpx2.Timeout(config.connect_timeout_seconds, read=None)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    if config.type is Transport.OPENAPI:
        from ..openapi.serving import openapi_streams

        async with (
            httpx2.AsyncClient(timeout=times, limits=limits) as client,
            openapi_streams(config, client, read_large=read_large, in_thread=in_thread) as streams,
        ):
            yield streams
        return
    async with McpHttpClient(headers=dict(config.headers), timeout=times, limits=limits, auth=auth) as client:
        client.answers = answers
        if config.type is Transport.SSE:
            async with sse_streams(client, config.url, max_event_bytes=EVENT_BYTES_MAX) as streams:
                yield streams
        else:
            async with streamable_http_client(
                config.url, http_client=client, max_sse_event_size=EVENT_BYTES_MAX
            ) as streams:
                yield streams


class _Wrapped(Generic[_S]):
    """A stream around another one, which it opens and closes."""

    def __init__(self, stream: _S, answers: Answers) -> None:
        self._stream = stream
        self._answers = answers

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class _Noted(_Wrapped["WriteStream[SessionMessage]"]):
    """A write stream that notes what is asked, so that the answers are read by what they answer."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        self._answers.asked(item)
        await self._stream.send(item)


class _Watched(_Wrapped["ReadStream[Incoming]"]):
    """A read stream that notifies its watch, and gives the messages for what stands in for them."""

    def __init__(self, stream: ReadStream[Incoming], watch: InputWatch, answers: Answers) -> None:
        super().__init__(stream, answers)
        self._watch = watch

    @property
    def last_context(self) -> object:
        """The sender's context, where the transport keeps it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Incoming:
        """Return the next message."""
        return self._checked(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            item = await self._stream.__anext__()
        except BaseException:
            self._watch.on_end()
            raise
        return self._checked(item)

    def _checked(self, item: Incoming) -> Incoming:
        if isinstance(item, Exception):
            self._watch.on_garbage(item)
        return self._answers.taken(item)
