"""An HTTP client for MCP in which a failure ends one message and not the connection.

The SDK lets a failed request end the whole connection, and with it every other call under way, and does not report
a status such as 401 or 503. Here each message that cannot be delivered is answered by a JSON-RPC error of our own,
whose data says what happened and whether the server can have seen the message.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from typing_extensions import override

from ..errors import SignInNeeded
from ..http_bodies import BodyTooLarge, bounded_body
from ..json_lines import LARGE_CHARS
from ..untraced import headers_of
from .message_faults import MESSAGE_BYTES_MAX, HttpFault, MessageFault, error_of
from .reading import Answers, is_read_by_sdk

_EXCERPT_CHARS = 300
_ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})

NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)
"""Errors after which a request cannot have been seen by its server."""


class McpHttpClient(httpx2.AsyncClient):
    """Sends MCP messages; only `POST` carries one, so only its failures are answered here.

    `answers` reads what the SDK would not, where it is set.
    """

    answers: Answers | None = None

    @override
    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; a message that fails is answered by an error of ours instead of an exception."""
        # What is packed would be bounded before it is unpacked.
        request.headers["accept-encoding"] = "identity"
        if request.method != "POST":
            return await self._listened(request, await super().send(request, **options))
        request.headers.update(headers_of(request.content))
        try:
            response = await super().send(request, **options)
        except SignInNeeded as error:
            return _answer(request, HttpFault(MessageFault.SIGN_IN, 401, str(error), error.scope), 401)
        except NOT_SENT as error:
            return _answer(request, HttpFault(MessageFault.NOT_SENT, 0, _described(error)), 503)
        except httpx2.TransportError as error:
            return _answer(request, HttpFault(MessageFault.CUT_OFF, 0, _described(error)), 502)
        if response.has_redirect_location or response.status_code == httpx2.codes.ACCEPTED:
            return response
        content_type = _content_type(response)
        if not response.is_success:
            return await _refused(request, response, MessageFault.STATUS, content_type)
        # A notification is answered by a status alone, whatever stands in the header.
        if content_type == "text/event-stream" or b'"id"' not in request.content:
            return await self._streamed(request, response)
        if content_type == "application/json":
            return await self._answered_whole(request, response)
        return await _refused(request, response, MessageFault.NOT_MCP, content_type)

    async def _listened(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return the answer to a request that has no message: where it is a stream, its events are bounded."""
        if _content_type(response) == "text/event-stream":
            if _is_packed(response):
                await response.aclose()
                return httpx2.Response(httpx2.codes.BAD_GATEWAY, request=request)
            if self.answers is not None:
                response.stream = _Events(response.stream, self.answers)
        return response

    async def _streamed(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return the answer to a message as a stream that ends without an exception, its events bounded."""
        if _is_packed(response):
            await response.aclose()
            return _answer(request, HttpFault(MessageFault.NOT_MCP, 0, "an event stream that is packed"), 502)
        contained = _Contained(response.stream)
        response.stream = contained if self.answers is None else _Events(contained, self.answers)
        return response

    async def _answered_whole(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return the answer to a message in one piece, a large one as the small one that stands for it."""
        whole = await _whole(request, response)
        if self.answers is None or is_read_by_sdk(whole.content):
            return whole
        small = await self.answers.stand_in(whole.content)
        if small is None and len(whole.content) <= LARGE_CHARS:
            return whole
        if small is None:
            fault = HttpFault(MessageFault.NOT_MCP, response.status_code, "a large text that is no answer")
            return _answer(request, fault, httpx2.codes.BAD_GATEWAY)
        return _with(whole, small)


async def _whole(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Read an answer that is one JSON text, as far as its bound; what it was packed into counts unpacked."""
    try:
        body = await bounded_body(response.aiter_bytes(), MESSAGE_BYTES_MAX)
    except BodyTooLarge as error:
        return _answer(request, HttpFault(MessageFault.TOO_LARGE, 0, str(error)), httpx2.codes.BAD_GATEWAY)
    except httpx2.TransportError as error:
        fault = HttpFault(MessageFault.CUT_OFF, 0, f"the answer broke off: {_described(error)}")
        return _answer(request, fault, httpx2.codes.BAD_GATEWAY)
    except httpx2.DecodingError as error:
        fault = HttpFault(MessageFault.NOT_MCP, 0, _described(error))
        return _answer(request, fault, httpx2.codes.BAD_GATEWAY)
    finally:
        await response.aclose()
    return _with(response, body)


def _with(response: httpx2.Response, body: bytes) -> httpx2.Response:
    """Return the response with this body instead of its own."""
    kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _ABOUT_THE_BODY]
    return httpx2.Response(response.status_code, headers=kept, content=body, request=response.request)


def _content_type(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _is_packed(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-encoding", "identity")).strip().lower() not in {"", "identity"}


async def _refused(
    request: httpx2.Request, response: httpx2.Response, kind: MessageFault, content_type: str
) -> httpx2.Response:
    """Read a refusal; one that is a JSON-RPC error is returned as it is."""
    whole = await _whole(request, response)
    body = whole.content if whole.status_code == response.status_code else b""
    expired = response.status_code == httpx2.codes.NOT_FOUND and "mcp-session-id" in request.headers
    if content_type == "application/json" and b'"jsonrpc"' in body and b'"error"' in body and not expired:
        return whole
    excerpt = " ".join(body[: 4 * _EXCERPT_CHARS].decode(errors="replace").split())[:_EXCERPT_CHARS]
    detail = excerpt if kind is MessageFault.STATUS else f"{content_type or 'no content type'}: {excerpt}"
    status = response.status_code if kind is MessageFault.STATUS else 502
    return _answer(request, HttpFault(kind, response.status_code, detail), status)


def _answer(request: httpx2.Request, fault: HttpFault, status: int) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": error_of(fault).model_dump()}
    return httpx2.Response(
        status, headers={"content-type": "application/json"}, content=json.dumps(body).encode(), request=request
    )


class _Contained(httpx2.AsyncByteStream):
    """The body of an answer: that it breaks off is an error of the stream, which the SDK keeps to the message."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream = stream

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except httpx2.TransportError as error:
            raise httpx2.StreamError(f"the answer broke off: {_described(error)}") from error

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()


class _Events(httpx2.AsyncByteStream):
    """A stream of events in which small answers stand in for large ones."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, answers: Answers) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream = stream
        self._answers = answers

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answers.of_events(self._stream):
            yield chunk

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__
