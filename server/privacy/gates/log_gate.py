"""What the log may say under `PRIVACY=auto`: where something failed and how, never with what.

A security boundary. The SDK logs the texts of failed tools and the tracebacks of faults, and either may hold values.
"""

from __future__ import annotations

import logging
import os
import traceback

_FRAMES_MAX = 6


class WithoutValues(logging.Filter):
    """Takes out of a record what may hold values: the message of an exception, and what the SDK says of a call."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; it is always logged."""
        said = str(record.msg if record.name.partition(".")[0] == "mcp" else record.getMessage())
        if record.name == "asyncio":
            said = said.partition("\n")[0]  # what follows shows futures with their results and exceptions
        if record.exc_info:
            kind, _error, trace = record.exc_info
            frames = traceback.extract_tb(trace)[-_FRAMES_MAX:]
            places = " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in reversed(frames))
            said = f"{said} ({kind.__name__ if kind else 'an error'} at {places})"
        record.msg, record.args, record.exc_info, record.exc_text = said, (), None, None
        return True


def install() -> None:
    """Have everything that this process logs go through the filter."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(each, WithoutValues) for each in handler.filters):
            handler.addFilter(WithoutValues())
