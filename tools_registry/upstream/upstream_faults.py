"""Maps what went wrong with an upstream server to our own errors, which say what was wrong, then what to do.

The SDK raises `MCPError` for the server's errors as for its own (time-out, closed connection), plain `RuntimeError` for
what it cannot go on with, pydantic's `ValidationError` for an answer of the wrong shape, and exception
groups around whatever ended a transport.

A security boundary: one connection serves many callers. An error for a call quotes the answer to that call and nothing
else of the connection; what a server wrote beside its answers, and how it is configured, is for the operator alone.
"""

from __future__ import annotations

import json

import httpx2
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND, PARSE_ERROR, REQUEST_TIMEOUT
from pydantic import ValidationError

from ..configuration import ServerConfig, SignInOf, Transport
from ..errors import (
    AnswerRefused,
    CallRefused,
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    RegistryError,
    SignInNeeded,
    sentence,
)
from ..names import test_of
from ..short_values import is_small
from .message_faults import EVENT_BYTES_MAX, HttpFault, MessageFault, fault_in
from .results import ERROR_MAX_CHARS

_UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404
_SERVER_ERRORS = 500
_UNAVAILABLE = 503
_EVENT_TOO_LARGE = f"exceeded the {EVENT_BYTES_MAX} byte limit"
"""What the HTTP client says of an event above the bound that it was given."""


def leaf(error: BaseException) -> BaseException:
    """Return what went wrong, out of the groups around it; a cancellation beside it is its consequence."""
    while isinstance(error, BaseExceptionGroup):
        error = next((each for each in error.exceptions if isinstance(each, Exception)), error.exceptions[0])
    return error


def session_expired(error: MCPError) -> bool:
    """Return whether the server refused the call unseen, since it no longer knows the session."""
    fault = fault_in(error.error.data)
    return fault is not None and fault.fault is MessageFault.STATUS and fault.status == _NOT_FOUND


def never_sent(error: MCPError) -> bool:
    """Return whether the server cannot have seen the call."""
    fault = fault_in(error.error.data)
    return fault is not None and fault.fault is MessageFault.NOT_SENT


def of_connect(config: ServerConfig, error: BaseException, said: str) -> ConnectFailed:
    """Return the error for a connection that failed; `said` is what the server wrote, for people, or empty."""
    error = leaf(error)
    if isinstance(error, ConnectFailed):
        return error
    if isinstance(error, MCPError):
        if (fault := fault_in(error.error.data)) is not None:
            return _of_fault_at_connect(config, fault)
        if error.error.code == CONNECTION_CLOSED:
            return _failed(config, "ended before it answered", said, do=_of_end(config))
        return _failed(config, "refused to begin", f": {_short(error.error.message)}")
    if isinstance(error, OSError) and config.type is Transport.STDIO:
        return _of_start(config, error)
    if isinstance(error, httpx2.HTTPStatusError):
        return _of_fault_at_connect(config, HttpFault(MessageFault.STATUS, error.response.status_code, ""))
    if isinstance(error, httpx2.TransportError):
        return _of_fault_at_connect(config, HttpFault(MessageFault.NOT_SENT, 0, str(error) or type(error).__name__))
    if isinstance(error, ValidationError):
        return _failed(config, "answered what is not MCP", said)
    if isinstance(error, RegistryError):
        return _failed(config, f"cannot be used: {_short(str(error))}", said)
    return _failed(config, "cannot be used", f": {_short(str(error))}{said}")


def _failed(config: ServerConfig, what: str, more: str = "", *, do: str = "") -> ConnectFailed:
    """Return the error for a server that `what` is wrong with; `more` on that is for its operator alone."""
    what, do = f"The server {config.name!r} {what}", f"{do} See {test_of(config.name)}.".lstrip()
    return ConnectFailed(f"{sentence(what)} {do}", for_operator=f"{sentence(f'{what}{more}')} {do}")


def _of_end(config: ServerConfig) -> str:
    """Return what to do about a server that ends at once; a Docker MCP gateway mostly lacks a login or a secret."""
    if "docker" not in config.command or "gateway" not in config.args:
        return 'Correct "command", "args" or "env" in mcp.json.'
    return "Log in to its registries with `docker login`, and give its servers their secrets."


def _of_start(config: ServerConfig, error: OSError) -> ConnectFailed:
    what, why = "cannot be started", f": the command {config.command!r} gives “{error.strerror or error}”"
    if isinstance(error, FileNotFoundError):
        if config.cwd is not None and error.filename == config.cwd:
            return _failed(config, what, f": its folder {config.cwd!r} is not there", do='Correct "cwd" in mcp.json.')
        do = 'Install it, or correct "command" in mcp.json.'
        return _failed(config, what, f": its command {config.command!r} is not there", do=do)
    return _failed(config, what, why, do="Correct its entry in mcp.json.")


def _of_fault_at_connect(config: ServerConfig, fault: HttpFault) -> ConnectFailed:
    if fault.fault is MessageFault.SIGN_IN:
        return SignInNeeded(fault.detail, scope=fault.scope)
    if fault.status == _UNAUTHORIZED:
        return _sign_in(config)
    if fault.status == _FORBIDDEN:
        return _failed(config, "forbids access (403)", do="Check its headers in mcp.json.")
    check = "Check its url and type in mcp.json."
    if fault.fault is MessageFault.STATUS:
        return _failed(config, f"answered with HTTP status {fault.status}", _quoted(fault.detail), do=check)
    if fault.fault is MessageFault.TOO_LARGE:
        return _failed(config, "answered too much", _unquoted(fault.detail), do="Tell the server's author.")
    if fault.fault is MessageFault.NOT_MCP:
        return _failed(config, "answered what is not MCP", _quoted(fault.detail), do=check)
    return _failed(config, "cannot be reached", _unquoted(fault.detail), do="Start it, or correct its url in mcp.json.")


def _sign_in(config: ServerConfig) -> ConnectFailed:
    if config.sign_in is not SignInOf.OPERATOR:
        return SignInNeeded(
            f"The server {config.name!r} tells nothing without a sign-in of its {config.sign_in}. Call one of its "
            f"tools to sign in, or have the operator run {test_of(config.name)}."
        )
    if any(header.lower() == "authorization" for header in config.headers):
        return _failed(
            config, "does not accept its Authorization header (401)", do='Correct it in "headers" in mcp.json.'
        )
    wants, run = f"The server {config.name!r} wants a user to sign in", f"run {test_of(config.name)} in a terminal."
    if not config.headers:
        return SignInNeeded(f"{wants}. R{run[1:]}")
    more = f"{wants}, or does not accept its {_headers(config)} (401). Correct its entry in mcp.json, or {run}"
    return SignInNeeded(f"{wants}, or does not accept its headers (401). R{run[1:]}", for_operator=more)


def _headers(config: ServerConfig) -> str:
    """Name a server's headers, without their values."""
    return f"header{'s' * (len(config.headers) > 1)} {', '.join(sorted(config.headers))}"


def of_connect_timeout(config: ServerConfig, said: str) -> ConnectFailed:
    """Return the error for a server that did not get ready in time."""
    what = f"was not ready within {config.connect_timeout_seconds:g} seconds"
    return _failed(config, what, said, do='If it takes longer, raise its "connect_timeout_seconds" in mcp.json.')


def of_garbage(config: ServerConfig, excerpt: str) -> ConnectFailed:
    """Return the error for a server that wrote something else than MCP and then nothing."""
    return _failed(config, "wrote what is not MCP", f"{_quoted(excerpt)} and did not get ready")


def of_call_timeout(config: ServerConfig, what: str, seconds: float) -> CallTimedOut:
    """Return the error for a call without an answer in time."""
    return CallTimedOut(
        f"{what} of the server {config.name!r} gave no answer within {seconds:g} seconds; whether it did its "
        'work is unknown. Look before calling it again, or raise "call_timeout_seconds" in mcp.json.'
    )


def of_garbled(config: ServerConfig, what: str) -> AnswerRefused:
    """Return the error for a call whose answer was a message that cannot be read."""
    return AnswerRefused(f"{what} of the server {config.name!r} answered what is not MCP. {_DONE_OR_NOT}")


def of_call(config: ServerConfig, what: str, error: Exception) -> RegistryError:
    """Return the error for a call that failed on the way; `what` names the tool or request for people."""
    cause = leaf(error)
    name = config.name
    if isinstance(cause, RegistryError):
        return cause
    if isinstance(cause, MCPError):
        return _of_mcp_error(config, what, cause)
    if isinstance(cause, ValidationError):
        return AnswerRefused(f"{what} of the server {name!r} answered what is not an MCP result. {_DONE_OR_NOT}")
    if isinstance(cause, RuntimeError):
        detail = _short(str(cause).partition("\n")[0])
        error_text = sentence(f"{what} of the server {name!r} answered what cannot be used: {detail}")
        return AnswerRefused(f"{error_text} {_DONE_OR_NOT}")
    return _lost(config, what, f" ({type(cause).__name__})")


def _of_mcp_error(config: ServerConfig, what: str, error: MCPError) -> RegistryError:
    name, code, message = config.name, error.error.code, _short(error.error.message)
    if (fault := fault_in(error.error.data)) is not None:
        return _of_fault_in_call(config, what, fault)
    if code == CONNECTION_CLOSED and _EVENT_TOO_LARGE in message:
        fault = HttpFault(MessageFault.TOO_LARGE, 0, f"more than the {EVENT_BYTES_MAX} bytes that are taken")
        return _of_fault_in_call(config, what, fault)
    if code == CONNECTION_CLOSED:
        return _lost(config, what)
    if code == PARSE_ERROR and message.startswith("Failed to parse"):
        return AnswerRefused(f"{what} of the server {name!r} answered what is not MCP. {_DONE_OR_NOT}")
    if code == REQUEST_TIMEOUT:
        error_text = sentence(f"{what} of the server {name!r} timed out there: {message}")
        return CallTimedOut(f"{error_text} {_DONE_OR_NOT}")
    do = "See what it offers with search_tools." if code == METHOD_NOT_FOUND else "Look at the tool's definition."
    data = error.error.data
    more = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False) if is_small(data) else ""
    if data is not None and more.strip() and more not in message:
        message = f"{message.rstrip('.: ')}: {_short(more)}"
    error_text = f"{sentence(f'The server {name!r} refused {_inside(what)}: {message}')} {do}"
    return CallRefused(error_text, structured=data)


def _of_fault_in_call(config: ServerConfig, what: str, fault: HttpFault) -> RegistryError:
    name = config.name
    if fault.fault is MessageFault.CUT_OFF:
        return _lost(config, what, f" ({_short(fault.detail)})")
    if fault.fault is MessageFault.TOO_LARGE:
        error_text = sentence(f"{what} of the server {name!r} answered too much{_unquoted(fault.detail)}")
        return AnswerRefused(f"{error_text} {_DONE}")
    if fault.fault is MessageFault.NOT_MCP:
        error_text = sentence(f"{what} of the server {name!r} answered what is not MCP{_quoted(fault.detail)}")
        return AnswerRefused(f"{error_text} {_DONE_OR_NOT}")
    if fault.fault is MessageFault.BAD_ANSWER:
        error_text = sentence(f"{what} of the server {name!r} answered what cannot be used{_quoted(fault.detail)}")
        return AnswerRefused(f"{error_text} {_DONE_OR_NOT}")
    seen = fault.fault is MessageFault.STATUS and fault.status >= _SERVER_ERRORS and fault.status != _UNAVAILABLE
    status = f"with HTTP status {fault.status}{_quoted(fault.detail)}"
    if seen:
        return ConnectionLost(f"{sentence(f'The server {name!r} failed on {_inside(what)} {status}')} {_DONE_OR_NOT}")
    if fault.fault is MessageFault.STATUS and fault.status not in {_UNAUTHORIZED, _FORBIDDEN, _UNAVAILABLE}:
        return CallRefused(f"{sentence(f'The server {name!r} refused {_inside(what)} {status}')} See {test_of(name)}.")
    return _of_fault_at_connect(config, fault)


def _lost(config: ServerConfig, what: str, detail: str = "") -> ConnectionLost:
    return ConnectionLost(
        f"The connection to the server {config.name!r} ended during {_inside(what)}{detail}. {_DONE_OR_NOT}"
    )


_DONE_OR_NOT = "The outcome is unknown: look whether it did its work before calling it again."
_DONE = "It may have done its work; ask it for less, such as one page or a part."


def _inside(what: str) -> str:
    """Return what begins a sentence as it stands within one."""
    return f"{what[0].lower()}{what[1:]}"


def _quoted(text: str) -> str:
    return f": “{_short(text, 160)}”" if text else ""


def _unquoted(text: str) -> str:
    return f": {_short(text, 160)}" if text else ""


def _short(text: str, limit: int = ERROR_MAX_CHARS) -> str:
    text = text.strip()
    return text if len(text) <= limit else f"{text[:limit]}…"
