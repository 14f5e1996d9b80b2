"""JSON-RPC messages as they are relayed: read whole, with every member that they have, and written again.

They are not read by the SDK's models, which drop members that they do not know. What is sent on is written from what
was looked at, so that a member cannot stand in a message twice and be looked at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from ....sandbox.job import Json
from ....sandbox.wire import bounded_json
from ....tools_registry.json_lines import LARGE_CHARS
from ...base.errors import HostWorkRefused
from ...base.host_work import Kind, in_thread
from ...use_cases.upstream_tools.large_json import VALUES_MAX, read_large

Message: TypeAlias = dict[str, Json]

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
PARSE_ERROR = -32700
CONNECTION_CLOSED = -32000
"""The code that the SDKs use where a connection ended before a request was answered."""


class UnrelayableLine(ValueError):
    """A line is not a message that can be relayed; the text says why, and never what stands in it."""


async def read_message(line: bytes) -> Message:
    """Return the message on a line; a large one is read in a thread. Raises `UnrelayableLine`."""
    try:
        if len(line) <= LARGE_CHARS:
            value = bounded_json.read(line, values_max=VALUES_MAX)
        else:
            value = await read_large(line.decode())
    except UnicodeDecodeError:
        raise UnrelayableLine("it is not UTF-8") from None
    except HostWorkRefused as refused:
        raise UnrelayableLine(str(refused)) from None
    except (ValueError, RecursionError) as error:
        raise UnrelayableLine(f"it is not JSON that can be taken ({_reason(error)})") from None
    if not isinstance(value, dict):
        raise UnrelayableLine("it is not a JSON object; batches are not taken")
    return value


async def written(message: Message) -> bytes:
    """Return a message as a line, its end included; a large one is written in a thread. Raises `ValueError`."""
    if bounded_json.is_light(message):
        text = bounded_json.write(message)
    else:
        text = await in_thread(Kind.ANSWERS, partial(bounded_json.write_in_steps, message), charged=False)
    # A lone surrogate has no bytes: it is written as the escape that it was read from.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def id_of(message: Mapping[str, Json]) -> int | str | None:
    """Return what a message is numbered by, or None where it has no such number."""
    number = message.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def method_of(message: Mapping[str, Json]) -> str | None:
    """Return the method of a request or a notification; None for an answer."""
    method = message.get("method")
    return method if isinstance(method, str) else None


def params_of(message: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the parameters of a request or a notification, empty where it has none."""
    params = message.get("params")
    return params if isinstance(params, Mapping) else {}


def error_answer(number: int | str | None, code: int, text: str) -> Message:
    """Return the answer that a request failed."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def mapping(value: Json) -> Mapping[str, Json]:
    """Return a value that is an object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def _reason(error: Exception) -> str:
    return str(error).partition(":")[0] if type(error) is ValueError else type(error).__name__
