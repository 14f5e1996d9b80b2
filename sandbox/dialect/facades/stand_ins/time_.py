"""`time`: clocks, sleeping and formatting. Nothing that sets a clock."""

from __future__ import annotations

import _strptime  # type: ignore[import-not-found]  # the part of `time` that is written in Python
import time

from ... import green_threads

__all__ = ["sleep", "strptime"]

_parse = _strptime._strptime_time


def strptime(string: str, format: str = "%a %b %d %H:%M:%S %Y", /) -> time.struct_time:  # noqa: A002 - Python's own name
    """Parse a time. The real function imports its parser when it is called, in the name of the calling code."""
    parsed: time.struct_time = _parse(string, format)
    return parsed


def sleep(seconds: float, /) -> None:
    """Wait for so many seconds, in which other threads run. Raises as Python's own does."""
    if green_threads.are_there_others() and type(seconds) in {int, float} and seconds >= 0:
        green_threads.sleep(seconds)
    else:
        time.sleep(seconds)
