"""The HTTP+SSE transport of protocol 2024-11-05, which servers still use: one stream down, one POST per message.

The SDK's own ends at events above 1 MiB and leaves a call waiting whose POST was refused; this one answers it.
Source: https://modelcontextprotocol.io/specification/2024-11-05/basic/transports
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from .mcp_http_client import McpHttpClient
from .message_faults import MessageFault, fault_in

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_log = logging.getLogger(__name__)
_ENDPOINT_CHARS_MAX = 2_000
_Incoming = SessionMessage | Exception


class EndpointMissing(Exception):
    """The stream ended, or named an address of another origin, before it said where messages go."""


@asynccontextmanager
async def sse_streams(client: McpHttpClient, url: str, *, max_event_bytes: int) -> AsyncIterator[TransportStreams]:
    """Open the stream and give the two ends a session works with. Raises `httpx2.HTTPError` and `EndpointMissing`."""
    async with client.stream("GET", url, headers={"accept": "text/event-stream"}) as response:
        response.raise_for_status()
        incoming, read = anyio.create_memory_object_stream[_Incoming](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        async with read, write, incoming, outgoing, anyio.create_task_group() as tasks:
            tasks.start_soon(_receive, httpx2.EventSource(response, max_event_bytes), url, endpoint, incoming)
            try:
                address = await endpoint
            except EndpointMissing:
                tasks.cancel_scope.cancel()
                raise
            tasks.start_soon(_send_all, client, address, outgoing, incoming)
            yield read, write
            tasks.cancel_scope.cancel()


async def _receive(
    events: httpx2.EventSource,
    url: str,
    endpoint: asyncio.Future[str],
    incoming: MemoryObjectSendStream[_Incoming],
) -> None:
    async with incoming:
        try:
            async for event in events:
                if event.event == "endpoint" and not endpoint.done():
                    endpoint.set_result(_same_origin(url, event.data))
                elif event.event == "message" and event.data:
                    await incoming.send(_message(event.data))
        except (EndpointMissing, httpx2.HTTPError) as error:
            if not endpoint.done():
                endpoint.set_exception(error if isinstance(error, EndpointMissing) else EndpointMissing(str(error)))
            _log.debug("the event stream ended: %s", error)
        except anyio.BrokenResourceError:
            return
        if not endpoint.done():
            endpoint.set_exception(EndpointMissing("the stream ended before it said where messages go"))


def _same_origin(url: str, named: str) -> str:
    """Return the endpoint that a server names, at its own origin; another's would be given this server's credentials.

    Joining and splitting an address that is not ASCII normalizes its host, in quadratic time.
    """
    if len(named) > _ENDPOINT_CHARS_MAX or not named.isascii():
        raise EndpointMissing(f"it sends messages to an address above {_ENDPOINT_CHARS_MAX} ASCII characters")
    endpoint = urljoin(url, named)
    here, there = urlsplit(url), urlsplit(endpoint)
    if here.hostname != there.hostname:
        raise EndpointMissing(f"it sends messages to another origin, {there.scheme}://{there.netloc}")
    # Behind a proxy a server does not know its own scheme and port.
    return there._replace(scheme=here.scheme, netloc=here.netloc).geturl()


def _message(data: str) -> _Incoming:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False))
    except ValueError as error:
        return error


async def _send_all(
    client: McpHttpClient,
    address: str,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[_Incoming],
) -> None:
    """Post each message in order of its coming; a slow answer to one holds up no other."""
    async with outgoing, anyio.create_task_group() as posts:
        async for each in outgoing:
            posts.start_soon(_post, client, address, each, incoming)


async def _post(
    client: McpHttpClient, address: str, each: SessionMessage, incoming: MemoryObjectSendStream[_Incoming]
) -> None:
    body = each.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    response = await client.post(address, json=body)
    if not isinstance(each.message, JSONRPCRequest):
        return
    try:
        answer = jsonrpc_message_adapter.validate_json(response.content, by_name=False)
    except ValueError:
        return
    if isinstance(answer, JSONRPCError):
        fault = fault_in(answer.error.data)
        if fault is not None and fault.fault is MessageFault.NOT_MCP:
            return  # such as “Accepted”: the answer comes on the stream
        answer = JSONRPCError(jsonrpc="2.0", id=each.message.id, error=answer.error)
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await incoming.send(SessionMessage(answer))
