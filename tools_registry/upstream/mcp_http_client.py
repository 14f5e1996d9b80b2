"""An HTTP client for MCP in which a failure ends one message and not the connection.

The SDK lets a failed request end the whole connection, and with it every other call under way, and does not report
a status such as 401 or 503. Here each message that cannot be delivered is answered by a JSON-RPC error of our own,
whose data says what happened and whether the server can have seen the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from typing_extensions import override

from ..errors import SignInNeeded
from ..http_bodies import BodyTooLarge, bounded_body
from ..json_lines import LARGE_CHARS, Edges
from ..untraced import headers_of
from .message_faults import MESSAGE_BYTES_MAX, HttpFault, MessageFault, error_of
from .reading import Answers, is_read_by_sdk

_EXCERPT_CHARS = 300
_ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "content-type", "transfer-encoding"})

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
        # Of a redirect it would be a stream.
        message = await request.aread()
        request.headers.update(headers_of(message))
        try:
            response = await super().send(request, **options)
        except SignInNeeded as error:
            return _answer(request, HttpFault(MessageFault.SIGN_IN, 401, str(error), error.scope), 401)
        except NOT_SENT as error:
            return _answer(request, HttpFault(MessageFault.NOT_SENT, 0, _described(error)), 503)
        except httpx2.TransportError as error:
            return _answer(request, HttpFault(MessageFault.CUT_OFF, 0, _described(error)), 502)
        if response.next_request is not None:
            if response.status_code in _REDIRECTS_AS_READ:
                url, headers = response.next_request.url, request.headers
                response.next_request = self.build_request("POST", url, headers=headers, content=message)
            return response
        number = Edges.of(message).asks
        if not response.is_success:
            return await self._refused(request, response, number)
        # A notification or an answer is taken by a status alone, whatever stands in the header.
        if b'"id"' not in message or (number is None and response.status_code == httpx2.codes.ACCEPTED):
            return response
        if _content_type(response) == "text/event-stream":
            return await self._streamed(request, response, number)
        return await self._answered_whole(request, response, number)

    async def _listened(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return the answer to a request that has no message: where it is a stream, its events are bounded."""
        if _content_type(response) == "text/event-stream":
            if _is_packed(response):
                await response.aclose()
                return httpx2.Response(httpx2.codes.BAD_GATEWAY, request=request)
            if self.answers is not None:
                response.stream = _Events(response.stream, self.answers, None)
        return response

    async def _streamed(
        self, request: httpx2.Request, response: httpx2.Response, number: int | str | None
    ) -> httpx2.Response:
        """Return the answer to a message as a stream that ends without an exception, its events bounded."""
        if _is_packed(response):
            await response.aclose()
            return _answer(request, HttpFault(MessageFault.NOT_MCP, 0, "an event stream that is packed"), 502)
        contained = _Contained(response.stream)
        response.stream = contained if self.answers is None else _Events(contained, self.answers, number)
        return response

    async def _answered_whole(
        self, request: httpx2.Request, response: httpx2.Response, number: int | str | None
    ) -> httpx2.Response:
        """Return the answer to a message in one piece, whatever its header calls it, or the small one for it."""
        whole = await _whole(request, response)
        if self.answers is None or not whole.is_success:
            return whole
        body = whole.content
        if body.lstrip().startswith((b"data:", b"event:", b"id:")):
            return _with(whole, body, stream=_Events(httpx2.ByteStream(body), self.answers, number))
        if is_read_by_sdk(body, number):
            return whole
        small = await self.answers.stand_ins(body, number)
        if len(small) > 1:
            return _with(whole, b"", stream=httpx2.ByteStream(b"".join(b"data: %b\n\n" % each for each in small)))
        if small:
            return _with(whole, small[0])
        detail = f"{_content_type(response) or 'no content type'}: {_excerpt(body)}"
        if not body:
            detail = f"nothing, with HTTP status {whole.status_code}"
        elif len(body) > LARGE_CHARS:
            detail = "a large text that is no answer"
        return _answer(request, HttpFault(MessageFault.NOT_MCP, whole.status_code, detail), httpx2.codes.BAD_GATEWAY)

    async def _refused(
        self, request: httpx2.Request, response: httpx2.Response, number: int | str | None
    ) -> httpx2.Response:
        """Read a refusal; one that is a JSON-RPC error is returned as that."""
        whole = await _whole(request, response)
        status = response.status_code
        body = whole.content if whole.status_code == status else b""
        if "mcp-session-id" in request.headers and (status in _GONE or (status in _BAD and _SESSION.search(body))):
            status = int(httpx2.codes.NOT_FOUND)  # which says that the session is over
        elif b'"jsonrpc"' in body and b'"error"' in body:
            small = [] if self.answers is None else await self.answers.stand_ins(body, number)
            return httpx2.Response(200, headers=_JSON, content=small[0], request=request) if small else whole
        fault = HttpFault(MessageFault.STATUS, status, _excerpt(body))
        return _answer(request, fault, status if response.is_error else httpx2.codes.BAD_GATEWAY)


_JSON = {"content-type": "application/json"}
_REDIRECTS_AS_READ = frozenset({301, 302})
"""After which a client may send the same again, and httpx reads. Source: RFC 9110, sections 15.4.2 and 15.4.3."""
_GONE = frozenset({404, 410})
_BAD = frozenset({400, 401, 422})
_SESSION = re.compile(rb"(?i)\bsession\b|not initialized|initialize request")
"""What servers say with other statuses than 404 of a session that they do not know."""


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


def _with(response: httpx2.Response, body: bytes, stream: httpx2.AsyncByteStream | None = None) -> httpx2.Response:
    """Return the response with this JSON text instead of its own body, or with this stream of events."""
    kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _ABOUT_THE_BODY]
    if stream is not None:
        kept.append(("content-type", "text/event-stream"))
        return httpx2.Response(response.status_code, headers=kept, stream=stream, request=response.request)
    return httpx2.Response(
        response.status_code, headers=[*kept, *_JSON.items()], content=body, request=response.request
    )


def _content_type(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _is_packed(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-encoding", "identity")).strip().lower() not in {"", "identity"}


def _excerpt(body: bytes) -> str:
    return " ".join(body[: 4 * _EXCERPT_CHARS].decode(errors="replace").split())[:_EXCERPT_CHARS]


def _answer(request: httpx2.Request, fault: HttpFault, status: int) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": error_of(fault).model_dump()}
    return httpx2.Response(status, headers=_JSON, content=json.dumps(body).encode(), request=request)


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
    """A stream of events in which small answers stand in for others, all to one request if it has a `number`."""

    def __init__(
        self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, answers: Answers, number: int | str | None
    ) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream = stream
        self._answers = answers
        self._number = number

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answers.of_events(self._stream, self._number):
            yield chunk

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__
