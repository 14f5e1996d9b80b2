"""Speaks MCP for a service that has an OpenAPI document: its operations are the tools of a server in this process.

So all that holds for servers holds for it: pins, policy, approval, time-outs, bounds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, cast

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from ..configuration import ServerConfig
from ..json_lines import ReadJson
from ..models import Json
from ..threads import Checkpoint, InThread
from ..upstream.lenient import LEFT_OUT
from ..upstream.message_faults import MESSAGE_BYTES_MAX, HttpFault, MessageFault, error_of
from .answers import result_of
from .call_requests import UnsendableArguments, request_of
from .document import base_of, read_document
from .exchange import ExchangeFailed, exchanged, without_cookies
from .operations import Service, read_service

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_PROTOCOL = "2025-11-25"
_PAGE_VALUES = 20_000
"""Values on one page of tools, about: a page is validated in the event loop."""
_PAGE_TOOLS = 500
_Incoming = SessionMessage | Exception


@asynccontextmanager
async def openapi_streams(
    config: ServerConfig, client: httpx2.AsyncClient, *, read_large: ReadJson, in_thread: InThread
) -> AsyncIterator[TransportStreams]:
    """Read the document and give the two ends a session works with. Raises `ConnectFailed`."""
    without_cookies(client)
    document = await read_document(config, client, read_large, in_thread)
    given = frozenset(name.lower() for name in config.headers)
    base = base_of(document, config)

    def read(check: Checkpoint) -> tuple[Service, list[list[Json]]]:
        service = read_service(document, base, given, check)
        return service, _pages(service, check)

    service, pages = await in_thread(read)
    server = _Server(config, client, service, pages, read_large)
    incoming, streamed = anyio.create_memory_object_stream[_Incoming](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with streamed, write, incoming, outgoing, anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, outgoing, incoming)
        yield streamed, write
        tasks.cancel_scope.cancel()


class _Server:
    """Answers the messages of one session."""

    def __init__(
        self,
        config: ServerConfig,
        client: httpx2.AsyncClient,
        service: Service,
        pages: list[list[Json]],
        read_large: ReadJson,
    ) -> None:
        self._config = config
        self._client = client
        self._service = service
        self._read_large = read_large
        self._pages = pages
        self._running: dict[int | str, anyio.CancelScope] = {}

    async def serve(
        self, outgoing: MemoryObjectReceiveStream[SessionMessage], incoming: MemoryObjectSendStream[_Incoming]
    ) -> None:
        """Answer each request in a task of its own, until there are no more."""
        async with anyio.create_task_group() as tasks:
            async for each in outgoing:
                message = each.message
                if isinstance(message, JSONRPCRequest):
                    tasks.start_soon(self._answer, message, incoming)
                elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                    scope = self._running.get(cast("int | str", (message.params or {}).get("requestId")))
                    if scope is not None:
                        scope.cancel()

    async def _answer(self, request: JSONRPCRequest, incoming: MemoryObjectSendStream[_Incoming]) -> None:
        with anyio.CancelScope() as scope:
            self._running[request.id] = scope
            try:
                message = await self._answered(request)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await incoming.send(SessionMessage(message))
            finally:
                self._running.pop(request.id, None)

    async def _answered(self, request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        params = request.params or {}
        answer = partial(JSONRPCResponse, jsonrpc="2.0", id=request.id)
        refuse = partial(JSONRPCError, jsonrpc="2.0", id=request.id)
        match request.method:
            case "initialize":
                return answer(result=self._greeting())
            case "ping":
                return answer(result={})
            case "tools/list":
                return answer(result=self._page(params.get("cursor")))
            case "tools/call":
                try:
                    return answer(result=await self._called(str(params.get("name")), params.get("arguments") or {}))
                except UnsendableArguments as error:
                    return refuse(error=ErrorData(code=INVALID_PARAMS, message=str(error)))
                except ExchangeFailed as error:
                    return refuse(error=error_of(error.fault))
                except Exception as error:  # noqa: BLE001 - what one call meets ends no other
                    fault = HttpFault(MessageFault.BAD_ANSWER, 0, str(error) or type(error).__name__)
                    return refuse(error=error_of(fault))
        return refuse(error=ErrorData(code=METHOD_NOT_FOUND, message="an OpenAPI service has tools alone"))

    def _greeting(self) -> dict[str, Json]:
        return {
            "protocolVersion": _PROTOCOL,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self._service.title or self._config.name, "version": self._service.release},
            **({"instructions": self._service.note} if self._service.note else {}),
        }

    def _page(self, cursor: object) -> dict[str, Json]:
        number = int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else 0
        following = {"nextCursor": str(number + 1)} if number + 1 < len(self._pages) else {}
        left_out: list[Json] = [] if number else [asdict(each) for each in self._service.left_out]
        return {"tools": self._pages[number], "_meta": {LEFT_OUT: left_out}, **following}

    async def _called(self, name: str, arguments: Mapping[str, Json]) -> dict[str, Json]:
        operation = self._service.operations.get(name)
        if operation is None:
            raise UnsendableArguments(f"there is no operation {name!r:.100}")
        request = request_of(self._client, operation, arguments, self._config.headers)
        answer = await exchanged(self._client, request, MESSAGE_BYTES_MAX)
        return await result_of(operation, answer, self._read_large)


def _pages(service: Service, check: Checkpoint) -> list[list[Json]]:
    """Part the tools into pages that are validated in little time each."""
    pages: list[list[Json]] = [[]]
    values = 0
    for operation in service.operations.values():
        check()
        here = _values(operation.tool)
        if pages[-1] and (values + here > _PAGE_VALUES or len(pages[-1]) >= _PAGE_TOOLS):
            pages.append([])
            values = 0
        pages[-1].append(operation.tool)
        values += here
    return pages


def _values(tool: Json) -> int:
    """Return how many values a tool has; what stands in several places counts in each, as when it is validated."""
    count = 0
    waiting: list[Json] = [tool]
    while waiting:
        each = waiting.pop()
        count += 1
        if isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return count
