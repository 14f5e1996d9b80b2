"""Checks a large structured answer against its tool's own schema: in a thread, which ends when the call is cancelled.

The SDK checks in the event loop, at about half a million values a second.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from ..errors import AnswerRefused
from ..schema_checks import CheckEnded, end_of, endable, path_text

LIGHT_VALUES = 5_000
"""An answer with no more values than this is checked within a few tens of milliseconds."""

_MESSAGE_CHARS_MAX = 400


def is_large(value: object) -> bool:
    """Return whether a JSON value holds more than `LIGHT_VALUES` values; takes no longer than counting those."""
    left, waiting = LIGHT_VALUES, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            left -= len(each)
            if left < 0:
                return True
            waiting += each.values() if isinstance(each, dict) else each
    return False


async def check_large(schema: dict[str, Any], value: object) -> None:
    """Check a value. Raises `AnswerRefused`."""
    stopped = threading.Event()
    try:
        wrong = await asyncio.to_thread(_first_wrong, schema, value, stopped)
    finally:
        stopped.set()
    if wrong:
        raise AnswerRefused(
            f"The tool answered what breaks its own output schema: {wrong}. "
            "It may have done its work: look before calling it again."
        )


def _first_wrong(schema: dict[str, Any], value: object, stopped: threading.Event) -> str:
    """Return what is wrong with a value, or nothing."""
    import jsonschema  # noqa: F401 - whole, before any part of it
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    known = validator_for(schema)
    try:
        known.check_schema(schema)
        kind = endable(known, known.VALIDATORS, stopped.is_set)
        # An empty registry: a schema's reference is never fetched.
        error = next(kind(schema, registry=Registry()).iter_errors(value), None)
    except (SchemaError, Unresolvable) as unusable:
        return f"the schema cannot be used: {unusable}".partition("\n")[0][:_MESSAGE_CHARS_MAX]
    except CheckEnded:
        return ""
    if not isinstance(error, ValidationError):
        return ""
    path, message = path_text(error.absolute_path)[:_MESSAGE_CHARS_MAX], end_of(error.message, _MESSAGE_CHARS_MAX)
    return f"at {path}: {message}" if path else message
