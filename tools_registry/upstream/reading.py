"""Reads the messages of servers: a large one elsewhere, so that the event loop goes on meanwhile.

An answer that cannot be taken becomes an error for the one call it was for; the connection goes on.
"""

from __future__ import annotations

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, jsonrpc_message_adapter

from ..json_lines import LARGE_CHARS, Edges, ReadJson, TooLong
from .http_faults import MESSAGE_BYTES_MAX, Fault, HttpFault, error_of

_EXCERPT_CHARS = 160

Incoming = SessionMessage | Exception


class Unreadable(ValueError):
    """A message that cannot be read, and does not show which call it was for; the text is its beginning."""


async def message(line: bytes | TooLong, read_large: ReadJson) -> Incoming:
    """Return the message on one line, or what stands for it: an error for its call, else the exception."""
    if isinstance(line, TooLong):
        return _refused(line.edges, f"{line.size} bytes, and at most {MESSAGE_BYTES_MAX} are taken")
    try:
        text = line.decode("utf-8", "replace")
        if len(line) <= LARGE_CHARS:
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        value = await read_large(text)
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValueError as error:
        return error if len(line) <= LARGE_CHARS else _refused(Edges.of(line), str(error))


def _refused(edges: Edges, why: str) -> Incoming:
    number = edges.answers
    if number is None:
        return Unreadable(edges.head.decode("utf-8", "replace")[:_EXCERPT_CHARS])
    error = error_of(HttpFault(Fault.TOO_LARGE, 0, why[:_EXCERPT_CHARS]))
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))
