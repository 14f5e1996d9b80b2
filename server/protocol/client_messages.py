"""Reads the messages of clients as they are meant, and answers those that cannot be read.

Source: https://www.jsonrpc.org/specification, sections 4 to 5.1. MCP takes only integers and texts as the id of a
request; one with another id would count as a notification, and its sender would wait for an answer.
"""

from __future__ import annotations

from typing import cast

from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)

from ...sandbox.job import Json
from ...tools_registry.upstream import lenient


def plain_message(text: bytes) -> JSONRPCMessage | None:
    """Return the message that a text holds exactly; None where `as_message` has to look at it."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None
    return None if isinstance(message, JSONRPCNotification) and b'"id"' in text else message


def as_message(value: Json) -> JSONRPCMessage:
    """Return the message that a value is, or the error that answers it."""
    given = lenient.message(value)
    if not isinstance(given, dict):
        return refusal_of(INVALID_REQUEST, None, "is no object. Send one with jsonrpc, id, method and params.")
    number, has_id = given.get("id"), "id" in given
    if isinstance(number, float) and number.is_integer():
        given = {**given, "id": (number := int(number))}
    can_answer = isinstance(number, int | str) and not isinstance(number, bool)
    asked = cast("int | str", number) if can_answer and not given.keys() & {"result", "error"} else None
    if has_id and not can_answer:
        return refusal_of(INVALID_REQUEST, None, "has an id that is neither an integer nor a text. Number it so.")
    if given.get("jsonrpc") != "2.0":
        return refusal_of(INVALID_REQUEST, asked, 'has no "jsonrpc": "2.0". Add it.')
    if not isinstance(given.get("method", ""), str) or not (given.keys() & {"method", "result", "error"}):
        return refusal_of(INVALID_REQUEST, asked, "has no method that is a text. Name one.")
    try:
        return jsonrpc_message_adapter.validate_python(given, by_name=False)
    except ValueError:
        return refusal_of(INVALID_REQUEST, asked, "does not have the form of JSON-RPC 2.0. Give params as an object.")


def refusal_of(code: int, number: int | str | None, what: str) -> JSONRPCError:
    """Return the error for a message; `what` follows "The message"."""
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=f"The message {what}"))
