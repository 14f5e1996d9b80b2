"""Reads, writes and counts large values of upstream tools in a thread and in steps, so that the event loop goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ....sandbox.job import Json
from ....sandbox.wire.bounded_json import is_light, read_in_steps, write_in_steps
from ....tools_registry.errors import AnswerRefused
from ....tools_registry.json_lines import mended
from ...base.errors import HostWorkBusy
from ...base.host_work import Kind, checked, checkpoint, in_thread

_T = TypeVar("_T")

VALUES_MAX = 4_000_000
"""JSON values in one answer of an upstream tool: a few hundred megabytes of memory at most."""


async def read_large(text: str) -> Json:
    """Read a JSON text. Raises `ValueError`, also for what is too deep or has more than `VALUES_MAX` values."""
    return await in_thread(Kind.ANSWERS, partial(_read, text))


async def with_checkpoints(work: Callable[[Callable[[], None]], _T], /) -> _T:
    """Do other work on answers in a thread of theirs, charged to the run; it is given what it calls between slices.

    Raises `AnswerRefused` where no thread was free for it: the server has answered by then.
    """
    try:
        return await in_thread(Kind.ANSWERS, partial(work, checkpoint))
    except HostWorkBusy as busy:
        raise AnswerRefused(
            "The tool answered, and other answers kept sealab from reading it in time. It may have done its work: look "
            "before calling it again."
        ) from busy


async def chars_of(value: Json) -> int:
    """Return how long a value is as JSON. The encoder in C would hold up all others while it writes a long one."""
    if is_light(value):
        return len(json.dumps(value))
    return await in_thread(Kind.ANSWERS, partial(_chars, value))


async def text_of(value: Json) -> str:
    """Return a value as JSON text; that of a long one is made in a thread."""
    if is_light(value):
        return json.dumps(value, ensure_ascii=False)
    return await in_thread(Kind.ANSWERS, partial(write_in_steps, value))


def _chars(value: Json) -> int:
    return sum(map(len, checked(json.JSONEncoder().iterencode(value))))


def _read(text: str) -> Json:
    whole = read_in_steps(b'{"":' + mended(text.encode()) + b"}", values_max=VALUES_MAX, lenient=True)
    if len(whole) != 1:
        raise ValueError("it is more than one value")
    return whole[""]
