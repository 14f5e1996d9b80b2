"""Reads the messages of clients as they are meant, and answers those that cannot be read.

Source: https://www.jsonrpc.org/specification, sections 4 to 5.1. MCP takes only integers and texts as the id of a
request; one with another id would count as a notification, and its sender would wait for an answer.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import cast

from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    InitializeRequestParams,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from ....sandbox.job import Json
from ....tools_registry.upstream import lenient

_ODD_ID = re.compile(rb'"id"\s*+:\s*+(?!"|-?[0-9]++\s*+[,}])')
"""A member of a message, or of its arguments, that is not an id as MCP has it."""
_ODD_PARAMS = re.compile(rb'"method"\s*+:\s*+"initialize"|"arguments"\s*+:\s*+"')
"""A member of a message that is looked at, since it may be odd."""


class Refused(JSONRPCError):
    """The error that answers a message of a client; its own errors answer requests of the server."""


def plain_message(text: bytes) -> JSONRPCMessage | None:
    """Return the message that a text holds exactly; None where `as_message` has to look at it."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None
    if isinstance(message, JSONRPCNotification) and b'"id"' in text:
        return None
    return None if _ODD_PARAMS.search(text) else message


def as_message(value: object) -> JSONRPCMessage:
    """Return the message that a value is, or the error that answers it."""
    given = lenient.message(cast("Json", value))
    if not isinstance(given, dict):
        return refusal_of(INVALID_REQUEST, None, "is no object. Send one with jsonrpc, id, method and params.")
    if isinstance(number := given.get("id"), float) and number.is_integer():
        given = {**given, "id": int(number)}
    number = given.get("id")
    if "id" in given and not _is_id(number):
        return refusal_of(INVALID_REQUEST, None, "has an id that is neither an integer nor a text. Give one that is.")
    asked = None if given.keys() & {"result", "error"} else cast("int | str | None", number)
    if given.get("jsonrpc") != "2.0":
        return refusal_of(INVALID_REQUEST, asked, 'has no "jsonrpc": "2.0". Add it.')
    if not isinstance(given.get("method", ""), str) or not given.keys() & {"method", "result", "error"}:
        return refusal_of(INVALID_REQUEST, asked, "has no method that is a text. Name one.")
    try:
        return jsonrpc_message_adapter.validate_python(_with_params(given), by_name=False)
    except ValueError:
        return refusal_of(INVALID_REQUEST, asked, "does not have the form of JSON-RPC 2.0. Give params as an object.")


def _with_params(given: dict[str, Json]) -> dict[str, Json]:
    """Return a request whose parameters have what MCP demands of a handshake, and arguments that are no text.

    Clients that people write by hand leave out what no server of theirs looks at.
    """
    params = given.get("params")
    params = params if isinstance(params, dict) else {}
    if given.get("method") == "tools/call" and isinstance(text := params.get("arguments"), str):
        with suppress(ValueError, RecursionError):
            read: Json = json.loads(text)
            if isinstance(read, dict):
                return {**given, "params": {**params, "arguments": read}}
    if given.get("method") == "initialize":
        try:
            InitializeRequestParams.model_validate(params, by_name=False)
        except ValidationError:
            version, offered, info = (params.get(key) for key in ("protocolVersion", "capabilities", "clientInfo"))
            named = info if isinstance(info, dict) else {"name": info}
            made: dict[str, Json] = {
                "protocolVersion": version if isinstance(version, str) else "",
                "capabilities": {key: each for key, each in offered.items() if isinstance(each, dict)}
                if isinstance(offered, dict)
                else {},
                "clientInfo": {key: str(named.get(key) or "") for key in ("name", "version")},
            }
            return {**given, "params": made}
    return given


def with_id(body: bytes) -> bytes | Refused:
    """Return a body in which a request has an id that the SDK takes for one, or the error that answers it."""
    if not _ODD_ID.search(body) and not _ODD_PARAMS.search(body):
        return body
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body  # the SDK refuses it
    if not isinstance(value, dict) or "method" not in value:
        return body
    if _is_id(value.get("id", 0)) and _with_params(value) is value:
        return body
    message = as_message(value)
    return message if isinstance(message, Refused) else message.model_dump_json(exclude_unset=True).encode()


def _is_id(number: object) -> bool:
    return isinstance(number, int | str) and not isinstance(number, bool)


def refusal_of(code: int, number: int | str | None, what: str) -> Refused:
    """Return the error for a message; `what` follows "The message"."""
    return Refused(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=f"The message {what}"))
