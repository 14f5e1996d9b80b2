"""Reads the messages of clients as they are meant, and answers those that cannot be read.

Source: https://www.jsonrpc.org/specification, sections 4 to 5.1. MCP takes only integers and texts as the id of a
request; one with another id would count as a notification, and its sender would wait for an answer.
"""

from __future__ import annotations

import json
import re
from typing import cast

from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)

from ....sandbox.job import Json
from ....tools_registry.upstream import lenient

_ODD_ID = re.compile(rb'"id"\s*+:\s*+(?!"|-?[0-9]++\s*+[,}])')
"""A member of a message, or of its arguments, that is not an id as MCP has it."""


class Refused(JSONRPCError):
    """The error that answers a message of a client; its own errors answer requests of the server."""


def plain_message(text: bytes) -> JSONRPCMessage | None:
    """Return the message that a text holds exactly; None where `as_message` has to look at it."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None
    return None if isinstance(message, JSONRPCNotification) and b'"id"' in text else message


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
        return jsonrpc_message_adapter.validate_python(given, by_name=False)
    except ValueError:
        return refusal_of(INVALID_REQUEST, asked, "does not have the form of JSON-RPC 2.0. Give params as an object.")


def with_id(body: bytes) -> bytes | Refused:
    """Return a body in which a request has an id that the SDK takes for one, or the error that answers it."""
    if not _ODD_ID.search(body):
        return body
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body  # the SDK refuses it
    if not isinstance(value, dict) or "method" not in value or _is_id(value.get("id", 0)):
        return body
    message = as_message(value)
    return message if isinstance(message, Refused) else message.model_dump_json(exclude_unset=True).encode()


def _is_id(number: object) -> bool:
    return isinstance(number, int | str) and not isinstance(number, bool)


def refusal_of(code: int, number: int | str | None, what: str) -> Refused:
    """Return the error for a message; `what` follows "The message"."""
    return Refused(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=f"The message {what}"))
