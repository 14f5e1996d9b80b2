"""Reads large answers of upstream tools in a thread and in steps, so that the event loop goes on."""

from __future__ import annotations

from functools import partial

from ...sandbox.job import Json
from ...sandbox.wire.bounded_json import read_in_steps
from ..host_work import Kind, in_thread

VALUES_MAX = 4_000_000
"""JSON values in one answer of an upstream tool: a few hundred megabytes of memory at most."""


async def read_large(text: str) -> Json:
    """Read a JSON text. Raises `ValueError`, also for what is too deep or has more than `VALUES_MAX` values."""
    return await in_thread(Kind.ANSWERS, partial(_read, text))


def _read(text: str) -> Json:
    whole = read_in_steps(b'{"":' + text.encode() + b"}", values_max=VALUES_MAX)
    if len(whole) != 1:
        raise ValueError("it is more than one value")
    return whole[""]
