"""Failures of single MCP messages, as JSON-RPC errors of our own, whose data says what happened."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from enum import StrEnum

from mcp.types import ErrorData

FAULT_CODE = -32097
"""The JSON-RPC error code of our own answers; from the range that servers may define, so `data` decides."""

_MARK = f"sealab.fault.{secrets.token_hex(8)}"
"""No server knows it, so none can say that a message of its own was not sent."""
EVENT_BYTES_MAX = 1 << 20
"""An event over HTTP that is not one line of `data:`, or no answer: it is read in the event loop."""
MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""The largest message that is taken from a server, over any transport."""


class MessageFault(StrEnum):
    """What happened to a message."""

    NOT_SENT = "not_sent"
    CUT_OFF = "cut_off"
    STATUS = "status"
    NOT_MCP = "not_mcp"
    BAD_ANSWER = "bad_answer"
    TOO_LARGE = "too_large"
    SIGN_IN = "sign_in"


@dataclass(frozen=True, slots=True)
class HttpFault:
    """What happened to a message, the HTTP status if there was one (else 0), and a short text on it.

    `scope` is what a server asks a new sign-in to have.
    """

    fault: MessageFault
    status: int
    detail: str
    scope: str | None = None


def fault_in(data: object) -> HttpFault | None:
    """Return the fault in the data of an MCP error, or None where the error is not one of ours."""
    if not isinstance(data, dict) or not isinstance(fault := data.get(_MARK), dict):
        return None
    return HttpFault(MessageFault(fault["fault"]), fault["status"], fault["detail"], fault["scope"])


def error_of(fault: HttpFault) -> ErrorData:
    """Return the MCP error for a fault; `fault_in` reads it."""
    return ErrorData(code=FAULT_CODE, message=fault.detail or fault.fault.value, data={_MARK: asdict(fault)})
