"""Turns the answer of a service into the result of a tool, as MCP has it: JSON, text, a picture or a file.

A status that is no success is a tool's failure, in the words of the service. Source: RFC 9457 for where they stand.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from ..charsets import charset_of
from ..errors import sentence
from ..json_lines import LARGE_CHARS, ReadJson
from ..models import Json
from ..upstream.message_faults import MessageFault
from .document import mapping
from .exchange import ExchangeFailed, ServiceResponse
from .operations import Operation
from .responses import is_json, is_lines

MESSAGE_CHARS_MAX: Final = 2_000
"""Characters of a refusal that are given."""

_MESSAGES = ("detail", "message", "error_description", "error", "title", "errors")
_DETAILS = ("errors", "details", "invalid-params", "invalid_params", "violations")
_TEXTS = frozenset({"application/xml", "application/yaml", "application/x-yaml", "application/javascript"})
_REASON_CHARS = 60


async def result_of(operation: Operation, answer: ServiceResponse, read_large: ReadJson) -> dict[str, Json]:
    """Return the result of a call. Raises `ExchangeFailed` where the answer is not what it says it is."""
    if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return {"isError": True, "content": [{"type": "text", "text": await _refusal(operation, answer)}]}
    if operation.method == "head":
        return _value(dict(answer.headers.items()))
    if not answer.body:
        created = answer.headers.get("location")
        return _value(None if created is None else {"location": str(created)})
    if is_json(answer.media_type):
        return _value(await _json_or_lines(_decoded(answer), read_large))
    if is_lines(answer.media_type):
        return _value(await asyncio.to_thread(_lines, _decoded(answer)))
    if answer.media_type.startswith("text/") or answer.media_type in _TEXTS or answer.media_type.endswith("+xml"):
        return _value(_decoded(answer))
    if not answer.media_type and _is_text(answer.body):
        text = _decoded(answer)
        with suppress(ExchangeFailed):
            return _value(await _json_or_lines(text, read_large))
        return _value(text)
    return {"content": [await asyncio.to_thread(_attachment, operation, answer)]}


def _value(value: Json) -> dict[str, Json]:
    return {"content": [], "structuredContent": {"result": value}}


async def _json_or_lines(text: str, read_large: ReadJson) -> Json:
    """Return the value of a JSON text, or of several on a line each, which some services call the same."""
    try:
        return await _json(text, read_large)
    except ExchangeFailed:
        values = await asyncio.to_thread(_lines, text)
        if isinstance(values, str):
            raise
        return values


async def _json(text: str, read_large: ReadJson) -> Json:
    try:
        if len(text) > LARGE_CHARS:
            try:
                return await read_large(text)
            except Exception as error:  # noqa: BLE001 - whatever keeps it from reading one ends no connection
                raise ExchangeFailed(MessageFault.BAD_ANSWER, f"JSON that cannot be read ({error!s:.100})") from None
        parsed: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExchangeFailed(MessageFault.BAD_ANSWER, f"JSON that cannot be read ({error!s:.100})") from None
    return parsed


def _decoded(answer: ServiceResponse) -> str:
    """Return the text of a body: in the character set that it names, else UTF-8, else what all bytes are texts in."""
    charset = charset_of(str(answer.headers.get("content-type", "")))
    if charset is None:
        with suppress(UnicodeDecodeError):
            return answer.body.decode("utf-8-sig")
    return answer.body.decode(charset or "latin-1", "replace").removeprefix("\ufeff")


def _is_text(body: bytes) -> bool:
    """Return whether bytes of an unnamed type are text: UTF-8 without the characters that texts do not have."""
    if b"\0" in body:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _lines(text: str) -> Json:
    """Return the values of a text with one JSON text on each line; the text itself where one of them cannot be read."""
    try:
        return [json.loads(line) for each in text.split("\n") if (line := each.strip("\r\t \x1e"))]
    except (ValueError, RecursionError):
        return text


def _attachment(operation: Operation, answer: ServiceResponse) -> Json:
    data = base64.b64encode(answer.body).decode()
    media_type = answer.media_type or "application/octet-stream"
    for kind in ("image", "audio"):
        if media_type.startswith(f"{kind}/") and media_type != "image/svg+xml":
            return {"type": kind, "data": data, "mimeType": media_type}
    return {
        "type": "resource",
        "resource": {"uri": f"openapi:{operation.name}", "mimeType": media_type, "blob": data},
    }


async def _refusal(operation: Operation, answer: ServiceResponse) -> str:
    reason = f" {answer.reason[:_REASON_CHARS]}" if answer.reason.isascii() and answer.reason.isprintable() else ""
    said = f"HTTP {answer.status}{reason}"
    if answer.location:
        return f"{said}: it leads to {answer.location[:200]!r}, which is not followed. Correct the url in mcp.json."
    message = await _message(answer)
    said = f"{said}: {message}" if message else f"{said}."
    if answer.status == HTTPStatus.UNAUTHORIZED:
        return f'{said} Have the user give its key in "headers" of mcp.json.'
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not operation.only_reads:
        return f"{said} It may have done its work: look before calling it again."
    return said


async def _message(answer: ServiceResponse) -> str:
    """Return what a refusal says, as one line that ends in a full stop."""
    is_short = len(answer.body) <= LARGE_CHARS
    text = _decoded(answer) if is_short else answer.body[: 4 * LARGE_CHARS].decode("utf-8", "replace")
    if is_json(answer.media_type) and is_short:
        with suppress(ValueError, RecursionError):
            text = _found(json.loads(text)) or text
    text = " ".join(text[: 4 * MESSAGE_CHARS_MAX].split())
    if len(text) > MESSAGE_CHARS_MAX:
        return f"{text[:MESSAGE_CHARS_MAX]}…"
    return text if text.endswith(("}", "]")) else sentence(text)


def _found(value: Json) -> str:
    for key in _MESSAGES:
        found = mapping(value).get(key)
        if isinstance(found, Mapping):
            found = _found(found)
        if found and isinstance(found, str | list):
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
            more = next((more for each in _DETAILS if each != key and (more := mapping(value).get(each))), None)
            return f"{text.rstrip('.: ')}: {json.dumps(more, ensure_ascii=False)}" if more else text
    return ""
