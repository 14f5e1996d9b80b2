"""What the log may say: under `PRIVACY=auto` where something failed and how, never with what.

A security boundary. The SDK logs the texts of failed tools and the tracebacks of faults, and either may hold values. Of
messages that it cannot read, and of whatever else pydantic refuses with the input in its text, that holds in all modes.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterator

_FRAMES_MAX = 6
_OF_SDK = frozenset({"mcp", "client"})
"""What the names of the SDK's loggers begin with: its client's session says `client` alone."""
_CHANGED = tuple(f"{each}/list_changed" for each in ("prompts", "resources", "roots", "tools"))
_KINDS = frozenset(
    f"notifications/{each}"
    for each in ("cancelled", "initialized", "message", "progress", "resources/updated", *_CHANGED)
)


class WithoutValues(logging.Filter):
    """Takes out of a record what may hold values: the message of an exception, and what the SDK says of a call."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; it is always logged."""
        if isinstance(record.args, tuple):
            record.args = tuple(_without_file(each) if isinstance(each, OSError) else each for each in record.args)
        said = _said_by_sdk(record) if _is_of_sdk(record) else record.getMessage()
        if record.name == "asyncio":
            said = said.partition("\n")[0]  # what follows shows futures with their results and exceptions
        if record.exc_info:
            kind, _error, trace = record.exc_info
            frames = traceback.extract_tb(trace)[-_FRAMES_MAX:]
            places = " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in reversed(frames))
            said = f"{said} ({kind.__name__ if kind else 'an error'} at {places})"
        record.msg, record.args, record.exc_info, record.exc_text = said, (), None, None
        return True


class WithoutInputs(WithoutValues):
    """Takes values out of what the SDK logs, and of what tells of an error that pydantic raised."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record where it may hold a part of a message; it is always logged."""
        said = record.args if isinstance(record.args, tuple) else ()
        if any(_shows_input(each) for each in said if isinstance(each, BaseException)):
            record.args = tuple(type(each).__name__ if isinstance(each, BaseException) else each for each in said)
        raised = None if record.exc_info is None else record.exc_info[1]
        if _is_of_sdk(record) or (raised is not None and _shows_input(raised)):
            return super().filter(record)
        return True


def _without_file(error: OSError) -> str:
    """Return what went wrong without the file: its name may be one that was restored."""
    return f"{type(error).__name__}: {error.strerror}" if error.filename is not None else str(error)


def _said_by_sdk(record: logging.LogRecord) -> str:
    """Return a message without what is put into it, except for the names of notifications that MCP has."""
    given = record.args if isinstance(record.args, tuple) else ()
    try:
        return str(record.msg) % tuple(each if isinstance(each, str) and each in _KINDS else "…" for each in given)
    except (TypeError, ValueError):  # it wants a number, or has a percent sign of its own
        return str(record.msg)


def _is_of_sdk(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in _OF_SDK


def _shows_input(error: BaseException) -> bool:
    """Return whether pydantic raised an error, or one that came before or stands in it."""
    return any(type(each).__module__.startswith("pydantic") for each in _with_causes(error))


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__]
            waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()


def install() -> None:
    """Filter everything that this process logs."""
    for handler in logging.getLogger().handlers:
        if not any(type(each) is WithoutValues for each in handler.filters):
            handler.addFilter(WithoutValues())
